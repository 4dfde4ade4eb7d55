"""Armour: what is encoded is no text, and a private key is a secret."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable

import pytest

from processors.essence.recognize import recognize
from processors.essence.summarize import Facts, Found, summarize

SECRET = base64.encodebytes(bytes(range(7, 250))).decode()
PRIVATE = [
    f"-----BEGIN {kind}-----\n{SECRET}-----END {kind}-----\n"
    for kind in ("PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK")
]
ODD = [PRIVATE[0].rpartition("-----END")[0], "Of the lake\n\n" + PRIVATE[1].replace("\n", "\r\n")]


@pytest.mark.parametrize("full", [0, 1 << 20])
@pytest.mark.parametrize(
    "text", [*PRIVATE, PRIVATE[0].rpartition("-----END")[0], "Of the lake\n\n" + PRIVATE[1].replace("\n", "\r\n")]
)
def test_no_key_is_told(text: str, full: int) -> None:
    """Nothing of a private key is in a summary: not in its title, its keywords or its full text, and if the key has no end."""
    body = text.encode()
    kind = recognize(b"id.pem", body)
    found = Found(full)
    summarize(Facts(b"id.pem", "file:///id.pem", kind.type, kind.content_type, len(body), 0, ""), io.BytesIO(body), found)
    told = " ".join(str(v) for values in found.attributes.values() for v in values).lower()
    assert kind.type == "Certificate"
    assert not [line for line in SECRET.splitlines() if line[:20].lower() in told]
    assert "language" not in found.attributes
    assert found.attributes["title"] == ["Of the lake" if text.startswith("Of") else "id.pem"]


def test_a_signed_text_is_text(summary: Callable[..., Found]) -> None:
    """What somebody signed is kept as they wrote it, without the signature."""
    text = b"-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nThe lake is open.\n- -- \nAda\n"
    found = summary(b"news.asc", text + b"-----BEGIN PGP SIGNATURE-----\n\niQEzBA\n-----END PGP SIGNATURE-----\n").attributes
    assert found["partial-text"] == ["The lake is open.\n-- \nAda"]
    assert found["blocks"] == ["pgp signature"]


def test_keys_of_ssh(summary: Callable[..., Found]) -> None:
    """Of public keys of OpenSSH their kind and their comment are told, whatever the file is called."""
    for name in (b"id.pub", b"authorized_keys"):
        found = summary(name, b"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEJ ada@lake\n").attributes
        assert (found["blocks"], found["description"], found["title"]) == (["ssh-ed25519"], ["ada@lake"], [name.decode()])


@pytest.mark.parametrize("inside", ["", "AAAA", "MIIB", "MAA=", "MAIwAA==", "no base 64 at all!", "MIT/////"])
def test_what_is_no_certificate(summary: Callable[..., Found], inside: str) -> None:
    """A block that says it is a certificate and is none has its name alone."""
    found = summary(b"x.pem", f"-----BEGIN CERTIFICATE-----\n{inside}\n-----END CERTIFICATE-----\n".encode()).attributes
    assert found == {"blocks": ["certificate"], "title": ["x.pem"]}
