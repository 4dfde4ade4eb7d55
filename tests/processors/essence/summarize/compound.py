"""Builders of compound files (OLE)."""

from __future__ import annotations

import struct
from collections.abc import Mapping

FREE, END, TABLE = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
CUTOFF = 4_096


def _padded(data: bytes, size: int) -> bytes:
    return data + bytes(-len(data) % size)


def _numbers(count: int, start: int) -> list[int]:
    """Return a chain of consecutive sectors."""
    return [*range(start + 1, start + count), END] if count else []


def _entry(name: str, kind: int, start: int, size: int, child: int = FREE, right: int = FREE) -> bytes:
    raw = name.encode("utf-16-le") + b"\0\0" if name else b""
    return struct.pack("<64sHBBIII36xIQ", raw, len(raw), kind, 1, FREE, right, child, start, size)


def compound(streams: Mapping[str, bytes]) -> bytes:
    """Return a compound file with the given streams; small ones are stored in the root's stream, as the format requires.

    A name with a tab denotes a stream in a storage, possibly nested.
    """
    small, large = bytearray(), bytearray()
    small_table: list[int] = []
    large_table: list[int] = []
    places: list[tuple[str, int, int]] = []
    for name, data in streams.items():
        store, table, size = (small, small_table, 64) if len(data) < CUTOFF else (large, large_table, 512)
        places.append((name, len(store) // size, len(data)))
        count = (len(data) + size - 1) // size
        table += _numbers(count, len(table))
        store += _padded(data, size)
    directory = _directory(places, len(small), 0)
    parts = (directory, _padded(struct.pack(f"<{len(small_table)}I", *small_table), 512), _padded(bytes(small), 512))
    table, body, starts = [TABLE], b"", []
    for part in parts:
        starts.append(len(table))
        table += _numbers(len(part) // 512, len(table))
        body += part
    first = len(table)
    directory = _directory(places, len(small), starts[2], first)
    body = directory + body[len(directory) :]
    table += [n if n == END else n + first for n in large_table]
    body += large
    head = struct.pack(
        "<8s16xHHHHH6xIIIIIIIIII",
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        0x3E,
        3,
        0xFFFE,
        9,
        6,
        0,
        1,
        starts[0],
        0,
        CUTOFF,
        starts[1] if small else END,
        len(parts[1]) // 512,
        END,
        0,
        0,
    )[:76]
    fat = struct.pack(f"<{len(table)}I", *table).ljust(512, b"\xff")
    return head + struct.pack("<I", 0) + b"\xff" * 432 + fat + body


def _directory(places: list[tuple[str, int, int]], small: int, root: int, first: int = 0) -> bytes:
    """Return the directory: root and storages; the entries of a storage form one long branch of the tree below it."""
    names = [name for name, _, _ in places]
    storages = sorted({name[:at] for name in names for at, c in enumerate(name) if c == "\t"})
    numbers = {name: number for number, name in enumerate([*names, *storages], start=1)}

    def inside(storage: str) -> list[str]:
        return [name for name in numbers if name.rpartition("\t")[0] == storage]

    def after(name: str) -> int:
        beside = inside(name.rpartition("\t")[0])
        return next((numbers[n] for n in beside[beside.index(name) + 1 :]), FREE)

    child = numbers[inside("")[0]] if places else FREE
    entries = [_entry("Root Entry", 5, root if small else END, small, child)]
    for name, start, size in places:
        entries.append(_entry(name.rpartition("\t")[2], 2, start + (first if size >= CUTOFF else 0), size, right=after(name)))
    entries += [_entry(n.rpartition("\t")[2], 1, END, 0, numbers[inside(n)[0]], after(n)) for n in storages]
    return _padded(b"".join(entries), 512)


def properties(values: Mapping[int, str | int]) -> bytes:
    """Return a property set: text in UTF-8, numbers as times."""
    places, data = b"", b""
    start = 8 + 8 * (len(values) + 1)
    for number, value in {1: None, **values}.items():
        places += struct.pack("<II", number, start + len(data))
        if value is None:
            data += struct.pack("<IHH", 2, 65001, 0)
        elif isinstance(value, int):
            data += struct.pack("<IQ", 64, value)
        else:
            raw = value.encode() + b"\0"
            data += struct.pack("<II", 30, len(raw)) + _padded(raw, 4)
    section = struct.pack("<II", 8 + len(places) + len(data), len(values) + 1) + places + data
    return struct.pack("<HHI16xI16xI", 0xFFFE, 0, 0x20005, 1, 48) + section


def word(text: str, *, flags: int = 0x200) -> dict[str, bytes]:
    """Return the streams of a Word document whose text is in two pieces, the first in bytes, the second in UTF-16."""
    head, tail = text[: len(text) // 2], text[len(text) // 2 :]
    fib = bytearray(4_200)
    struct.pack_into("<HH6xH", fib, 0, 0xA5EC, 0xC1, flags)
    struct.pack_into("<I", fib, 0x4C, len(text))
    first, second = 0x800, 0x800 + len(head) + len(head) % 2
    pieces = struct.pack("<IIIHIHHIH", 0, len(head), len(text), 0, first * 2 | 0x40000000, 0, 0, second, 0)
    clx = b"\x01\x02\x00ab" + b"\x02" + struct.pack("<I", len(pieces)) + pieces
    struct.pack_into("<II", fib, 0x1A2, 3, len(clx))
    fib[first : first + len(head)] = head.encode("cp1252")
    fib[second : second + 2 * len(tail)] = tail.encode("utf-16-le")
    return {"WordDocument": bytes(fib), "1Table": b"xyz" + clx}


def record(kind: int, data: bytes) -> bytes:
    """Return an Excel record."""
    return struct.pack("<HH", kind, len(data)) + data


def atom(kind: int, data: bytes, version: int = 0) -> bytes:
    """Return a PowerPoint record."""
    return struct.pack("<HHI", version, kind, len(data)) + data
