"""xz (streams with padding between them) and the older lzma, by the standard library's lzma.

A file states the memory that its dictionary needs; files that need more than MEMORY are refused (`xz -9` needs 65 MB).
"""

from __future__ import annotations

import lzma

from processors.essence.formats.container import Budget, Reader
from processors.essence.formats.streams import Decoded
from processors.essence.unnest import Encoding

MAGIC = b"\xfd7zXZ\0"
MEMORY = 96 << 20


def _another(data: bytes) -> lzma.LZMADecompressor | None:
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, MEMORY) if data.startswith(MAGIC) else None


def open_xz(body: Reader, budget: Budget) -> Reader:
    """Return the decoded content of an xz or lzma file as a stream."""
    return Decoded(body, lzma.LZMADecompressor(lzma.FORMAT_AUTO, MEMORY), _another)


UNNESTER = Encoding(("XZ", "LZMA"), "xz", {b".txz": b".tar", b".tlz": b".tar", b".xz": b"", b".lzma": b""}, open_xz)
