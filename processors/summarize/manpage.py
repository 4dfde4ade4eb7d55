r"""Manual pages, -man and -mdoc: name and what it is for, sections, the pages it refers to (Essence, seed 003, table 3, ManPage).

The text is what troff would print, roughly: requests go, the arguments of font macros stay, escapes become characters
(groff_man(7), mdoc(7), groff_char(7)). A page that is only `.so other` names that page.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import BinaryIO

from processors.summarize._base import Facts, Found, Summarizer
from processors.summarize._dates import iso_date
from processors.summarize._text import read_text, squeeze
from processors.summarize._troff import unescape

MAX_TEXT = 2_048
"""Bytes of partial-text."""
MAX_LINES = 2_000
MAX_SECTIONS = 200
MAX_HEADING = 1_000
"""Characters of a heading that are looked at."""

_SECTION = re.compile(r"^\.[ \t]*S[hH][ \t]+(.*)\n?", re.MULTILINE)
_SUBSECTION = re.compile(r"^\.[ \t]*S[sS][ \t]+(.*)", re.MULTILINE)
_TITLE = re.compile(r"^\.[ \t]*(?:TH|Dt)[ \t]+(\"[^\"\n]{1,200}+\"|[^\s\"]+)[ \t]+\"?([^\s\"]*)", re.MULTILINE)
_WORD = r"(?:\"[^\"\n]*+\"|[^\s\"]++)"
_PRINTED_ON = re.compile(rf"^\.[ \t]*(TH[ \t]+{_WORD}[ \t]+{_WORD}|Dd)[ \t]+([^\n]{{1,200}})", re.MULTILINE)
"""The date of a page, with what follows it: the third argument of TH, all those of Dd, which stands before the title."""
_DD = re.compile(r"^\.[ \t]*(Dd)[ \t]+([^\n]{1,200})", re.MULTILINE)
_SOURCE = re.compile(r"\A(?:[.'][ \t]*+\\\".*+\n|\s++|(?!))*+\.so[ \t]++(\S+)")
_FONT = re.compile(r"\\(?:f(?:\(..|\[[^\]\n]{0,20}\]|.)|[-&|^%])|^[.'][ \t]*+(?:\\\"[^\n]*+|\S{0,20}+)", re.MULTILINE)
"""Changes of font, the signs that stand for nothing or a hyphen, the names of macros."""
_DEFINES = (".de ", ".de1 ", ".am ", ".ig")
"""Requests that take in what follows, up to a line with two dots."""
_REFERENCE = re.compile(r"([A-Za-z0-9_][\w.:+-]{0,60})[ \t]?\(([1-9n][a-z]{0,10})\)")
_XR = re.compile(r"^\.[ \t]*Xr[ \t]+(\S+)[ \t]+([1-9]\w*)", re.MULTILINE)
_INDENTED = {"TP": 0, "HP": 0, "IP": 1}
"""Macros with how many arguments are printed: behind them stands an indentation."""
_FONTS = frozenset(("B", "I", "BR", "RB", "BI", "IB", "IR", "RI", "SM", "SB", "R", "CW"))
_KEPT = "TP IP HP UR MT OP SY Nm Nd Fl Ar Op Pa Cm Ev Va Fa Fn Em Sy Ql Dq Sq Pq It Xr Bq Aq Li Dv Er In Vt Ft Sx"
_KEEP = frozenset(_KEPT.split())
"""Macros whose arguments are printed."""
_MDOC = {"Fl": "-", **dict.fromkeys(_KEEP - {"Fl"}, ""), "Ns": "", "No": "", "Ta": "", "Oo": "", "Oc": "", "Ux": "Unix"}
_DATED = re.compile(r"\b(?:19|20)\d\d\b")
_VERSION = re.compile(r"(?i:version|release|v\d|rev)")
_AMERICAN = re.compile(r"\A(0[1-9]|1[0-2])/([0-3]\d)/(\d{4})\Z")
_DOCBOOK = "Generator: DocBook XSL"
"""What makes pages whose dates have the month first, then the day."""
_ARGUMENT = re.compile(r"\"((?:[^\"]++|\"\")*+)\"?|(\S+)")


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add title, description, section, headings, see-also and partial-text."""
    text = read_text(body, facts.charset)
    source = _SOURCE.match(text)
    if source:
        found.add("title", facts.name.decode("utf-8", "replace"))
        found.add("see-also", source[1])
        return
    head = _TITLE.search(text)
    if head:
        found.add("manual-section", head[2])
        if printed := _PRINTED_ON.match(text, head.start()) or _DD.search(text):
            found.add("date", _date(printed[2], alone=printed[1] == "Dd", docbook=_DOCBOOK in text[: head.start()]), 100)
        # Definitions of macros precede the title: half of what pod2man writes.
        text = text[head.start() :]
    _sections(text, found, name=unescape(head[1].strip('"')) if head else facts.name.decode("utf-8", "replace"))


