"""Decrypts Office documents that are locked with Excel's default password, VelvetSweatshop ([MS-OFFCRYPTO] 2.3.4).

A workbook that is only protected against changes is encrypted with this password, and every program opens it without asking.
Laws:
- At most MAX_PACKAGE bytes are decrypted, and a password is hashed at most SPINS times, whatever the file states.
- Only the verifier decides: if it does not match the password, nothing is returned.
"""

from __future__ import annotations

import base64
import hashlib
import struct
from collections.abc import Callable, Mapping

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from processors.essence.formats.compound_file import Compound
from processors.essence.formats.xml import tree

PASSWORD = "VelvetSweatshop".encode("utf-16-le")
MAX_PACKAGE = 32 << 20
MAX_INFO = 16_384
SPINS, OLD_SPINS = 200_000, 50_000
SEGMENT = 4_096
BLOCK = 16
AGILE, STANDARD = (4, 4), ((2, 2), (3, 2), (4, 2))
"""Versions of EncryptionInfo, by method of encryption."""
HASHES: Mapping[str, Callable[[bytes], hashlib._Hash]] = {
    "SHA1": hashlib.sha1,
    "SHA256": hashlib.sha256,
    "SHA384": hashlib.sha384,
    "SHA512": hashlib.sha512,
}
INPUT, VALUE, KEY = (bytes.fromhex(key) for key in ("fea7d2763b4b9e79", "d7aa0f6d3061344e", "146e0be7abacd0d6"))
"""Block keys of the verifier's input, of the verifier's hash, and of the package's key (2.3.4.13)."""
PLAIN = modes.ECB()  # noqa: S305 - required by the format
SHA1, AES_BITS = 0x8004, {0x660E: 128, 0x660F: 192, 0x6610: 256}


def decrypt_package(compound: Compound) -> bytes | None:
    """Return the decrypted package; None if the password or the method is another, or the package is too large."""
    info = compound.read("EncryptionInfo", MAX_INFO)
    entry = compound.streams.get("EncryptedPackage")
    if entry is None or entry.size > MAX_PACKAGE or len(info) < 8:
        return None
    version = struct.unpack_from("<HH", info)
    try:
        if version == AGILE:
            return _agile(info[8:], compound.read("EncryptedPackage", MAX_PACKAGE))
        return _standard(info, compound.read("EncryptedPackage", MAX_PACKAGE)) if version in STANDARD else None
    except (KeyError, ValueError, struct.error):
        return None


def _hash_password(digest: Callable[[bytes], hashlib._Hash], salt: bytes, times: int) -> bytes:
    found = digest(salt + PASSWORD).digest()
    for number in range(times):
        found = digest(number.to_bytes(4, "little") + found).digest()
    return found


def _decrypt_aes(data: bytes, key: bytes, mode: modes.CBC | modes.ECB) -> bytes:
    """Decrypt AES blocks; an incomplete last block is dropped. Raises ValueError for an invalid key."""
    undo = Cipher(algorithms.AES(key), mode).decryptor()
    return undo.update(data[: len(data) // BLOCK * BLOCK]) + undo.finalize()


def _agile(info: bytes, package: bytes) -> bytes | None:
    """Decrypt agile encryption (2.3.4.10 and on). Raises KeyError, ValueError, struct.error."""
    root = tree(info)
    said: dict[str, dict[str, str]] = (
        {} if root is None else {str(e.tag).rpartition("}")[2]: {str(k): str(v) for k, v in e.items()} for e in root.iter()}
    )
    data, lock = said["keyData"], said["encryptedKey"]
    if any((s["cipherAlgorithm"], s["cipherChaining"], s["blockSize"]) != ("AES", "ChainingModeCBC", "16") for s in (data, lock)):
        return None
    spins, bits, secret_bits = int(lock["spinCount"]), int(lock["keyBits"]), int(data["keyBits"])
    if not 0 <= spins <= SPINS or not {bits, secret_bits} <= set(AES_BITS.values()):
        return None
    digest, salt = HASHES[lock["hashAlgorithm"]], base64.b64decode(lock["saltValue"])
    spun, start = _hash_password(digest, salt, spins), modes.CBC(salt[:BLOCK])

    def opened(name: str, block: bytes) -> bytes:
        key = digest(spun + block).digest()[: bits // 8].ljust(bits // 8, b"\x36")
        return _decrypt_aes(base64.b64decode(lock[name]), key, start)

    verifier, value = opened("encryptedVerifierHashInput", INPUT), opened("encryptedVerifierHashValue", VALUE)
    if not verifier or not value.startswith(digest(verifier).digest()):
        return None
    secret = opened("encryptedKeyValue", KEY)[: secret_bits // 8]
    digest, salt = HASHES[data["hashAlgorithm"]], base64.b64decode(data["saltValue"])
    parts = []
    for number, at in enumerate(range(8, len(package), SEGMENT)):
        start = modes.CBC(digest(salt + number.to_bytes(4, "little")).digest()[:BLOCK])
        parts.append(_decrypt_aes(package[at : at + SEGMENT], secret, start))
    return b"".join(parts)[: int.from_bytes(package[:8], "little")]


def _standard(info: bytes, package: bytes) -> bytes | None:
    """Decrypt standard encryption (2.3.4.5 and on). Raises ValueError, struct.error."""
    (size,) = struct.unpack_from("<I", info, 8)
    method, hashed, bits = struct.unpack_from("<8xIII", info, 12)
    if AES_BITS.get(method) != bits or hashed not in (0, SHA1):
        return None
    salt, verifier, value = struct.unpack_from("<4x16s16s4x32s", info, 12 + size)
    spun = hashlib.sha1(_hash_password(hashlib.sha1, salt, OLD_SPINS) + bytes(4)).digest().ljust(64, b"\0")
    key = b"".join(hashlib.sha1(bytes(byte ^ with_ for byte in spun)).digest() for with_ in (0x36, 0x5C))[: bits // 8]
    if _decrypt_aes(value, key, PLAIN)[:20] != hashlib.sha1(_decrypt_aes(verifier, key, PLAIN)).digest():
        return None
    return _decrypt_aes(package[8:], key, PLAIN)[: int.from_bytes(package[:8], "little")]
