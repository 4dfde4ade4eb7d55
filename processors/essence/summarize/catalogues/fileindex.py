"""Hand-written indexes (00-INDEX, FILES.BBS, INDEX of software archives): names of files, with descriptions of a few lines."""

from __future__ import annotations

from typing import BinaryIO

from processors.essence.formats.file_index import INDEX_LINE
from processors.essence.formats.text import decode, squeeze
from processors.essence.summarize._base import Facts, Found, Summarizer

MAX_READ = 262_144
TEXT = 16_384


def entries(raw: bytes, charset: str = "") -> list[tuple[str, str, str]]:
    """Return name, columns (size, date, folder) and description of each file."""
    found: list[tuple[str, str, list[str]]] = []
    current = False
    for line in raw.splitlines():
        if line[:1] in (b" ", b"\t") and line.strip():
            if current:
                found[-1][2].append(decode(line, charset).strip(" \t|:-"))
        else:
            match = INDEX_LINE.match(line)
            current = match is not None
            if match:
                columns = squeeze(decode(match["columns"], charset))
                found.append(
                    (decode(match["name"], charset).strip("\"'"), columns, [decode(line[match.end("columns") :], charset)])
                )
    return [(name, columns, squeeze(" ".join(said)).lstrip("-:| ")) for name, columns, said in found]


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add files, and their descriptions as partial-text; of a single file its name, columns and description."""
    listed = entries(body.read(MAX_READ), facts.charset)
    if len(listed) == 1:
        name, columns, said = listed[0]
        found.add("title", f"{name}: {said}" if said else name, 300)
        found.add("name", name, 200)
        found.add("columns", columns, 200)
        found.add("description", said)
        return
    more = "1 other" if len(listed) == 2 else f"{len(listed) - 1} others"
    found.add("title", f"Index of {listed[0][0]} and {more}" if listed else "", 300)
    for name, _, _ in listed:
        found.add("files", name, 200)
    found.body("\n".join(f"{name}: {said}" for name, _, said in listed), TEXT)


SUMMARIZER = Summarizer(types=("FileIndex",), run=run)
