"""zip (PKWARE APPNOTE 6.3.10): stored, deflated, bzip2, LZMA, Zstandard and xz, with 64-bit sizes; read by its directory.

- Entries that share bytes make a bomb that no nesting is needed for (D. Fifield, "A better zip bomb", 2019): such an
  archive is refused as a whole, before anything is read of it.
- Bytes before the archive and behind it are no damage: the end record is searched, and offsets count from where the archive is.
- Where the directory is missing or damaged, the local headers are followed from the start for as long as they hold, and
  the damage is told at the end.
- Every length and checksum is held against what came out.
"""

from __future__ import annotations

import bz2
import lzma
import stat
import struct
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from processors.essence.formats import zip_directory as directory
from processors.essence.formats.container import Budget, Damaged, Member, MemberKind, Reader, Refused, UnnestError
from processors.essence.formats.inflate import Inflate
from processors.essence.formats.streams import CHUNK, Decoded, Decoder, Failing, Slice, exact, need, seekable
from processors.essence.formats.zip_directory import Entry
from processors.essence.formats.zip_names import charset_of
from processors.essence.formats.zstandard import Frame

STORED, DEFLATED, BZIP2, LZMA, ZSTANDARD, XZ = 0, 8, 12, 14, 93, 95
MEMORY = 96 << 20
"""Bytes that an LZMA dictionary may take."""
MAX_TARGET = 4096
"""Bytes of a symbolic link's target, as Linux has it (PATH_MAX)."""
SPANNING = (directory.DESCRIPTOR, b"PK00")
"""Marks before the first header of an archive in several parts, and of one that became a single one (8.5.3, 8.5.4)."""
SPANNED = "part 1 of a multi-volume archive: the parts after it are missing"
DESCRIPTOR_SIZES = (12, 16, 20, 24)


class _At:
    """A file from a position on, whatever others read of it meanwhile."""

    def __init__(self, file: BinaryIO, at: int) -> None:
        self._file = file
        self.at = at

    def read(self, size: int, /) -> bytes:
        if self.at > directory.MAX_OFFSET:
            raise Damaged("an offset beyond all files")
        self._file.seek(self.at)
        data = self._file.read(size)
        self.at += len(data)
        return data


def _lzma(reader: Reader) -> Decoder:
    """The decoder of method 14, whose properties stand before the data (5.8.8). Raises Damaged, Refused."""
    head = need(reader, 4, "LZMA properties")
    properties = need(reader, struct.unpack_from("<H", head, 2)[0], "LZMA properties")
    if len(properties) != 5 or properties[0] >= 9 * 5 * 5:
        raise Damaged("damaged LZMA properties")
    packed, dictionary = struct.unpack("<BI", properties)
    if dictionary > MEMORY:
        raise Refused(f"an LZMA dictionary of more than {MEMORY} bytes")
    coder = {"id": lzma.FILTER_LZMA1, "dict_size": max(dictionary, 4096)}
    coder |= {"lc": packed % 9, "lp": packed // 9 % 5, "pb": packed // 45}
    try:
        return lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=[coder])
    except lzma.LZMAError as error:
        raise Damaged("damaged LZMA properties") from error


def _decoder(entry: Entry, reader: Reader) -> Decoder:
    """What undoes a method. Raises Refused."""
    if entry.method == DEFLATED:
        return Inflate(-zlib.MAX_WBITS)
    if entry.method == BZIP2:
        return bz2.BZ2Decompressor()
    if entry.method == LZMA:
        return _lzma(reader)
    if entry.method == ZSTANDARD:
        return Frame()
    if entry.method == XZ:
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, MEMORY)
    raise Refused(f"compression method {entry.method} is not known")


class _Body:
    """The content of an entry; opened when first read, so that an entry that cannot be opened is no harm to the others."""

    def __init__(self, file: BinaryIO, entry: Entry) -> None:
        self._file = file
        self._entry = entry
        self._reader: Reader | None = None
        self._crc = 0
        self._size = 0

    def _open(self) -> Reader:
        if self._entry.flags & directory.ENCRYPTED:
            raise Refused("encrypted")
        _, start = directory.local(self._file, self._entry.at)
        reader = Slice(_At(self._file, start), self._entry.packed)
        if self._entry.method == STORED:
            return reader
        return Decoded(reader, _decoder(self._entry, reader))

    def read(self, size: int, /) -> bytes:
        self._reader = self._reader or self._open()
        # LZMA need not have a mark of its end (5.8.9): its length is what the directory says.
        ended = self._entry.method == LZMA and self._size == self._entry.size
        data = b"" if ended else self._reader.read(min(size, CHUNK))
        self._crc = zlib.crc32(data, self._crc)
        self._size += len(data)
        if self._size > self._entry.size or (not data and self._size < self._entry.size):
            raise Damaged("its length is not what the directory says")
        if not data and self._crc != self._entry.crc:
            raise Damaged("its checksum fails")
        return data


def _kind(entry: Entry) -> MemberKind:
    if entry.system == directory.UNIX:
        mode = entry.attributes >> 16
        if stat.S_ISLNK(mode):
            return "symlink"
        if stat.S_ISCHR(mode) or stat.S_ISBLK(mode) or stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
            return "device"
    return "folder" if entry.name.endswith(b"/") else "file"


