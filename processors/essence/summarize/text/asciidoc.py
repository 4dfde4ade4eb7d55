"""AsciiDoc: title, authors and revision from the header, attributes, headings, text (AsciiDoc Language Documentation).

Line by line: delimited blocks of comment, listing, literal or passthrough contribute no headings, those of comment and passthrough
no text either.
"""

from __future__ import annotations

import re
from typing import BinaryIO

from processors.essence.formats.text import read_text, squeeze
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize._front_matter import take_front_matter
from processors.essence.summarize._text import add_references, first_sentence
from processors.essence.summarize.source._source import add_all
from processors.essence.summarize.text.rawtext import raw_text

MAX_READ = 262_144
MAX_LINES = 20_000
HEADINGS = 150

_DELIMITER = re.compile(r"(-{4,}|\.{4,}|\+{4,}|/{4,}|```.{0,20})[ \t]*")
_SECTION = re.compile(r"={1,6}[ \t]+(\S.{0,250}?)(?:[ \t]+=+)?[ \t]*")
_UNDERLINE = re.compile(r"(?:={2,}|-{2,}|~{2,}|\^{2,}|\+{2,})[ \t]*")
_ATTRIBUTE = re.compile(r":([a-z][\w-]{0,30}):[ \t]+(.{1,500})")
_AUTHOR = re.compile(r"([^\W\d_][^<>;:]{1,80}?) ?(?:<([^<>]{1,100})>)?")
_REVISION = re.compile(
    r"(?:v(\d[\w.]{0,20}))?(?:,?[ \t]*)(\d{4}-\d\d-\d\d|\d{1,2} \w{3,9} \d{4}|\w{3,9} \d{1,2}, \d{4})?(?::.{0,100})?"
)
_MACRO = re.compile(
    r"(include|image|video|audio|link|xref|mailto|footnote|kbd|btn|menu|pass|stem|icon|linkgit|ifdef|ifndef|endif|ifeval)::?([^\s\[\]]{0,300})\[([^\]\n]{0,300})\]"
)
_INLINE = re.compile(
    r"<<[^<>,\n]{1,100}(?:,[ \t]*([^<>\n]{1,200}))?>>|(?<![\w*_`+#])([*_`+#]{1,2})(?=\S)([^*_`+#\n]{1,200})\2(?!\w)|"
    r"\[\[[^\]\n]{0,100}\]\]|\[[#.][^\]\n]{0,100}\]"
)
_NAMES = {
    "author": "author", "authors": "author", "description": "description", "keywords": "keywords", "revnumber": "version",
    "revdate": "date", "lang": "language", "doctitle": "title", "copyright": "copyright", "orgname": "organization",
}  # fmt: skip


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add title, author, version, date, attributes, headings, includes, url-references and partial-text."""
    text = take_front_matter(read_text(body, facts.charset, MAX_READ), found)
    lines = text.split("\n")[:MAX_LINES]
    headings, prose = _read(lines, found)
    found.set("title", headings[0] if headings else "", 300)
    for heading in headings[:HEADINGS]:
        found.add("headings", heading, 200)
    abstract = text.partition("\n[abstract]\n")[2][:4_000].partition("\n\n")[0]
    found.add("abstract", _bare(squeeze(abstract)))
    found.set("description", first_sentence(found.text("abstract")))
    add_all(found, "includes", (target for name, target, _ in _MACRO.findall(text) if name == "include"))
    add_references(found, text)
    raw_text("\n".join(prose), found)


def _read(lines: list[str], found: Found) -> tuple[list[str], list[str]]:
    """Return headings and lines of text; add the attributes of the header to `found`."""
    headings: list[str] = []
    prose: list[str] = []
    until = ""
    for number, line in enumerate(lines):
        if until:
            until = "" if line.rstrip() == until else until
            if until[:1] not in "/+":
                prose.append(line)
            continue
        section = _SECTION.fullmatch(line)
        if section or _underlined(line, lines[number + 1] if number + 1 < len(lines) else ""):
            headings.append(_bare(section[1] if section else line))
            prose.append(headings[-1])
            if len(headings) == 1:
                below = number + 1 if section else number + 2
                _header(lines[below : below + 20], found)
        elif delimiter := _DELIMITER.fullmatch(line):
            until = "```" if delimiter[1].startswith("```") else line.rstrip()
        elif not line.startswith(("//", "[", ".", ":")) and not _UNDERLINE.fullmatch(line):
            prose.append(_bare(line))
        elif attribute := _ATTRIBUTE.fullmatch(line):
            _attribute(attribute[1], attribute[2], found)
    return headings, prose


def _underlined(line: str, below: str) -> bool:
    """Whether a line is a two-line title: the length of its underline differs from its own by at most two characters."""
    return (
        3 <= len(below.rstrip()) <= 250
        and abs(len(line.rstrip()) - len(below.rstrip())) <= 2
        and not line.startswith(("[", "."))
        and any(map(str.isalpha, line))
        and bool(_UNDERLINE.fullmatch(below))
    )


def _header(below: list[str], found: Found) -> None:
    """Add author and revision from the lines that may follow the document title."""
    lines = [squeeze(line[:1_000]) for line in below if not line.startswith("//")]
    author = _AUTHOR.fullmatch(lines[0].partition(";")[0]) if lines and not lines[0].startswith((":", "=", "[")) else None
    if not author or not (author[2] or (author[1][0].isupper() and len(author[1].split()) <= 4)):
        return
    for each in lines[0].split(";"):
        one = _AUTHOR.fullmatch(each.strip())
        found.add("author", one[1] if one else "", 200)
    revision = _REVISION.fullmatch(lines[1].strip()) if len(lines) > 1 else None
    if revision:
        found.add("version", revision[1] or "", 50)
        found.add("date", revision[2] or "", 50)


def _attribute(name: str, value: str, found: Found) -> None:
    kind = _NAMES.get(name, "")
    if kind == "title":
        found.set("title", _bare(value), 300)
    elif kind:
        for part in value.split(",") if kind == "keywords" else [value]:
            found.add(kind, _bare(part), 500)


def _bare(text: str) -> str:
    """Return a line without inline markup; macros leave the text in their brackets."""
    text = _MACRO.sub(lambda m: m[3] or m[2] if m[1] in ("link", "xref", "mailto", "kbd", "btn", "menu", "linkgit") else "", text)
    return _INLINE.sub(lambda m: m[1] or m[3] or "", text).rstrip()


SUMMARIZER = Summarizer(types=("AsciiDoc",), run=run)
