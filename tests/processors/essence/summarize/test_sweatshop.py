"""Workbooks encrypted with the default password that every program tries."""

from __future__ import annotations

import base64
import hashlib
import struct
from collections.abc import Callable

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from processors.essence.formats import office_encryption
from processors.essence.formats.office_encryption import INPUT, KEY, PASSWORD, PLAIN, SEGMENT, VALUE
from processors.essence.summarize import Found
from tests.processors.essence.summarize.compound import compound
from tests.processors.essence.summarize.packages import packed
from tests.processors.essence.summarize.test_documents import WORKBOOK

Make = Callable[..., Found]
BOOK = packed({**WORKBOOK, "xl/media/x.txt": "x" * 9_000})
SALT, SECRET, VERIFIER = bytes(range(16)), bytes(range(32)), bytes(range(16, 32))
XML = (
    '<encryption xmlns="u" xmlns:p="v"><keyData {same} saltValue="{salt}"/><keyEncryptors><keyEncryptor><p:encryptedKey {same}'
    ' spinCount="{spins}" saltValue="{salt}" encryptedVerifierHashInput="{a}" encryptedVerifierHashValue="{b}"'
    ' encryptedKeyValue="{c}"/></keyEncryptor></keyEncryptors></encryption>'
)
SAME = 'blockSize="16" keyBits="256" hashSize="64" cipherAlgorithm="AES" cipherChaining="ChainingModeCBC" hashAlgorithm="SHA512"'


def locked(data: bytes, key: bytes, mode: modes.CBC | modes.ECB) -> bytes:
    """Return data encrypted in AES blocks, the last one padded."""
    do = Cipher(algorithms.AES(key), mode).encryptor()
    return do.update(data + bytes(-len(data) % 16)) + do.finalize()


def agile(password: bytes = PASSWORD, *, spins: int = 1_000, stated: int = -1, same: str = SAME) -> bytes:
    """Return a workbook encrypted as Office does since 2010 ([MS-OFFCRYPTO] 2.3.4.10)."""
    spun = hashlib.sha512(SALT + password).digest()
    for number in range(spins):
        spun = hashlib.sha512(struct.pack("<I", number) + spun).digest()

    def told(value: bytes, block: bytes) -> str:
        return base64.b64encode(locked(value, hashlib.sha512(spun + block).digest()[:32], modes.CBC(SALT))).decode()

    said = {"a": told(VERIFIER, INPUT), "b": told(hashlib.sha512(VERIFIER).digest(), VALUE), "c": told(SECRET, KEY)}
    xml = XML.format(same=same, salt=base64.b64encode(SALT).decode(), spins=spins if stated < 0 else stated, **said)
    parts = [
        locked(BOOK[at : at + SEGMENT], SECRET, modes.CBC(hashlib.sha512(SALT + struct.pack("<I", at // SEGMENT)).digest()[:16]))
        for at in range(0, len(BOOK), SEGMENT)
    ]
    package = struct.pack("<Q", len(BOOK)) + b"".join(parts)
    return compound({"EncryptionInfo": struct.pack("<HHI", 4, 4, 64) + xml.encode(), "EncryptedPackage": package})


def standard(password: bytes = PASSWORD) -> bytes:
    """Return a workbook encrypted as Office 2007 does (2.3.4.5)."""
    spun = hashlib.sha1(SALT + password).digest()
    for number in range(50_000):
        spun = hashlib.sha1(struct.pack("<I", number) + spun).digest()
    last = hashlib.sha1(spun + bytes(4)).digest()
    key = hashlib.sha1(bytes(a ^ 0x36 for a in last) + b"\x36" * 44).digest()[:16]
    head = struct.pack("<IIIIIIII", 0x24, 0, 0x660E, 0x8004, 128, 0x18, 0, 0) + "AES".encode("utf-16-le") + b"\0\0"
    check = locked(VERIFIER, key, PLAIN), locked(hashlib.sha1(VERIFIER).digest(), key, PLAIN)
    info = struct.pack("<HHII", 4, 2, 0x24, len(head)) + head + struct.pack("<I16s16sI32s", 16, SALT, check[0], 20, check[1])
    package = struct.pack("<Q", len(BOOK)) + locked(BOOK, key, PLAIN)
    return compound({"EncryptionInfo": info, "EncryptedPackage": package})


@pytest.mark.parametrize("lock", [agile, standard])
def test_default_password_is_tried(lock: Callable[[], bytes], summary: Make) -> None:
    """A workbook that is only protected from changes is summarized like any other."""
    found = summary(b"x.xlsx", lock())
    assert found.attributes["headings"] == ["Boats", "Crews"]
    assert found.text("partial-text") == "name length\nbarge 38\ncrew"
    assert "encrypted" not in found.attributes


OTHER = "secret".encode("utf-16-le")
KEPT = {
    "agile": agile(OTHER),
    "standard": standard(OTHER),
    "hashed too often": agile(stated=4_000_000_000),
    "hashed less than never": agile(stated=-2, spins=0).replace(b'spinCount="0"', b'spinCount="-2"'),
    "another method": agile(same=SAME.replace("AES", "RC2")),
    "another hash": agile(same=SAME.replace("SHA512", "MD99")),
    "another key": agile(same=SAME.replace('keyBits="256"', 'keyBits="8"')),
    "no number": agile(same=SAME.replace('keyBits="256"', 'keyBits="x"')),
    "nothing said": compound({"EncryptionInfo": struct.pack("<HHI", 4, 4, 64), "EncryptedPackage": bytes(99)}),
    **{
        f"a key of {bits} bits": agile(same=SAME.replace('keyBits="256"', f'keyBits="{bits}"'))
        for bits in ("8", "9" * 10, "1" + "0" * 30)
    },
    "cut": compound({"EncryptionInfo": struct.pack("<HHII", 4, 2, 0x24, 9_999), "EncryptedPackage": bytes(99)}),
}


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT)
def test_other_encryption_is_reported(body: bytes, summary: Make) -> None:
    """Another password, an unknown method, or too many iterations: the workbook is reported as encrypted only."""
    found = summary(b"x.xlsx", body)
    assert found.attributes["encrypted"] == ["a password is needed"]
    assert not found.attributes.keys() & {"headings", "partial-text", "error"}


def test_oversized_package_stays_encrypted(summary: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package above the size limit stays encrypted, and the password is not tried."""
    monkeypatch.setattr(office_encryption, "MAX_PACKAGE", 1_000)
    monkeypatch.setattr(office_encryption, "_hash_password", lambda *_: pytest.fail("the password is tried"))
    assert summary(b"x.xlsx", agile()).attributes["encrypted"] == ["a password is needed"]
