"""xar (xar wiki, "xarformat"), as macOS packages are: a table of contents in compressed XML, then a heap with the contents."""

from __future__ import annotations

import bz2
import hashlib
import lzma
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import BinaryIO, NamedTuple

from lxml import etree

from processors.essence.formats.container import Budget, Damaged, Member, MemberKind, Reader, Refused
from processors.essence.formats.inflate import Inflate
from processors.essence.formats.streams import CHUNK, Decoded, Decoder, Failing, Slice, need, seekable
from processors.essence.formats.xml import MAX_PART, local, tree
from processors.essence.unnest import Container

HEAD = struct.Struct(">4sHHQQI")
"""Magic, size of the header, version, sizes of the table (compressed, plain), checksum algorithm."""
MAX_PACKED = 8 << 20
"""Maximum bytes of a compressed table of contents."""
MAX_OFFSET = 1 << 62
MEMORY = 96 << 20
DECODERS: Mapping[str, Callable[[], Decoder]] = {
    # Called gzip, but the data have the header of zlib; 32 accepts both.
    "application/x-gzip": lambda: Inflate(zlib.MAX_WBITS | 32),
    "application/zlib": lambda: Inflate(zlib.MAX_WBITS | 32),
    "application/x-bzip2": bz2.BZ2Decompressor,
    "application/x-lzma": lambda: lzma.LZMADecompressor(lzma.FORMAT_AUTO, MEMORY),
    "application/x-xz": lambda: lzma.LZMADecompressor(lzma.FORMAT_AUTO, MEMORY),
}
DIGESTS = ("md5", "sha1", "sha256", "sha512")
KINDS: Mapping[str, MemberKind] = {
    "file": "file",
    "directory": "folder",
    "symlink": "symlink",
    "hardlink": "hardlink",
    "fifo": "device",
    "character special": "device",
    "block special": "device",
    "socket": "device",
}


class _Data(NamedTuple):
    at: int
    packed: int
    size: int
    encoding: str
    digest: tuple[str, str]
    """Algorithm and hexadecimal value of the digest of the content; both may be ""."""


class _At:
    """A file from a position on, whatever others read of it meanwhile."""

    def __init__(self, file: BinaryIO, at: int) -> None:
        self._file = file
        self._at = at

    def read(self, size: int, /) -> bytes:
        self._file.seek(self._at)
        data = self._file.read(size)
        self._at += len(data)
        return data


class _Body:
    """Content of a file. Raises Damaged where its length or digest is not the stated one."""

    def __init__(self, reader: Reader, data: _Data) -> None:
        self._reader = reader
        self._left = data.size
        self._digest = hashlib.new(data.digest[0], usedforsecurity=False) if data.digest[0] in DIGESTS else None
        self._stated = data.digest[1]

    def read(self, size: int, /) -> bytes:
        data = self._reader.read(min(size, CHUNK))
        self._left -= len(data)
        if self._left < 0 or (not data and self._left):
            raise Damaged("its length is not what the table of contents says")
        if self._digest:
            self._digest.update(data)
            if not data and self._digest.hexdigest() != self._stated:
                raise Damaged("its checksum fails")
        return data


def _body(file: BinaryIO, heap: int, data: _Data) -> Reader:
    if data.at < 0 or data.packed < 0 or heap + data.at > MAX_OFFSET:
        return Failing(Damaged("damaged table of contents: no such offset"))
    reader: Reader = Slice(_At(file, heap + data.at), data.packed)
    if data.encoding in DECODERS:
        reader = Decoded(reader, DECODERS[data.encoding]())
    elif data.encoding not in ("", "application/octet-stream"):
        return Failing(Refused(f"compression {data.encoding} is not known"))
    return _Body(reader, data)


def _child(element: etree._Element, name: str) -> etree._Element | None:
    return next((e for e in element if local(e) == name), None)


def _text(element: etree._Element | None, name: str) -> str:
    found = _child(element, name) if element is not None else None
    return (found.text or "").strip() if found is not None else ""


def _number(text: str, base: int = 10) -> int:
    """Return a number; -1 if there is none."""
    try:
        return int(text[:24], base)
    except ValueError:
        return -1


def _mtime(text: str) -> int:
    """Return a time in nanoseconds since the epoch; 0: unknown."""
    try:
        return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1_000_000_000
    except (ValueError, OverflowError):
        return 0


def _data(element: etree._Element) -> _Data:
    found = _child(element, "data")
    if found is None:
        return _Data(0, 0, 0, "", ("", ""))
    encoding, digest = _child(found, "encoding"), _child(found, "extracted-checksum")
    return _Data(
        at=_number(_text(found, "offset")),
        packed=_number(_text(found, "length")),
        size=_number(_text(found, "size")),
        encoding=str(encoding.get("style", "")) if encoding is not None else "",
        digest=(str(digest.get("style", "")).lower(), (digest.text or "").strip().lower()) if digest is not None else ("", ""),
    )


def _files(toc: etree._Element) -> Iterator[tuple[bytes, etree._Element]]:
    """Yield the entries in the order of the table, with their paths."""
    waiting = [(b"", toc)]
    while waiting:
        above, element = waiting.pop()
        if local(element) == "file":
            above += _text(element, "name").encode("utf-8", "replace")
            yield above, element
            above += b"/"
        waiting += [(above, each) for each in reversed(element) if local(each) == "file"]


def _member(file: BinaryIO, heap: int, name: bytes, element: etree._Element) -> Member:
    kind, data = KINDS.get(_text(element, "type"), "file"), _data(element)
    link = _child(element, "link")
    target = (link.text or "").strip() if link is not None and kind == "symlink" else ""
    return Member(
        name=name,
        kind=kind,
        size=max(data.size, -1) if kind == "file" else 0,
        mtime=_mtime(_text(element, "mtime")),
        owner=_text(element, "user") or _text(element, "uid"),
        group=_text(element, "group") or _text(element, "gid"),
        mode=max(0, _number(_text(element, "mode"), 8)) & 0o7777,
        target=target.encode("utf-8", "replace") if kind == "symlink" else b"device" if kind == "device" else b"",
        body=_body(file, heap, data) if kind == "file" else None,
    )


def _toc(file: BinaryIO, budget: Budget) -> tuple[etree._Element, int, bool]:
    """Return the table of contents, where the heap begins, and whether the table is whole. Raises Damaged, Refused, Exhausted."""
    magic, head, _, packed, size, _ = HEAD.unpack(need(file, HEAD.size, "the header ends early"))
    if magic != b"xar!" or head < HEAD.size:
        raise Damaged("no xar archive")
    if packed > MAX_PACKED:
        raise Refused(f"a table of contents of more than {MAX_PACKED} bytes")
    reader, raw = Decoded(Slice(_At(file, head), packed), Inflate(zlib.MAX_WBITS)), b""
    while len(raw) <= MAX_PART and (data := reader.read(CHUNK)):
        budget.spend(len(data))
        raw += data
    root = tree(raw)
    toc = _child(root, "toc") if root is not None else None
    if toc is None:
        raise Damaged("damaged table of contents")
    return toc, head + packed, len(raw) == size <= MAX_PART


def open_xar(body: Reader, budget: Budget) -> Iterator[Member]:
    """Yield the members of an archive. Raises UnnestError."""
    with seekable(body, budget.limits, damaged=True) as file:
        toc, heap, whole = _toc(file, budget)
        for name, element in _files(toc):
            yield _member(file, heap, name, element)
        if not whole:
            raise Damaged("damaged table of contents: its size is not the stated one, or it is too large")


UNNESTER = Container(("Xar",), open_xar)
