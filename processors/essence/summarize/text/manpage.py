"""Manual pages, -man and -mdoc: name, purpose, sections, references to other pages (Essence, seed 003, table 3, ManPage).

The text approximates troff's output: requests are removed, the arguments of font macros stay, escapes become characters
(groff_man(7), mdoc(7), groff_char(7)). A page that consists of `.so other` gets that page as its only reference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice, takewhile
from typing import BinaryIO

from processors.essence.formats.text import read_text, squeeze
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize._dates import iso_date
from processors.essence.summarize.text._author_names import SHORT, people
from processors.essence.summarize.text._troff import expand, unescape

MAX_TEXT = 2_048
"""Bytes of partial-text."""
MAX_LINES = 2_000
MAX_SECTIONS = 200
MAX_AUTHORS = 8_192
"""Characters of a section on authors."""
MAX_HEADING = 1_000
"""Characters of a heading that are examined."""

_SECTION = re.compile(r"^\.[ \t]*S[hH][ \t]+(.*)\n?", re.MULTILINE)
_SUBSECTION = re.compile(r"^\.[ \t]*S[sS][ \t]+(.*)", re.MULTILINE)
_TITLE = re.compile(r"^\.[ \t]*(?:TH|Dt)[ \t]+(\"[^\"\n]{1,200}+\"|[^\s\"]+)[ \t]+\"?([^\s\"]*)", re.MULTILINE)
_WORD = r"(?:\"[^\"\n]*+\"|[^\s\"]++)"
_PRINTED_ON = re.compile(rf"^\.[ \t]*(TH[ \t]+{_WORD}[ \t]+{_WORD}|Dd)[ \t]+([^\n]{{1,200}})", re.MULTILINE)
"""The date of a page, with what follows it: the third argument of TH, or all those of Dd, which precedes the title."""
_DD = re.compile(r"^\.[ \t]*(Dd)[ \t]+([^\n]{1,200})", re.MULTILINE)
_SOURCE = re.compile(r"\A(?:[.'][ \t]*+\\\".*+\n|\s++|(?!))*+\.so[ \t]++(\S+)")
_FONT = re.compile(r"\\(?:f(?:\(..|\[[^\]\n]{0,20}\]|.)|[-&|^%])|^[.'][ \t]*+(?:\\\"[^\n]*+|\S{0,20}+)", re.MULTILINE)
"""Font changes, escapes that print nothing or a hyphen, names of macros."""
_ADDRESS = re.compile(
    r"^\.(?:MT|UR)[ \t]++(\S{1,200}+)[ \t]*+\n((?:(?!\.)[^\n]{0,300}+\n|(?!)){1,3}+)\.(?:ME|UE)[ \t]*+([^\n]{0,50}+)\n?",
    re.MULTILINE,
)
"""A link and its text: the address follows the text (groff_man(7), "MT", "UR")."""
_BREAK = re.compile(r"\.[ \t]*+(br|sp|PP|P|LP|TP|TQ|IP|HP|RS|RE|Pp|It|Bl|El|SS|Ss|INDENT|UNINDENT|nf|fi|EX|EE)(?![\w])")
"""Requests that end a line of output."""
_TELLING = frozenset(("IP", "It", "SS", "Ss"))
"""Those of _BREAK that print something themselves."""
_AUTHORS = re.compile(r"AUTHOR(?:S|\(S\))?(?![A-Z])")
_AN = re.compile(r"^\.[ \t]*+An[ \t]++([^-\s][^\n]{0,200})", re.MULTILINE)
_COMMA = re.compile(r"[ \t]++(?:,|and)(?![^\s])")
_BARE = re.compile(r"[^\W\d_][\w.'\u2019@<>-]*+(?:,? [\w.'\u2019@<>-]++|(?!)){0,4}+\.?")
_DASH = re.compile("\\s(?:-{1,3}|\u2014|\u2013)\\s")
_DEFINES = (".de ", ".de1 ", ".am ", ".ig")
"""Requests whose body extends to a line with two dots."""
_REFERENCE = re.compile(r"([A-Za-z0-9_][\w.:+-]{0,60})[ \t]?\(([1-9n][a-z]{0,10})\)")
_XR = re.compile(r"^\.[ \t]*Xr[ \t]+(\S+)[ \t]+([1-9]\w*)", re.MULTILINE)
_INDENTED = {"TP": 0, "HP": 0, "IP": 1}
"""Macros with the number of arguments that are printed; an indentation follows those."""
_FONTS = frozenset(("B", "I", "BR", "RB", "BI", "IB", "IR", "RI", "SM", "SB", "R", "CW"))
_KEPT = "TP IP HP UR MT OP SY Nm Nd Fl Ar Op Pa Cm Ev Va Fa Fn Em Sy Ql Dq Sq Pq It Xr Bq Aq Li Dv Er In Vt Ft Sx Mt"
_KEEP = frozenset(_KEPT.split())
"""Macros whose arguments are printed."""
_MDOC = {"Fl": "-", **dict.fromkeys(_KEEP - {"Fl"}, ""), "Ns": "", "No": "", "Ta": "", "Oo": "", "Oc": "", "Ux": "Unix"}
_DATED = re.compile(r"\b(?:19|20)\d\d\b")
_VERSION = re.compile(r"(?i:version|release|v\d|rev)")
_MONTH = r"(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)(?:[a-z]{3,6}+)?\.?"
_WITHIN = re.compile(
    rf"(?i)(?<![\w.-])(?:(?:19|20)\d\d-\d\d-\d\d|(?:\d{{1,2}}[ /-])?{_MONTH}[ /-](?:\d{{1,2}},? )?(?:19|20)\d\d)(?![\w.-])"
)
_ISO = re.compile(r"(?:19|20)\d\d(?:-|\Z)")
_AMERICAN = re.compile(r"\A(0[1-9]|1[0-2])/([0-3]\d)/(\d{4})\Z")
_DOCBOOK = "Generator: DocBook XSL"
"""Generator whose pages have dates with the month first, then the day."""
_ARGUMENT = re.compile(r"\"((?:[^\"]++|\"\")*+)\"?|(\S+)")


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add title, description, section, headings, see-also and partial-text."""
    text = expand(read_text(body, facts.charset))
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
    text = _ADDRESS.sub(lambda m: f"{squeeze(m[2])} <{m[1].removeprefix('mailto:')}>{m[3]}\n", text)
    _sections(text, found, name=unescape(head[1].strip('"')) if head else facts.name.decode("utf-8", "replace"))


