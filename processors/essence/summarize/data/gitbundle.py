"""Git bundles (gitformat-bundle(5), gitformat-pack(5)): refs, and authors and log of the commits that are stored whole.

Commits come first in a pack: reading ends at its first tree. A commit that is stored as a delta is left out.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import BinaryIO

from processors.essence.formats.text import decode, squeeze
from processors.essence.summarize._base import Facts, Found, Summarizer, SummaryError

MAX_READ = 16 << 20
MAX_OBJECTS = 10_000
MAX_OBJECT = 1 << 20
"""Bytes that one object may inflate to; MAX_READ bounds all together."""
MESSAGES = 60
HEAD = 1 << 16
PIECE = 2_048
"""Bytes that are inflated at a time: few, since those behind the end of an object are read again for the next one."""
COMMIT, TAG, OFFSET, REFERENCE = 1, 4, 6, 7

_REF = re.compile(r"^[0-9a-f]{40,64} (\S{1,200})$", re.MULTILINE)
_AUTHOR = re.compile(r"^(?:author|tagger) ([^<\n]{0,200})<([^>\n]{0,200})> (\d{1,11})", re.MULTILINE)


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add title, symbols (refs), revisions, author, date, log and description. Raises SummaryError."""
    raw = body.read(MAX_READ)
    head, _, pack = raw.partition(b"\n\n")
    if not head.startswith((b"# v2 git bundle", b"# v3 git bundle")):
        raise SummaryError("GitBundle: no header")
    for name in _REF.findall(decode(head[:HEAD])):
        found.add("symbols", name.removeprefix("refs/heads/").removeprefix("refs/tags/"), 200)
    found.set("title", facts.name.decode("utf-8", "replace"), 300)
    if pack[:4] != b"PACK":
        raise SummaryError("GitBundle: truncated: no pack behind the refs")
    found.add("objects", str(int.from_bytes(pack[8:12], "big")))
    commits = 0
    for text in _commits(pack):
        commits += 1
        said, _, message = text.partition("\n\n")
        author = _AUTHOR.search(said)
        date = datetime.fromtimestamp(int(author[3]), UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if author else ""
        found.add("author", author[1].strip() if author else "", 200)
        found.set("date", date)
        if commits <= MESSAGES:
            found.add("log", f"{date[:10]}: {squeeze(message[:500])}", 500)
    found.add("revisions", str(commits) if commits else "")


def _commits(pack: bytes) -> Iterator[str]:
    """Yield the commits and tags that are stored whole, up to the first object of another kind. Raises SummaryError for damage."""
    at, room = 12, MAX_READ
    for _ in range(min(int.from_bytes(pack[8:12], "big"), MAX_OBJECTS)):
        if at >= len(pack) or room <= 0:
            return
        kind, at = pack[at] >> 4 & 7, _behind(pack, at)
        if kind == OFFSET:
            at = _behind(pack, at)
        elif kind == REFERENCE:
            at += 20
        elif kind not in (COMMIT, TAG):
            return
        data, at = _inflated(pack, at)
        room -= len(data)
        if kind in (COMMIT, TAG):
            yield decode(data)


def _inflated(pack: bytes, at: int) -> tuple[bytes, int]:
    """Return the inflated contents of the object at offset `at`, and the offset behind it. Raises SummaryError."""
    inflate, parts, size = zlib.decompressobj(), list[bytes](), 0
    while not inflate.eof:
        piece = pack[at : at + PIECE]
        try:
            parts.append(inflate.decompress(inflate.unconsumed_tail + piece, MAX_OBJECT))
        except zlib.error as error:
            raise SummaryError(f"GitBundle: damaged object: {error}") from error
        at, size = at + len(piece), size + len(parts[-1])
        if not piece or size >= MAX_OBJECT:
            raise SummaryError("GitBundle: an object is cut off, or too large")
    return b"".join(parts), at - len(inflate.unused_data)


def _behind(pack: bytes, at: int) -> int:
    """Return the offset behind a number that is stored in seven bits per byte."""
    while at < len(pack) and pack[at] & 0x80:
        at += 1
    return at + 1


SUMMARIZER = Summarizer(types=("GitBundle",), run=run)
