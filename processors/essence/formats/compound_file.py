"""Reader of compound files ([MS-CFB]), Office's document format until 2007, and of the property sets in them ([MS-OLEPS]).

A reader of our own: only a few streams of the root storage are needed, and the library for the format trusts the counts that a file
states. Laws:
- Only the requested bytes are read, by seeking; a chain of sectors is followed for at most STEPS sectors, so that a cyclic chain
  ends.
- At most ENTRIES directory entries are read, and only those under the root are listed: embedded documents have streams of the same
  names.
"""

from __future__ import annotations

import codecs
import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import BinaryIO, NamedTuple

from processors.essence.formats import FormatError

MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
STEPS = 1 << 18
SMALL = 64
"""Size of a sector of a small stream, in bytes."""
ENTRIES = 8_192
DIFAT = 1_024
"""Maximum number of DIFAT sectors, which list the sectors of the allocation table."""
LAST = 0xFFFF_FFF0
"""Sector numbers from here on are markers (end of chain, free), not sectors."""
STREAM, ROOT = 2, 5

CHARSETS = {
    65001: "utf-8", 1200: "utf-16-le", 10000: "mac_roman", 20866: "koi8-r", 21866: "koi8-u", 50220: "iso2022_jp", 51932: "euc_jp",
    51949: "cp949", 54936: "gb18030",
}  # fmt: skip
"""Python's name of a code page, where it is not `cp` and the number."""
MAX_SET = 65_536
TIME = 64
"""Type number of a property that is a time (FILETIME)."""
MAX_PROPERTIES = 256
FIXED, MOST_FIXED = "__properties_version1.0", 8_192
"""Stream of the fixed-size properties of an Outlook message ([MS-OXMSG] 2.4), and the bytes of it that are read."""
INTEGER = 3
PAGES = (0x3FFD, 0x3FDE)
"""Properties with the code page of a message's strings and of its text (PidTagMessageCodepage, PidTagInternetCodepage)."""


class Entry(NamedTuple):
    """A directory entry: a stream or a storage."""

    name: str
    kind: int
    left: int
    right: int
    child: int
    start: int
    size: int