def _date(argument: str, *, alone: bool, docbook: bool) -> str:
    """Return the date from TH (third argument and what follows) or Dd (all), in ISO 8601 if unambiguous; "" if there is none."""
    arguments = [argument] if alone else [a or b for a, b in _ARGUMENT.findall(argument)]
    stated = [squeeze(unescape(a)).removeprefix("$Mdocdate:").strip(" $") for a in arguments]
    first = _AMERICAN.sub(r"\3-\1-\2", stated[0]) if docbook and stated else "".join(stated[:1])
    whole = iso_date(first) if _DATED.search(first) and not _VERSION.match(first) else ""
    # Some pages have a version with its date in place of the date: take only the date.
    within = next((w for w in map(_WITHIN.search, stated) if w), None) if not _ISO.match(whole) else None
    return iso_date(within[0].replace("/", " ")) if within else whole


def _sections(text: str, found: Found, name: str) -> None:
    marks = [*islice(_SECTION.finditer(text), MAX_SECTIONS)]
    ends = [*(m.start() for m in marks[1:]), len(text)][: len(marks)]
    heads = [squeeze(unescape(m[1][:MAX_HEADING].strip().strip('"'))) for m in marks]
    sections = {h.upper(): text[m.end() : end] for h, m, end in zip(heads, marks, ends, strict=True)}
    # Without sections, a page states no purpose.
    more = _name_lines(text[marks[0].end() : ends[0]] if marks else "", name, found)
    for heading in heads:
        found.add("headings", heading, 200)
    for heading in _SUBSECTION.findall(text)[:50]:
        found.add("headings", squeeze(unescape(heading[:MAX_HEADING].strip().strip('"'))), 200)
    see = next((body for heading, body in sections.items() if heading.startswith("SEE ALSO")), "")
    for page, section in (*_REFERENCE.findall(_printed(see[:20_000], 8_000)), *_XR.findall(see)):
        found.add("see-also", f"{page}({section})")
    authors = next((body for heading, body in sections.items() if _AUTHORS.match(heading)), "")
    for person in _authors(authors[:MAX_AUTHORS]):
        found.add("author", person, 200)
    text = more + text[ends[0] :] if marks else text
    found.body(_printed(text, found.most(MAX_TEXT)), MAX_TEXT, whole="" if found.full else _FONT.sub("", text))


