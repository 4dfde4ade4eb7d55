"""The directory of a zip (PKWARE APPNOTE 6.3.10): where it is, what it says, and what local headers say where it is missing."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from typing import BinaryIO, NamedTuple

from processors.essence.formats.container import Budget, Damaged, Exhausted
from processors.essence.formats.zip_names import DOS, charset_of

END = b"PK\x05\x06"
END64 = b"PK\x06\x06"
LOCATOR64 = b"PK\x06\x07"
CENTRAL = b"PK\x01\x02"
LOCAL = b"PK\x03\x04"
DESCRIPTOR = b"PK\x07\x08"
END_SIZE, LOCATOR_SIZE, END64_SIZE, CENTRAL_SIZE, LOCAL_SIZE = 22, 20, 56, 46, 30
MAX_COMMENT = 0xFFFF
MAX32, MAX_DISK = 0xFFFF_FFFF, 0xFFFF
MAX_BEHIND, STEP, MAX_ENDS = 16 << 20, 1 << 20, 1_000
"""Bytes behind an archive, and signatures of end records in them, that are searched; bytes for each step."""

ENCRYPTED, DESCRIBED, UTF8 = 1, 1 << 3, 1 << 11
"""Flags: encrypted; sizes follow the data; the name is UTF-8."""
UNIX = 3
NAMES = 1_000
"""Names that do not say what charset they are in, of which it is told."""


MAX_OFFSET = (1 << 62) - 1
"""What any system can seek to, or more."""


class Entry(NamedTuple):
    """One entry, as the directory or a local header states it."""

    name: bytes
    flags: int
    method: int
    crc: int
    packed: int
    size: int
    at: int
    """Where its local header begins in the file."""
    mtime: int
    """ns since the epoch."""
    system: int = 0
    attributes: int = 0
    owner: str = ""
    group: str = ""
    disk: int = 0
    """Number of the part that it begins in."""


class Directory(NamedTuple):
    """Where the directory is."""

    start: int
    size: int
    members: int
    shift: int
    """What must be added to stated offsets: the length of what stands before the archive."""
    disk: int = 0
    """Number of the part, from 0, of an archive in several parts (8.5), of which this is the last."""


def _at(file: BinaryIO, at: int, size: int) -> bytes:
    if at > MAX_OFFSET:
        raise Damaged("an offset beyond all files")
    file.seek(at)
    data = file.read(size)
    if len(data) < size:
        raise Damaged("truncated: the directory ends early")
    return data


def find(file: BinaryIO, behind: int = MAX_BEHIND) -> Directory:
    """Find the directory by the record at the end, with at most `behind` bytes of other data after it. Raises Damaged."""
    end = _end(file, behind)
    disk, _, _, count, size, start = struct.unpack_from("<4H2I", _at(file, end, END_SIZE), 4)
    if end >= LOCATOR_SIZE and (locator := _at(file, end - LOCATOR_SIZE, LOCATOR_SIZE)).startswith(LOCATOR64):
        end64 = end - LOCATOR_SIZE - END64_SIZE
        stated = struct.unpack_from("<Q", locator, 8)[0]
        if not (end64 >= 0 and _at(file, end64, 4) == END64):
            end64 = stated
        if end64 > end or not (record := _at(file, end64, END64_SIZE)).startswith(END64):
            raise Damaged("damaged directory: its 64-bit end is missing")
        count, size, start = struct.unpack_from("<QQQ", record, 32)
        end = end64
    if size > end or start > end - size:
        raise Damaged("damaged directory: it does not fit into the file")
    # What is stated of an archive in several parts counts from the start of the part that it is in.
    return Directory(end - size, size, count, 0 if 0 < disk < MAX_DISK else end - size - start, disk if disk < MAX_DISK else 0)


def _end(file: BinaryIO, behind: int) -> int:
    """Find the end record, also where other bytes follow it. Raises Damaged."""
    length = file.seek(0, 2)
    tail_at = max(0, length - END_SIZE - MAX_COMMENT)
    tail = _at(file, tail_at, length - tail_at)
    end = tail.rfind(END)
    # The comment may hold the signature: the record whose comment reaches exactly to the end is the right one.
    while end >= 0 and (end + END_SIZE > len(tail) or end + END_SIZE + struct.unpack_from("<H", tail, end + 20)[0] != len(tail)):
        end = tail.rfind(END, 0, end)
    if end >= 0:
        return tail_at + end
    for at in _ends(file, length, behind):
        if _directs(file, at):
            return at
    raise Damaged("truncated: the directory is missing")


def _ends(file: BinaryIO, length: int, searched: int) -> Iterator[int]:
    """Yield where the signature of an end record is, the last first, within some bytes of the end; MAX_ENDS at most."""
    left, behind, end = MAX_ENDS, b"", length
    while end > max(0, length - searched):
        start = max(0, end - STEP)
        data = _at(file, start, end - start) + behind
        at = data.rfind(END)
        while at >= 0 and left:
            yield start + at
            left, at = left - 1, data.rfind(END, 0, at)
        behind, end = data[: len(END) - 1], start


def _directs(file: BinaryIO, end: int) -> bool:
    """Whether a directory lies right before an end record."""
    file.seek(max(0, end - LOCATOR_SIZE))
    data = file.read(min(end, LOCATOR_SIZE) + END_SIZE)
    head = data[min(end, LOCATOR_SIZE) :]
    if len(head) < END_SIZE:
        return False
    if data.startswith(LOCATOR64):
        return True
    count, size, start = struct.unpack_from("<HII", head, 10)
    if not count or start + size > end:
        return bool(not count and not size and end == start)
    return _at(file, end - size, len(CENTRAL)) == CENTRAL


def _wide(extra: bytes, sizes: list[int]) -> list[int]:
    """Sizes and offset with those replaced that stand in the 64-bit extra field (4.5.3). Raises Damaged."""
    if MAX32 not in sizes:
        return sizes
    wide = iter(struct.unpack(f"<{len(extra) // 8}Q", extra[: len(extra) // 8 * 8]))
    return [next(wide, value) if value == MAX32 else value for value in sizes]


def extras(data: bytes) -> dict[int, bytes]:
    """The extra fields by their tags; damage among them ends them."""
    found: dict[int, bytes] = {}
    at = 0
    while at + 4 <= len(data):
        tag, size = struct.unpack_from("<HH", data, at)
        found.setdefault(tag, data[at + 4 : at + 4 + size])
        at += 4 + size
    return found


def _name(raw: bytes, flags: int, system: int, extra: dict[int, bytes], charset: str) -> bytes:
    """A name as UTF-8 where its charset is known: by flag, by the extra field of Info-ZIP, or by what the others are in."""
    unicode = extra.get(0x7075, b"")
    if len(unicode) > 5 and unicode[0] == 1 and _valid(unicode[5:]):
        return unicode[5:]
    if flags & UTF8 or system == UNIX or _valid(raw):
        return raw
    # Who wrote the others need not have written this one.
    return raw.decode(charset, "surrogateescape").encode("utf-8", "surrogateescape") if charset else raw


def doubtful(entry: Entry) -> bool:
    """Whether nothing says what charset a name is in; of Unix no name has one."""
    return not (entry.flags & UTF8 or entry.system == UNIX or _valid(entry.name))


def _valid(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def _mtime(date: int, time: int, extra: dict[int, bytes]) -> int:
    """The time of an entry: Unix's where it stands in an extra field, else that of DOS, read as UTC."""
    stamp = extra.get(0x5455, b"")
    if len(stamp) >= 5 and stamp[0] & 1:
        return int(struct.unpack_from("<i", stamp, 1)[0]) * 1_000_000_000
    try:
        found = datetime(
            1980 + (date >> 9), date >> 5 & 15, date & 31, time >> 11, time >> 5 & 63, min(time % 32 * 2, 59), tzinfo=UTC
        )
    except ValueError:
        return 0
    return int(found.timestamp()) * 1_000_000_000


