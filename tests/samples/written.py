"""Archives written by libarchive: a witness of the formats that is not ours."""

from __future__ import annotations

from collections.abc import Sequence

import libarchive

DATE = 786_240_000
"""The date of every member, in s since the epoch."""

Members = Sequence[tuple[str, bytes]]


def archive(kind: str, members: Members, *, packed: str | None = None, options: str = "") -> bytes:
    """An archive of a kind that libarchive names, in a compression that it names."""
    out = bytearray()

    def write(data: bytes) -> int:
        out.extend(data)
        return len(data)

    with libarchive.custom_writer(write, kind, packed, options=options) as writing:
        for name, data in members:
            writing.add_file_from_memory(name, len(data), data, permission=0o644, mtime=DATE)
    return bytes(out)


def encoded(packed: str, data: bytes) -> bytes:
    """Bytes in a compression that libarchive names."""
    return archive("raw", [("data", data)], packed=packed)
