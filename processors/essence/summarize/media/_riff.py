"""RIFF: chunks, lists of chunks, and the INFO list of a film, a sound or a cursor (Microsoft, RIFF 1.0, 2 and 3)."""

from __future__ import annotations

from collections.abc import Iterator

from processors.essence.summarize._base import Found
from processors.essence.summarize.binary._binary import short_text, unpack

CHUNKS = 200
INFO = {
    b"INAM": "title", b"IART": "author", b"IENG": "author", b"ICMT": "description", b"ISBJ": "description", b"IKEY": "keywords",
    b"IGNR": "keywords", b"ICOP": "copyright", b"ICRD": "date", b"IPRD": "album", b"ISFT": "generator", b"ILNG": "language",
}  # fmt: skip


def chunks(raw: bytes, at: int = 12) -> Iterator[tuple[bytes, bytes]]:
    """Yield name and content of each chunk of a file or list, as far as the bytes go."""
    for _ in range(CHUNKS):
        name, size = unpack("<4sI", raw, at) or (b"", 0)
        if not name:
            return
        yield name, raw[at + 8 : at + 8 + size]
        at += 8 + size + size % 2


def add_info(raw: bytes, found: Found) -> None:
    """Add the entries of the INFO list; `raw`: the start of the file."""
    for name, held in chunks(raw):
        if name == b"LIST" and held.startswith(b"INFO"):
            for key, text in chunks(held, 4):
                if key in INFO:
                    found.add(INFO[key], short_text(text), 1_000)