def _ids(extra: dict[int, bytes]) -> tuple[str, str]:
    """Owner and group as numbers (Info-ZIP, 0x7875)."""
    data = extra.get(0x7875, b"")
    try:
        uid = int.from_bytes(data[2 : 2 + data[1]], "little")
        gid_at = 2 + data[1]
        return str(uid), str(int.from_bytes(data[gid_at + 1 : gid_at + 1 + data[gid_at]], "little"))
    except IndexError:
        return "", ""


def entries(file: BinaryIO, directory: Directory, charset: str = "") -> Iterator[Entry]:
    """The entries of a directory, in its order. `charset`: of names that do not say theirs; "": they stay as they are.

    Raises Damaged.
    """
    at, end = directory.start, directory.start + directory.size
    for _ in range(directory.members):
        head = _at(file, at, CENTRAL_SIZE)
        if at + CENTRAL_SIZE > end or not head.startswith(CENTRAL):
            raise Damaged("damaged directory: an entry is missing")
        made, _, flags, method, time, date, crc, packed, size, *fields = struct.unpack("<4x6HIIIHHHHHII", head)
        named, extended, comment, disk, _, attributes, offset = fields
        rest = _at(file, at + CENTRAL_SIZE, named + extended)
        extra = extras(rest[named:])
        size, packed, offset = _wide(extra.get(1, b""), [size, packed, offset])
        name = _name(rest[:named], flags, made >> 8, extra, charset)
        shifted, when = offset + directory.shift, _mtime(date, time, extra)
        yield Entry(name, flags, method, crc, packed, size, shifted, when, made >> 8, attributes, *_ids(extra), disk)
        at += CENTRAL_SIZE + named + extended + comment


def check(file: BinaryIO, directory: Directory, budget: Budget) -> str:
    """Refuse a directory whose entries share bytes; gives the charset of names that do not say theirs.

    Raises Damaged, and Exhausted for more entries than the budget has.
    """
    if directory.members > budget.entries:
        raise Exhausted(f"more than {budget.limits.entries} members")
    starts, ends = array("Q"), array("Q")
    names: list[bytes] = []
    for entry in entries(file, directory):
        if len(names) < NAMES and doubtful(entry):
            names.append(entry.name)
        if entry.at < 0 or entry.at + LOCAL_SIZE + entry.packed > directory.start:
            raise Damaged("entries overlap with the directory, or lie outside of the archive")
        starts.append(entry.at)
        ends.append(entry.at + LOCAL_SIZE + entry.packed)
    order = sorted(range(len(starts)), key=starts.__getitem__)
    if any(ends[a] > starts[b] for a, b in pairwise(order)):
        raise Damaged("entries overlap")
    return charset_of(names) if names else ""


def local(file: BinaryIO, at: int, charset: str = DOS) -> tuple[Entry, int]:
    """The local header at an offset, and where its data begin; `charset` as of `entries`. Raises Damaged."""
    head = _at(file, at, LOCAL_SIZE)
    if not head.startswith(LOCAL):
        raise Damaged("damaged: a local header is missing")
    _, flags, method, time, date, crc, packed, size, named, extended = struct.unpack("<4x5HIIIHH", head)
    rest = _at(file, at + LOCAL_SIZE, named + extended)
    extra = extras(rest[named:])
    size, packed = _wide(extra.get(1, b""), [size, packed])
    name = _name(rest[:named], flags, 0, extra, charset)
    entry = Entry(name, flags, method, crc, packed, size, at, _mtime(date, time, extra))
    return entry, at + LOCAL_SIZE + named + extended