def _member(file: BinaryIO, entry: Entry) -> Member:
    kind, body, target = _kind(entry), _Body(file, entry), b""
    if kind == "symlink":
        try:
            target = exact(body, MAX_TARGET)
        except UnnestError:
            # A link that cannot be read is a file that cannot be read: whoever reads the body is told why.
            kind, body = "file", _Body(file, entry)
    return Member(
        name=entry.name,
        kind=kind,
        size=entry.size,
        mtime=entry.mtime,
        owner=entry.owner,
        group=entry.group,
        mode=entry.attributes >> 16 & 0o7777 if entry.system == directory.UNIX else 0,
        target=target if kind == "symlink" else b"device" if kind == "device" else b"",
        body=body if kind == "file" else None,
    )


class _Measured:
    """A deflated body whose length only its own end tells: what local headers leave out when sizes follow the data."""

    def __init__(self, file: BinaryIO, entry: Entry, start: int) -> None:
        self._decoder = _decoder(entry, _At(file, start))
        self._at = _At(file, start)
        self._reader = Decoded(self._at, self._decoder)
        self._crc = 0
        self._file = file

    def read(self, size: int, /) -> bytes:
        data = self._reader.read(size)
        self._crc = zlib.crc32(data, self._crc)
        if not data and self._crc != self._described()[0]:
            raise Damaged("its checksum fails")
        return data

    def _end(self) -> int:
        return self._at.at - len(self._decoder.unused_data)

    def _described(self) -> tuple[int, int]:
        """The checksum that stands behind the data, and where the next header begins."""
        data = exact(_At(self._file, self._end()), 24)
        signed = 4 if data.startswith(directory.DESCRIPTOR) else 0
        for size in (12, 20):
            if data[signed + size : signed + size + 2] == b"PK" or len(data) < signed + size + 2:
                return int.from_bytes(data[signed : signed + 4], "little"), self._end() + signed + size
        return int.from_bytes(data[signed : signed + 4], "little"), self._end() + signed + 12

    def next(self) -> int:
        """Where the next header begins. Raises Damaged."""
        while self._reader.read(CHUNK):
            pass
        return self._described()[1]


def _salvaged(file: BinaryIO) -> Iterator[Member]:
    """What local headers tell, from the start of the file for as long as they hold. Raises Damaged."""
    # A file that was torn has the members, by name, that it had before.
    file.seek(0)
    at = 4 if file.read(8) in {mark + directory.LOCAL for mark in SPANNING} else 0
    charset = charset_of(_in_doubt(file, at))
    while True:
        entry, start = directory.local(file, at, charset)
        if _tells_length(entry):
            yield _member(file, entry)
            at = _behind(file, entry, start)
        elif entry.method != DEFLATED or entry.flags & directory.ENCRYPTED:
            raise Damaged("an entry does not tell its length")
        else:
            body = _Measured(file, entry, start)
            yield _member(file, entry)._replace(size=-1, body=None if entry.name.endswith(b"/") else body)
            at = body.next()


def _spanned(file: BinaryIO) -> bool:
    """Whether this is the first part of an archive in several (8.5.3)."""
    file.seek(0)
    return file.read(len(directory.DESCRIPTOR)) == directory.DESCRIPTOR


def _in_doubt(file: BinaryIO, at: int) -> Iterator[bytes]:
    """Names in local headers that do not say their charset, as far as each header tells where the next one is."""
    for _ in range(directory.NAMES):
        try:
            entry, start = directory.local(file, at, "")
            if directory.doubtful(entry):
                yield entry.name
            if not _tells_length(entry):
                return
            at = _behind(file, entry, start)
        except UnnestError:
            return


def _tells_length(entry: Entry) -> bool:
    """Whether a local header says how long its data are."""
    return not entry.flags & directory.DESCRIBED or entry.packed > 0


def _behind(file: BinaryIO, entry: Entry, start: int) -> int:
    """Where the header behind an entry is, whose length is told."""
    end = start + entry.packed
    return end + (_descriptor(file, end) if entry.flags & directory.DESCRIBED else 0)


def _descriptor(file: BinaryIO, at: int) -> int:
    """The length of what follows the data of an entry whose flags say that its sizes do."""
    data = exact(_At(file, at), 28)
    for size in DESCRIPTOR_SIZES:
        if data[size : size + 2] == b"PK":
            return size
    return DESCRIPTOR_SIZES[0]


def _last_part(file: BinaryIO, found: directory.Directory) -> Iterator[Member]:
    """Yield the members of an archive in several parts, of which this is the last. Raises Damaged at the end."""
    lost = Damaged(f"part {found.disk + 1} of a multi-volume archive: the parts before it are missing")
    for entry in directory.entries(file, found):
        member = _member(file, entry) if entry.disk == found.disk else _member(file, entry._replace(attributes=0))
        yield member if entry.disk == found.disk else member._replace(body=member.body and Failing(lost))
    raise lost


def open_zip(body: Reader, budget: Budget) -> Iterator[Member]:
    """The members of a zip, in the order of its directory. Raises Damaged, Refused, Exhausted."""
    with seekable(body, budget.limits, damaged=True) as file:
        try:
            found = directory.find(file)
            if found.disk:
                yield from _last_part(file, found)
                return
            charset = directory.check(file, found, budget)
        except Damaged as damage:
            if damage.reason.startswith("entries overlap"):
                raise
            try:
                yield from _salvaged(file)
            except Damaged:
                raise damage if not _spanned(file) else Damaged(SPANNED) from None
            return
        for entry in directory.entries(file, found, charset):
            yield _member(file, entry)
        file.seek(0)
        if found.shift > 0 and file.read(len(directory.LOCAL)) == directory.LOCAL:
            raise Damaged("another archive before this one is not read")
