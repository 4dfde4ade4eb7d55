"""FrameMaker's MIF (Adobe, "MIF Reference"): metadata, headings, the first text.

Statements are read in order; paragraphs count from the first text flow on, not in the catalogues before it. The binary format has
no readable text: only the name is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from processors.essence.formats.text import read_text, squeeze
from processors.essence.summarize._base import Facts, Found, Summarizer

MAX_READ = 4 << 20
MAX_TEXT = 8_192

# An unterminated string matches too, so that its content is not scanned again for each statement that seems to begin in it.
_STATEMENT = re.compile(r"<(TextFlow|Para|PgfTag|String|Char|Key|Value|PgfNumString)\b[ \t]*+(?:`([^'\n]{0,4000}+)'?|(\w{1,40}))?")
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2}) ?|u([0-9a-fA-F]{4})|(.))")
_PLAIN = {"q": "'", "Q": "`", "t": "\t"}
_OWN = {"04": "", "05": "", "06": "", "08": "\t", "09": "\n", "10": " ", "11": " ", "12": " ", "13": " ", "14": " ", "15": "-"}
_HEADING = re.compile(r"(?i).*(?:head|title|chapter|section|appendix|^h\d)")
_TITLE = re.compile(r"(?i).*title")
CHARS = {"HardReturn": "\n", "Tab": "\t", "HardSpace": " ", "EnDash": "\u2013", "EmDash": "\u2014", "Bullet": "•", "ThinSpace": " "}
KEYS = {"Title": "title", "Author": "author", "Subject": "description", "Keywords": "keywords", "Creator": "generator"}


def _text(raw: str) -> str:
    """Return a MIF string with its escapes replaced."""
    return _ESCAPE.sub(_escape, raw)


def _escape(found: re.Match[str]) -> str:
    """Return the text of an escape; two digits are a code of FrameMaker's own set, whose letters are those of the Macintosh."""
    if found[1]:
        return _OWN.get(found[1]) or bytes.fromhex(found[1]).decode("mac_roman")
    return chr(int(found[2], 16)) if found[2] else _PLAIN.get(found[3], found[3])


def _paragraphs(text: str, found: Found) -> Iterator[tuple[str, str]]:
    """Yield tag and text of the paragraphs of text flows; add metadata on the way."""
    flowing, tag, key = False, "", ""
    parts: list[str] = []
    for name, quoted, word in _STATEMENT.findall(text):
        if name in ("TextFlow", "Para"):
            if parts:
                yield tag, squeeze("".join(parts))
            flowing, tag, parts = flowing or name == "TextFlow", "", []
        elif name == "Key":
            key = KEYS.get(quoted, "")
        elif name == "Value" and key:
            found.add(key, _text(quoted), 1_000)
            key = ""
        elif flowing and name == "PgfTag":
            tag = quoted
        elif flowing and name in ("String", "Char"):
            parts.append(CHARS.get(word, "") if name == "Char" else _text(quoted))
    if parts:
        yield tag, squeeze("".join(parts))


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add title, author, keywords, headings and partial-text."""
    text = read_text(body, facts.charset, MAX_READ)
    if text.startswith("<MakerFile"):
        return
    lines: list[str] = []
    room = found.most(MAX_TEXT)
    for tag, line in _paragraphs(text, found):
        if not line:
            continue
        if _TITLE.match(tag):
            found.set("title", line, 300)
        if _HEADING.match(tag):
            found.add("headings", line, 200)
        if room > 0:
            lines.append(line)
            room -= len(line) + 1
    found.body("\n".join(lines), MAX_TEXT)
    found.set("title", found.text("headings"), 300)


SUMMARIZER = Summarizer(types=("FrameMaker",), run=run)
