"""ASCII armor: encoded data is not text, and a private key stays secret."""

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
def test_private_key_stays_out_of_summary(text: str, full: int) -> None:
    """No part of a private key, even of an unterminated one, enters the title, keywords or full text of a summary."""
    body = text.encode()
    kind = recognize(b"id.pem", body)
    found = Found(full)
    summarize(Facts(b"id.pem", "file:///id.pem", kind.type, kind.content_type, len(body), 0, ""), io.BytesIO(body), found)
    told = " ".join(str(v) for values in found.attributes.values() for v in values).lower()
    assert kind.type == "Certificate"
    assert not [line for line in SECRET.splitlines() if line[:20].lower() in told]
    assert "language" not in found.attributes
    assert found.attributes["title"] == ["Of the lake" if text.startswith("Of") else "id.pem"]


def test_signed_text_is_kept_without_signature(summary: Callable[..., Found]) -> None:
    """A signed text is kept as written, without the signature."""
    text = b"-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nThe lake is open.\n- -- \nAda\n"
    found = summary(b"news.asc", text + b"-----BEGIN PGP SIGNATURE-----\n\niQEzBA\n-----END PGP SIGNATURE-----\n").attributes
    assert found["partial-text"] == ["The lake is open.\n-- \nAda"]
    assert found["blocks"] == ["pgp signature"]


def test_ssh_public_keys_give_kind_and_comment(summary: Callable[..., Found]) -> None:
    """OpenSSH public keys give their kind and comment, whatever the file name."""
    for name in (b"id.pub", b"authorized_keys"):
        found = summary(name, b"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEJ ada@lake\n").attributes
        assert (found["blocks"], found["description"], found["title"]) == (["ssh-ed25519"], ["ada@lake"], [name.decode()])


@pytest.mark.parametrize("inside", ["", "AAAA", "MIIB", "MAA=", "MAIwAA==", "no base 64 at all!", "MIT/////"])
def test_invalid_certificate_gives_label_only(summary: Callable[..., Found], inside: str) -> None:
    """A block labelled as a certificate that is not one gives its label only."""
    found = summary(b"x.pem", f"-----BEGIN CERTIFICATE-----\n{inside}\n-----END CERTIFICATE-----\n".encode()).attributes
    assert found == {"blocks": ["certificate"], "title": ["x.pem"]}
