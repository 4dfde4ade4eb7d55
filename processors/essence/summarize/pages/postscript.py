"""PostScript: structuring comments (DSC 3.0), metadata for PDF (pdfmark), and the displayed text.

The text is collected by running the file (`formats/postscript`), since each word processor shows text by procedures of its own
(Essence, seed 003, table 3, PostScript). Without a stated title, the lines in the largest type on the first page are the title.
"""

from __future__ import annotations

import re
from typing import BinaryIO

from processors.essence.formats.postscript import Page, Source, read
from processors.essence.formats.postscript.lines import Piece, lines
from processors.essence.formats.postscript.objects import END, Text
from processors.essence.formats.text import decode, squeeze
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize._dates import iso_date
from processors.essence.summarize._placeholder_titles import spoken
from processors.essence.summarize._text import add_references
from processors.essence.summarize.pages._docinfo import add_info
from processors.essence.summarize.pages._headline import headline

MAX_READ = 4_194_304
MAX_TEXT = 4_096
TAIL = 4_096
"""Bytes at the end that are read for comments deferred by `(atend)`."""
HEADER = 65_536
"""Maximum bytes of the comments at the beginning."""
STEPS, MOST_STEPS = 800_000, 6_000_000
"""Steps of the interpreter: a third of a second, and the maximum for a full text. A prologue takes up to 100,000."""
LEAST, EACH = 50_000, 20
"""Maximum steps by the file's size (a constant, and for each byte): a small file is not a long program."""
COMMENTS = {"Title": "title", "Creator": "generator", "For": "author", "Author": "author", "CreationDate": "date", "Pages": "pages"}
DOS = b"\xc5\xd0\xd3\xc6"
"""Signature of a DOS file, which has a preview image behind the PostScript (EPSF 3.0, 5.2)."""

_COMMENT = re.compile(rb"%%([A-Z][A-Za-z]{2,20}):[ \t]*+([^\r\n]{1,300})")
_HEADER = re.compile(rb"(?:[ \t]*+(?:%[^\r\n]*+)?+(?:\r\n?|\n)|(?!))*+")
_MORE = re.compile(rb"(?:\r\n?|\n)%%\+[ \t]*+")
_FILE = re.compile(
    r"(?i)\(?stdin\)?|-|/?[^\s/]{1,100}(?:/[^\s/]{1,100}){1,20}|\S{1,100}\.\w{1,5}|(?:enscript|a2ps) output|no title"
)
"""Placeholder titles: the name of a file or of the program."""
_NOBODY = frozenset(("", "root", "user", "(user)", "nobody", "unknown", "<unknown>"))


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add title, author, generator, date, pages, description, keywords, headings, url-references and partial-text."""
    raw = body.read(MAX_READ)
    if facts.size > MAX_READ + TAIL:
        body.seek(facts.size - TAIL)
    tail = body.read(TAIL) if facts.size > MAX_READ else raw[-TAIL:]
    source = _program(raw)
    stated = _comments(source, tail, facts.charset)

    # More than is kept, since white space is collapsed when the lines are assembled.
    room = found.most(MAX_TEXT) * 3 // 2
    page = read(source, room, min(max(STEPS, 100 * room), MOST_STEPS, LEAST + EACH * len(raw)))

    weak = stated.pop("title", "")
    if not _FILE.fullmatch(weak):
        found.set("title", weak, 300)
    _add_marks(page, found, facts.charset)
    for name, value in stated.items():
        found.set(name, iso_date(value) if name == "date" else value, 300)
    shown = [lines(pieces) for pieces in page.pages]
    found.set("title", _headline(shown[0]), 300)
    found.set("title", weak, 300)
    text = "\n".join(filter(None, (squeeze("".join(piece.text for piece in line)) for of in shown for line in of)))
    add_references(found, text)
    found.body(text, MAX_TEXT)


def _program(raw: bytes) -> Source:
    """Return the program without the surrounding data for DOS or for a printer (PJL)."""
    if raw.startswith(DOS):
        at = int.from_bytes(raw[4:8], "little")
        return Source(raw[at : at + int.from_bytes(raw[8:12], "little")])
    return Source(raw[max(raw.find(b"%!", 0, HEADER), 0) :])


def _comments(source: Source, tail: bytes, charset: str) -> dict[str, str]:
    """Return comments at the beginning, and deferred ones at the end (DSC 3.0, 4.2 and 5), by attribute."""
    stated: dict[str, str] = {}
    head = source.raw[:HEADER]
    header = _HEADER.match(head)
    begin = _MORE.sub(b" ", head[: header.end() if header else 0]).partition(b"%%EndComments")[0]
    later = tail[max(tail.rfind(b"%%Trailer"), 0) :] if b"(atend)" in begin else b""
    for name, raw in _COMMENT.findall(begin) + _COMMENT.findall(later):
        attribute = COMMENTS.get(name.decode("latin-1"), "")
        value = spoken(attribute, _plain(raw, charset)) if attribute else ""
        if attribute == "pages":
            # Until DSC 2.0 the page order followed the number.
            value = value.split()[0] if value and value.split()[0].isdecimal() else ""
        if attribute == "author" and value.lower() in _NOBODY:
            value = ""
        if value and value != "(atend)":
            stated.setdefault(attribute, value)
    return stated


def _plain(raw: bytes, charset: str) -> str:
    """Return the value of a comment: a string, or the rest of the line."""
    token = Source(raw).token() if raw.startswith((b"(", b"<")) and not raw.startswith(b"(atend)") else END
    # A value that only begins with a bracket is not a string.
    whole = isinstance(token, Text) and raw.rstrip().endswith((b")", b">"))
    return (
        _decode_text_string(bytes(token.data), charset) if whole and isinstance(token, Text) else _decode_text_string(raw, charset)
    )


def _decode_text_string(raw: bytes, charset: str = "") -> str:
    """Decode a PDF text string (ISO 32000-1, 7.9.2.2), on one line."""
    return squeeze(raw[2:].decode("utf-16-be", "replace") if raw.startswith(b"\xfe\xff") else decode(raw, charset))


def _add_marks(page: Page, found: Found, charset: str) -> None:
    """Add metadata that the file states for a PDF made from it (pdfmark Reference: DOCINFO, OUT)."""
    for record in page.records:
        kind = record[-1] if record else None
        values = zip(record[::2], record[1::2], strict=False)
        pairs = {str(name): _decode_text_string(bytes(value.data), charset) for name, value in values if isinstance(value, Text)}
        if kind == "DOCINFO":
            add_info(pairs, found)
            found.add("date", iso_date(pairs.get("CreationDate", "")))
        elif kind == "OUT":
            found.add("headings", pairs.get("Title", ""), 200)


def _headline(shown: list[list[Piece]]) -> str:
    """Return the first lines in the page's largest type; "" if it is hardly larger than the rest."""
    chars = [char for line in shown[:40] for char in "".join(piece.text for piece in line) + "\n"]
    sizes = [size for line in shown[:40] for size in [piece.size for piece in line for _ in piece.text] + [0.0]]
    return headline(chars, sizes)


SUMMARIZER = Summarizer(types=("PostScript",), run=run)