def _name_lines(section: str, name: str, found: Found) -> str:
    r"""Add title and description from the NAME section, `names \- purpose` (man-pages(7)); return the text after them."""
    line, more = "", ""
    parts = _paragraphs(section)
    for part in parts:
        line = squeeze(f"{line} {_printed(part, 500)}")
        if _DASH.search(line):
            more = "\n".join(parts)
            break
    names, purpose = (*_DASH.split(line, maxsplit=1), "")[:2]
    names = names.rstrip(" -\u2014\u2013").replace(" ,", ",")
    found.add("title", f"{names} - {purpose}" if purpose else names or name, 300)
    found.add("description", purpose, 500)
    return more


def _paragraphs(section: str) -> Iterator[str]:
    """Yield the paragraphs of a section, in source form: lines that troff fills into one."""
    kept: list[str] = []
    filled = True
    for line in section.split("\n"):
        request = _BREAK.match(line)
        if kept and (request or not filled or not line.strip() or line[0] in " \t"):
            yield "\n".join(kept)
            kept = []
        if request is None or request[1] in _TELLING:
            kept.append(line)
        elif request[1] in ("nf", "EX", "fi", "EE"):
            filled = request[1] in ("fi", "EE")
    yield "\n".join(kept)


def _authors(section: str) -> list[str]:
    """Return the people whom a section on authors names, with addresses; if none, its short lines that are not sentences."""
    if given := _AN.findall(section):
        return [person for line in given for person in _given(line)]
    lines = [line for part in _paragraphs(section) if (line := squeeze(_printed(part, 2_000)))]
    found = [person for line in lines for person in people(line)]
    return found or [line.strip(" ,.") for line in lines if len(line) <= SHORT and _BARE.fullmatch(line)][:10]


def _given(line: str) -> Iterator[str]:
    """Yield the people in the arguments of An, each with the address after Aq or Mt (mdoc(7))."""
    for person in _COMMA.split(line):
        words = [unescape(a or b) for a, b in _ARGUMENT.findall(person)]
        mail = next((word.strip("<>") for word in words if "@" in word), "")
        name = squeeze(" ".join(takewhile(lambda word: word not in _MDOC and "@" not in word and word != ".", words)))
        yield f"{name} <{mail}>" if name and mail else name or mail


def _printed(text: str, limit: int) -> str:
    """Return about the first `limit` characters of troff's output for a text, one line for each input line."""
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
    """Return the output of a request or macro line."""
    name, _, rest = line[1:].strip().partition(" ")
    if name in _FONTS:
        arguments = [a or b for a, b in _ARGUMENT.findall(rest)]
        return ("" if len(name) > 1 and name not in ("SM", "SB", "CW") else " ").join(arguments)
    if name == "Xr":
        page, _, section = rest.partition(" ")
        return f"{page}({section[:1]})"
    if name == "Nd":
        # Its arguments are one text, quoted or not.
        return "- " + " ".join(a or b for a, b in _ARGUMENT.findall(rest))
    if name in ("MTO", "URL"):
        # Macros of asciidoctor: an address, its text, and what follows.
        address, text, after, *_ = (*(a or b for a, b in _ARGUMENT.findall(rest)), "", "", "")
        return f"{text} <{address}>{after}"
    if name in ("SH", "SS", "Sh", "Ss"):
        return rest.strip().strip('"')
    if name in _KEEP:
        words = [_MDOC.get(b, b) if b else a for a, b in _ARGUMENT.findall(rest)][: _INDENTED.get(name)]
        return ("-" if name == "Fl" else "") + " ".join(w for w in words if w).replace("- ", "-")
    return ""


SUMMARIZER = Summarizer(types=("ManPage",), run=run)