def _date(argument: str, *, alone: bool, docbook: bool) -> str:
    """A date as TH (its first argument here) or Dd (all) state it, in ISO 8601 where that is sure; "" for what is none."""
    first = next(iter(_ARGUMENT.findall(argument)), ("", ""))
    stated = squeeze(unescape(argument if alone else first[0] or first[1])).removeprefix("$Mdocdate:").strip(" $")
    if docbook:
        stated = _AMERICAN.sub(r"\3-\1-\2", stated)
    return iso_date(stated) if _DATED.search(stated) and not _VERSION.match(stated) else ""


def _sections(text: str, found: Found, name: str) -> None:
    marks = [*islice(_SECTION.finditer(text), MAX_SECTIONS)]
    ends = [*(m.start() for m in marks[1:]), len(text)][: len(marks)]
    heads = [squeeze(unescape(m[1][:MAX_HEADING].strip().strip('"'))) for m in marks]
    sections = {h.upper(): text[m.end() : end] for h, m, end in zip(heads, marks, ends, strict=True)}
    # Where there are no sections, nothing says what it is for.
    _name_line(squeeze(_printed(text[marks[0].end() : ends[0]], 500)) if marks else "", name, found)
    for heading in heads:
        found.add("headings", heading, 200)
    for heading in _SUBSECTION.findall(text)[:50]:
        found.add("headings", squeeze(unescape(heading[:MAX_HEADING].strip().strip('"'))), 200)
    see = next((body for heading, body in sections.items() if heading.startswith("SEE ALSO")), "")
    for page, section in (*_REFERENCE.findall(_printed(see[:20_000], 8_000)), *_XR.findall(see)):
        found.add("see-also", f"{page}({section})")
    authors = next((body for heading, body in sections.items() if heading.startswith("AUTHOR")), "")
    found.add("author", squeeze(_printed(authors[:4_000], 300)), 300)
    printed = _printed(text[ends[0] :] if marks else text, found.most(MAX_TEXT))
    found.body(printed, MAX_TEXT, whole="" if found.full else _FONT.sub("", text))


def _name_line(line: str, name: str, found: Found) -> None:
    r"""The NAME section, `names \- what it is for` (man-pages(7)), as title and description."""
    names, purpose = (*re.split("\\s(?:-{1,3}|\u2014|\u2013)\\s", line, maxsplit=1), "")[:2]
    found.add("title", f"{names} - {purpose}" if purpose else names or name, 300)
    found.add("description", purpose, 500)


def _printed(text: str, limit: int) -> str:
    """The first `limit` characters or so of what troff would print of a text, a line an input line."""
    lines: list[str] = []
    room = limit
    defining = False
    for line in text[: 20 * limit].split("\n")[: max(MAX_LINES, limit // 2)]:
        if defining or line.startswith(_DEFINES):
            defining = not line.startswith("..")
            continue
        printed = _macro(line) if line[:1] in (".", "'") else line
        if not printed or printed.isspace():
            continue
        printed = unescape(printed).strip()
        lines.append(printed)
        room -= len(printed) + 1
        if room < 0:
            break
    return "\n".join(lines)[:limit]


def _macro(line: str) -> str:
    """What a line of request or macro prints."""
    name, _, rest = line[1:].strip().partition(" ")
    if name in _FONTS:
        arguments = [a or b for a, b in _ARGUMENT.findall(rest)]
        return ("" if len(name) > 1 and name not in ("SM", "SB", "CW") else " ").join(arguments)
    if name == "Xr":
        page, _, section = rest.partition(" ")
        return f"{page}({section[:1]})"
    if name == "Nd":
        return f"- {rest}"
    if name in ("SH", "SS", "Sh", "Ss"):
        return rest.strip().strip('"')
    if name in _KEEP:
        words = [_MDOC.get(b, b) if b else a for a, b in _ARGUMENT.findall(rest)][: _INDENTED.get(name)]
        return ("-" if name == "Fl" else "") + " ".join(w for w in words if w).replace("- ", "-")
    return ""


SUMMARIZER = Summarizer(types=("ManPage",), run=run)
