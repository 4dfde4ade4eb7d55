"""Compression of values by zstd (RFC 8878), with a dictionary for each group of values: a topic, or the rows of a stage.

Values are small, and alike: without a dictionary zstd finds little in one alone, with one it finds three to eight times as much
(measured: `make bench ARGS=size`). A dictionary is made of the first values of its group, and is never deleted: what was compressed
with it needs it. The compression of single values, not of blocks of them, leaves every value readable, replaceable and deletable by
itself.

Laws:
- unpack(*pack(group, value)) == value.
- A value that does not get smaller is stored as it is, and its form is None: so are all values of older versions.
- Dictionaries become durable with the first values that need them: both are of one transaction.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import apsw

if sys.version_info >= (3, 14):
    from compression.zstd import CompressionParameter, ZstdCompressor, ZstdDecompressor, ZstdDict, ZstdError, train_dict
else:
    from backports.zstd import CompressionParameter, ZstdCompressor, ZstdDecompressor, ZstdDict, ZstdError, train_dict

LEVEL = 1
"""Level 3 makes summaries 4 per cent smaller, and takes 8 to 10 µs each, where level 1 takes 5 to 8."""
LEAST = 40
"""Bytes of the smallest value that is compressed."""
MAGIC = b"\x28\xb5\x2f\xfd"
"""Begins each frame of zstd; not stored."""
SAMPLES, SAMPLE_BYTES = 120, 16 << 10
"""Number of values, and their minimal bytes, that a dictionary is made of."""
SIZE = 8 << 10
"""Bytes of a dictionary. With 16 kB values of 2 kB get 4 per cent smaller, and those of 200 bytes no more at all."""
OPTIONS: dict[int, int] = {CompressionParameter.compression_level: LEVEL, CompressionParameter.dict_id_flag: 0}

LATEST = "SELECT id, data FROM dictionaries WHERE name=? ORDER BY id DESC LIMIT 1"
LAST = "SELECT coalesce(max(id), 0) FROM dictionaries"
LOAD = "SELECT data FROM dictionaries WHERE id=?"
KEEP = "INSERT INTO dictionaries(id, name, data) VALUES(?, ?, ?)"


class Packed(NamedTuple):
    """A stored value. `form`: None if it is stored as it is, else 0, or the number of its dictionary with a minus."""

    data: bytes
    form: int | None


class _Group:
    """What compresses the values of a group: its dictionary, or the samples for one."""

    __slots__ = ("compressor", "form", "samples", "size")

    def __init__(self, number: int, data: bytes) -> None:
        known = ZstdDict(data).as_digested_dict if number else None
        self.form = -number
        self.compressor = ZstdCompressor(options=OPTIONS, zstd_dict=known)
        self.samples: list[bytes] | None = None if number else []
        self.size = 0


class Dictionaries:
    """The dictionaries of one connection. `pack` is for use in a transaction, whose end `write` precedes."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._groups: dict[str, _Group] = {}
        self._known: dict[int, ZstdDict] = {}
        self._new: list[tuple[int, str, bytes]] = []

    def pack(self, group: str, value: bytes) -> Packed:
        """Return a value as it is stored."""
        if len(value) < LEAST:
            return Packed(value, None)
        with_what = self._groups.get(group) or self._group(group)
        if with_what.samples is not None:
            with_what = self._sampled(group, with_what, value)
        data = with_what.compressor.compress(value, ZstdCompressor.FLUSH_FRAME)[len(MAGIC) :]
        return Packed(data, with_what.form) if len(data) < len(value) else Packed(value, None)

    def unpack(self, data: bytes, form: int) -> bytes:
        """Return the value of a stored one that has a form. Raises apsw.CorruptError."""
        known = (self._known.get(-form) or self._load(-form)) if form else None
        frame = ZstdDecompressor(zstd_dict=known)
        try:
            value = frame.decompress(MAGIC + data)
        except ZstdError as error:
            raise apsw.CorruptError(f"a value is damaged: {error}") from error
        if not frame.eof:
            raise apsw.CorruptError("a value is damaged: it ends too early")
        return value

    def write(self, cursor: apsw.Cursor) -> None:
        """Store the dictionaries that this transaction made."""
        cursor.executemany(KEEP, self._new)
        self._new = []

    def forget(self) -> None:
        """Drop everything that may come from a transaction that was undone."""
        self._groups, self._known, self._new = {}, {}, []

    def _group(self, name: str) -> _Group:
        number, data = self._connection.execute(LATEST, (name,)).fetchone() or (0, b"")
        found = self._groups[name] = _Group(number, data)
        return found

    def _load(self, number: int) -> ZstdDict:
        data = self._connection.execute(LOAD, (number,)).get
        if data is None:
            raise apsw.CorruptError(f"a dictionary is missing: {number}")
        found = self._known[number] = ZstdDict(data)
        return found

    def _sampled(self, name: str, group: _Group, value: bytes) -> _Group:
        """Add a sample; return the group, with a dictionary if there are samples enough."""
        samples = group.samples if group.samples is not None else []
        samples.append(value)
        group.size += len(value)
        if len(samples) < SAMPLES or group.size < SAMPLE_BYTES:
            return group
        try:
            data = train_dict(samples, SIZE).dict_content
        except ZstdError:  # too much alike, or too little
            group.samples = None
            return group
        number = int(self._connection.execute(LAST).get) + 1 + len(self._new)
        self._new.append((number, name, data))
        self._known[number] = ZstdDict(data)
        made = self._groups[name] = _Group(number, data)
        return made
