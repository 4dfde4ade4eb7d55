"""Bibliographies (BibTeX, RIS): each entry is a member, named by its key.

A BibTeX entry ends where the next line begins with "@": braces are not counted, since many files lack one. The abbreviations
(@string) that an entry uses are put before it, so that it can be read alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from processors.essence.formats.container import Budget, Member, Reader
from processors.essence.formats.streams import CHUNK, peek
from processors.essence.unnest import Container
from processors.essence.unnest.lists._entries import Entry, lines, members, named

STRINGS = 2_000
"""Maximum number of abbreviations kept."""
STRING = 300
"""Maximum bytes of each."""
USED = 10

_ENTRY = re.compile(rb"[ \t]*@[ \t]*([A-Za-z]{2,30})[ \t]*[{(][ \t]*([^\s,{}=()]{0,200})")
_WORD = re.compile(rb"=[ \t]*([A-Za-z][\w:.+/-]{0,80})[ \t]*(?=[,}\r\n#])")
_TY = re.compile(rb"TY  - ?")
_ID = re.compile(rb"^ID  - ([^\r\n]{1,200})", re.MULTILINE)
_NO_ENTRY = frozenset((b"comment", b"preamble"))


def _with(strings: dict[bytes, bytes], body: bytes) -> bytes:
    used = dict.fromkeys(w.lower() for w in _WORD.findall(body))
    return b"".join([*[strings[w] for w in used if w in strings][:USED], body])


def _bibtex(reader: Reader) -> Iterator[bytes]:
    strings: dict[bytes, bytes] = {}
    entry, kind, key = Entry(), b"", b""
    for line in lines(reader):
        if begins := _ENTRY.match(line):
            yield from _ended(entry, kind, key, strings)
            entry, kind, key = Entry(), begins[1].lower(), begins[2].lower()
        if kind:
            entry.add(line)
    yield from _ended(entry, kind, key, strings)


def _ended(entry: Entry, kind: bytes, key: bytes, strings: dict[bytes, bytes]) -> Iterator[bytes]:
    """Yield a complete entry; an abbreviation is stored instead."""
    if kind == b"string":
        if len(strings) < STRINGS and entry.size <= STRING:
            strings[key] = entry.body
    elif kind and kind not in _NO_ENTRY:
        yield _with(strings, entry.body)


def _ris(reader: Reader) -> Iterator[bytes]:
    entry: Entry | None = None
    for line in lines(reader):
        if _TY.match(line):
            if entry:
                yield entry.body
            entry = Entry()
        if entry:
            entry.add(line)
    if entry:
        yield entry.body


def _key(body: bytes) -> bytes:
    found = [m[2] for m in map(_ENTRY.match, body.splitlines()) if m and m[1].lower() != b"string"]
    return named(found[0]) if found else b""


def _id(body: bytes) -> bytes:
    found = _ID.search(body)
    return named(found[1]) if found else b""


def open_bibliography(body: Reader, budget: Budget) -> Iterator[Member]:
    """Yield the entries of a bibliography."""
    head, body = peek(body, CHUNK)
    if _TY.match(head.lstrip(b"\xef\xbb\xbf\r\n \t")):
        return members(_ris(body), _id, "application/x-research-info-systems")
    return members(_bibtex(body), _key, "application/x-bibtex")


UNNESTER = Container(("Bibliographic",), open_bibliography, summarized=True, entries=True)
