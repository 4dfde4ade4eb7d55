"""Archives written by libarchive: samples that do not depend on this project's own understanding of the formats."""

from __future__ import annotations

from collections.abc import Sequence

import libarchive

DATE = 786_240_000
"""Modification time of every member, in seconds since the epoch."""

Members = Sequence[tuple[str, bytes]]


def archive(kind: str, members: Members, *, packed: str | None = None, options: str = "") -> bytes:
    """An archive in a libarchive format (`kind`), compressed by a libarchive filter (`packed`)."""
    out = bytearray()

    def write(data: bytes) -> int:
        out.extend(data)
        return len(data)

    with libarchive.custom_writer(write, kind, packed, options=options) as writing:
        for name, data in members:
            writing.add_file_from_memory(name, len(data), data, permission=0o644, mtime=DATE)
    return bytes(out)


def encoded(packed: str, data: bytes) -> bytes:
    """Bytes compressed by a libarchive filter (`packed`)."""
    return archive("raw", [("data", data)], packed=packed)