class Compound:
    """A compound file. Raises FormatError where it is none, or where its directory cannot be read."""

    def __init__(self, body: BinaryIO) -> None:
        self._body = body
        self._size = body.seek(0, 2)
        """Bytes of the file: a chain with more is cyclic."""
        head = self._at(0, 512)
        if len(head) < 512 or not head.startswith(MAGIC):
            raise FormatError("OLE: no header")
        shift, small = struct.unpack_from("<HH", head, 30)
        if shift not in (9, 12) or small != 6:
            raise FormatError("OLE: damaged header")
        self._sector = 1 << shift
        self._directory, self._cutoff, self._small_table = struct.unpack_from("<I4xII", head, 48)
        difat, count = struct.unpack_from("<II", head, 68)
        self._tables = list(struct.unpack_from("<109I", head, 76))
        self._more_tables(difat, min(count, DIFAT))
        self._cache: tuple[int, bytes] = (-1, b"")
        self._kept: tuple[int, list[int]] = (-1, [])
        self._smalls: tuple[bytes, bytes] | None = None
        self._kept_small: tuple[int, list[int]] = (-1, [])
        self.streams: dict[str, Entry] = {}
        self._all: list[Entry] = []
        self._root = Entry("", 0, LAST, LAST, LAST, LAST, 0)
        self._entries()

    def _at(self, at: int, size: int) -> bytes:
        self._body.seek(at)
        return self._body.read(size)

    def _more_tables(self, at: int, count: int) -> None:
        for _ in range(count):
            data = self._at((at + 1) * self._sector, self._sector) if at < LAST else b""
            if len(data) < self._sector:
                return
            *numbers, at = struct.unpack(f"<{self._sector // 4}I", data)
            self._tables += numbers

    def _next(self, sector: int) -> int:
        """Return the number of the sector that follows in the chain."""
        table, place = divmod(sector, self._sector // 4)
        if table != self._cache[0]:
            at = self._tables[table] if table < len(self._tables) else LAST
            self._cache = (table, self._at((at + 1) * self._sector, self._sector) if at < LAST else b"")
        data = self._cache[1][place * 4 : place * 4 + 4]
        return int.from_bytes(data, "little") if len(data) == 4 else LAST

    def _chain(self, start: int, offset: int, size: int) -> bytes:
        """Return bytes of the stream that starts at a sector; fewer if the chain ends early."""
        first, within = divmod(offset, self._sector)
        end = -(-(offset + size) // self._sector)
        parts = []
        for sector in self._sectors(start, end)[first:end]:
            parts.append(self._at((sector + 1) * self._sector + within, min(self._sector - within, size)))
            size -= self._sector - within
            within = 0
        return b"".join(parts)

    def _sectors(self, start: int, count: int) -> list[int]:
        """Return the sectors of a chain, at least `count` of them; fewer if the chain ends early.

        The chain that was read last is cached: a text consists of thousands of pieces, at any offset of its stream.
        """
        if self._kept[0] != start:
            self._kept = (start, [start] if start < LAST else [])
        chain = self._kept[1]
        while 0 < len(chain) < min(count, STEPS, self._size // self._sector + 1):
            sector = self._next(chain[-1])
            if sector >= LAST:
                break
            chain.append(sector)
        return chain

    def _small(self, start: int, offset: int, size: int) -> bytes:
        """Return bytes of a small stream, whose sectors of 64 bytes are stored in the root's stream."""
        table, store = self._smalls = self._smalls or (
            self._chain(self._small_table, 0, STEPS * 4),
            self._chain(self._root.start, 0, STEPS * SMALL),
        )
        if self._kept_small[0] != start:
            self._kept_small = (start, [start])
        chain = self._kept_small[1]
        first, end = offset // SMALL, -(-(offset + size) // SMALL)
        while len(chain) < min(end, len(store) // SMALL + 1):
            sector = int.from_bytes(table[chain[-1] * 4 : chain[-1] * 4 + 4] or b"\xff" * 4, "little")
            if sector * SMALL >= len(store):
                break
            chain.append(sector)
        data = b"".join([store[sector * SMALL : sector * SMALL + SMALL] for sector in chain[first:end]])
        return data[offset % SMALL :][:size]

    def _entries(self) -> None:
        raw = self._chain(self._directory, 0, ENTRIES * 128)
        entries = [_entry(raw[at : at + 128]) for at in range(0, len(raw) - 127, 128)]
        if not entries or entries[0].kind != ROOT:
            raise FormatError("OLE: no directory")
        self._root, self._all = entries[0], entries
        self.streams = self.inside(self._root)

    def inside(self, storage: Entry) -> dict[str, Entry]:
        """Return the streams and storages directly in a storage, by name."""
        found: dict[str, Entry] = {}
        seen: set[int] = set()
        waiting = [storage.child]
        while waiting:
            number = waiting.pop()
            if number < len(self._all) and number not in seen:
                seen.add(number)
                entry = self._all[number]
                waiting += (entry.right, entry.left)
                found[entry.name] = entry
        return found

    def read(self, name: str, limit: int, offset: int = 0) -> bytes:
        """Return at most `limit` bytes of a stream of the root storage; b"" if there is no such stream."""
        return self.part(self.streams.get(name), limit, offset)

    def part(self, entry: Entry | None, limit: int, offset: int = 0) -> bytes:
        """Return at most `limit` bytes of a stream; b"" if the entry is not a stream."""
        if entry is None or entry.kind != STREAM or offset >= entry.size:
            return b""
        size = min(limit, entry.size - offset)
        if entry.size < self._cutoff:
            return self._small(entry.start, offset, size)
        return self._chain(entry.start, offset, size)

    def is_cut(self) -> bool:
        """Whether the streams of the root storage cannot all be in the file, since they have more bytes than it."""
        return sum(entry.size for entry in self.streams.values() if entry.kind == STREAM) > self._size

    @cached_property
    def strings(self) -> dict[str, str]:
        """Charsets of the two string types of an Outlook message, by the suffix of the stream's name ([MS-OXMSG] 2.1.3).

        Strings that are not Unicode are in the code page that the message states for its strings, otherwise in that of its text.
        """
        raw = self.read(FIXED, MOST_FIXED)
        pages: dict[int, int] = {}
        for at in range(32, len(raw) - 15, 16):
            kind, number, page = struct.unpack_from("<HH4xI", raw, at)
            if kind == INTEGER and number in PAGES:
                pages[number] = page
        return {"001F": "utf-16-le", "001E": windows_charset(next((pages[number] for number in PAGES if number in pages), 1252))}

    def pieces(self, entry: Entry) -> Iterator[bytes]:
        """Yield a stream from its start, sector by sector; fewer bytes than its stated size if the chain ends early."""
        if entry.size < self._cutoff:
            yield self._small(entry.start, 0, entry.size)
            return
        sector, left = entry.start, entry.size
        for _ in range(min(STEPS, self._size // self._sector + 1)):
            data = self._at((sector + 1) * self._sector, min(self._sector, left)) if sector < LAST else b""
            if not data:
                return
            yield data
            left -= len(data)
            sector = self._next(sector)


def _entry(raw: bytes) -> Entry:
    length, kind, left, right, child, start, size = struct.unpack_from("<64xHBxIII36xIQ", raw)
    name = raw[: max(min(length, 64) - 2, 0)].decode("utf-16-le", "replace")
    # In files with sectors of 512 bytes the upper half of the size may be garbage.
    return Entry(name, kind, left, right, child, start, size & 0xFFFF_FFFF)


def properties_of(raw: bytes) -> list[tuple[int, str]]:
    """Return the properties of the set's first section as text; damaged ones are skipped."""
    try:
        at = struct.unpack_from("<I", raw, 44)[0]
        count = min(struct.unpack_from("<I", raw, at + 4)[0], MAX_PROPERTIES)
        places = [struct.unpack_from("<II", raw, at + 8 + 8 * n) for n in range(count)]
    except struct.error:
        return []
    charset = "cp1252"
    values: list[tuple[int, str]] = []
    for number, place in sorted(places):
        try:
            if number == 1:
                charset = windows_charset(struct.unpack_from("<H", raw, at + place + 4)[0])
            else:
                values.append((number, _value(raw, at + place, charset)))
        except (struct.error, LookupError, ValueError, OverflowError):
            continue
    return values


def windows_charset(page: int) -> str:
    """Return the charset of a Windows code page; cp1252 if it is unknown."""
    name = CHARSETS.get(page) or (f"iso8859-{page - 28_590}" if 28_590 < page < 28_606 else f"cp{page}")
    try:
        return codecs.lookup(name).name
    except LookupError:
        return "cp1252"


def _value(raw: bytes, at: int, charset: str) -> str:
    """Return a property's value as text; "" for an unsupported type. Raises struct.error and decoding errors."""
    kind, number = struct.unpack_from("<HxxI", raw, at)
    if kind == 31:
        return raw[at + 8 : at + 8 + 2 * min(number, MAX_SET)].decode("utf-16-le", "replace").partition("\0")[0]
    if kind == 30:
        return raw[at + 8 : at + 8 + min(number, MAX_SET)].decode(charset, "replace").partition("\0")[0]
    if kind == 3:
        return str(number) if number else ""
    return filetime_to_iso(struct.unpack_from("<Q", raw, at + 4)[0]) if kind == TIME else ""


def filetime_to_iso(ticks: int) -> str:
    """Return a FILETIME in ISO 8601; "" for zero. FILETIMEs are durations too: those of less than a year are not times."""
    try:
        when = datetime(1601, 1, 1, tzinfo=UTC) + timedelta(microseconds=ticks // 10)
    except OverflowError:
        return ""
    return when.strftime("%Y-%m-%dT%H:%M:%SZ") if when.year > 1601 else ""
