r"""TeX and LaTeX: title, authors, abstract, sections, bibliography, text; for packages and classes what they provide (seed 003).

Macros are not expanded: a document that redefines `\title` is read as if it did not. Plain TeX, AMS-TeX and LaTeX 2.09 are
recognized by the same few commands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import BinaryIO

from processors.essence.formats.text import read_text, squeeze
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize._text import add_references, first_sentence, paragraphs
from processors.essence.summarize.source._source import MAX_SOURCE, add_all, add_comments
from processors.essence.summarize.text._tex import argument, plain_tex

MAX_TEXT = 6_144
"""Characters of partial-text."""
HEADINGS = 150

_COMMENT = re.compile(r"(\\.)|%[^\n]*+\n?", re.DOTALL)
_COMMENTS = re.compile(r"(?:^[ \t]*%[^\n]*\n?)+", re.MULTILINE)
_MARGIN = re.compile(r"^%+[ \t]?", re.MULTILINE)
_OPTION = r"[ \t\n]*+(?:\[[^\]]{0,200}+\][ \t\n]*+)?(?=\{)"
_SAYS = re.compile(rf"\\(title|author|date|keywords|subject|publishers|institute|address|abstract|subtitle)(?![a-zA-Z@]){_OPTION}")
_AMS = re.compile(r"\\(title|author|heading|abstract|keywords)(?![a-zA-Z@])(?!\s*[{\[])([^{}]{1,600}?)\\end\1", re.DOTALL)
_HEADING = re.compile(rf"\\(?:part|chapter|section|subsection|subsubsection|frametitle)\*?{_OPTION}|\\begin\{{frame\}}{_OPTION}")
_BEGINSECTION = re.compile(r"\\beginsection[ \t]++([^\n]{2,200})")
_CLASS = re.compile(r"\\document(?:class|style)[ \t]*+(?:\[[^\]]{0,300}+\])?[ \t]*+\{([\w.-]{1,80})\}")
_PACKAGES = re.compile(r"\\(?:usepackage|RequirePackage)[ \t]*+(?:\[[^\]]{0,300}+\])?[ \t\n]*+\{([^{}]{1,300})\}")
_INCLUDES = re.compile(r"\\(?:input|include|subfile)[ \t]*+\{?([\w./-]{2,200})")
_PROVIDES = re.compile(
    r"\\Provides(?:Expl)?(?:Package|Class|File)[ \t\n%]*+\{([^{}]{1,100})\}[ \t\n%]*+"
    r"(?:\[([^\]]{1,300})\]|\{([^{}]*)\}\s*\{([^{}]*)\}\s*\{([^{}]*)\})?"
)
_DEFINES = re.compile(
    r"\\(?:new|renew|provide|DeclareRobust)?(?:[cC]ommand|environment|NewDocumentCommand)\*?[ \t]*\{?\\?([a-zA-Z]{3,60})\}?"
)
_BIBITEM = re.compile(r"\\bibitem[ \t\n]*+(?:\[[^\]]{0,200}+\])?[ \t\n]*+\{[^{}]{0,200}+\}")
_BIBLIOGRAPHY = re.compile(r"\\(?:bibliography|addbibresource)\{([^{}]{1,300})\}")
_NAMES = {
    "publishers": "publisher",
    "institute": "organization",
    "address": "organization",
    "subject": "keywords",
    "subtitle": "description",
}
_LAYOUT = re.compile(
    r"\\begin\{(equation|align|figure|table|tabular|verbatim|lstlisting|picture|tikzpicture|eqnarray|displaymath)(\*?)\}"
)


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add the preamble's attributes, abstract, headings, required packages, included files, bibliography and partial-text."""
    source = read_text(body, facts.charset, MAX_SOURCE)
    if facts.name.lower().endswith(b".dtx"):
        source = _MARGIN.sub("", source)
    text = _COMMENT.sub(r"\1", source)
    _provides(text, found)
    _head(text, found)
    add_all(found, "headings", filter(None, _headings(text)))
    add_all(found, "imports", (name.strip() for names in _PACKAGES.findall(text) for name in names.split(",")))
    add_all(found, "includes", _INCLUDES.findall(text))
    add_all(found, "bibliography", (name.strip() for names in _BIBLIOGRAPHY.findall(text) for name in names.split(",")))
    for item in islice(_BIBITEM.finditer(text), 100):
        found.add(
            "references",
            _flat(text[item.end() : item.end() + 400].partition("\n\n")[0].partition("\\bibitem")[0].partition("\\end{")[0]),
            300,
        )
    add_references(found, text)
    if "version" in found.attributes and "\\begin{document}" not in text:
        add_comments(found, (m[0] for m in _COMMENTS.finditer(source)))
    else:
        _text(text, found)


def _provides(text: str, found: Found) -> None:
    """Add the name, version and description that a package, class or file declares (LaTeX2e for class and package writers, 2.3)."""
    provided = _PROVIDES.search(text)
    if not provided:
        return
    name, legacy, date, version, purpose = (squeeze(part or "") for part in provided.groups())
    said = legacy.split() if legacy else [date, version, *purpose.split()]
    words = said[1:] if said and re.fullmatch(r"[\d/-]{8,10}", said[0]) else said
    if words and re.fullmatch(r"v?\d[\w.-]*", words[0]):
        found.add("version", words.pop(0), 50)
    found.add("description", plain_tex(" ".join(words)), 300)
    found.add("title", f"{name}: {found.text('description')}" if words else name, 300)
    add_all(found, "macros", _DEFINES.findall(text))


def _head(text: str, found: Found) -> None:
    kind = _CLASS.search(text)
    found.add("document-class", kind[1] if kind else "", 80)
    said = [(m[1], argument(text, m.end())) for m in islice(_SAYS.finditer(text), 50)]
    said += [(m[1], m[2]) for m in islice(_ams(text), 50)]
    for name, value in said:
        # A parameter: this defines a macro that sets a title, and is not the title.
        if "#" in value:
            continue
        if name == "author":
            for author in re.split(r"\\(?:and|And|AND)(?![a-zA-Z])|\\\\\\\\", value):
                found.add("author", _flat(author.partition("\\\\")[0].partition("\\thanks")[0]), 200)
        elif name == "abstract":
            found.add("abstract", _flat(value))
        elif name == "title":
            found.set("title", _flat(value), 300)
        elif name != "heading":
            found.add(_NAMES.get(name, name), _flat(value), 300)
    abstract = text.partition("\\begin{abstract}")[2][:8_000]
    if abstract:
        found.add("abstract", _flat(abstract.partition("\\end{abstract}")[0]))
    if "abstract" in found.attributes:
        found.set("description", first_sentence(found.text("abstract")))


def _ams(text: str) -> Iterator[re.Match[str]]:
    r"""Yield AMS-TeX's commands with their arguments, which end at the command's \end form."""
    return _AMS.finditer(text) if "\\endtitle" in text or "\\endheading" in text else iter(())


def _headings(text: str) -> list[str]:
    """Return the first HEADINGS headings; the arguments of later ones are not read."""
    marks = [(m.end(), "") for m in islice(_HEADING.finditer(text), HEADINGS)]
    marks += [(m.start(), m[1]) for m in islice(_BEGINSECTION.finditer(text), HEADINGS)]
    marks += [(m.start(), m[2]) for m in _ams(text) if m[1] == "heading"]
    return [_flat(said or argument(text, at, 300)) for at, said in sorted(marks)[:HEADINGS]]


def _text(text: str, found: Found) -> None:
    """Add the text of the body, without displayed formulas, tables and program listings."""
    start = max(text.find("\\begin{document}"), 0)
    prose = text[start : start + 10 * found.most(MAX_TEXT)]
    kept, at = [], 0
    for layout in _LAYOUT.finditer(prose):
        end = prose.find(f"\\end{{{layout[1]}{layout[2]}}}", layout.end(), layout.end() + 8_000)
        if layout.start() >= at:
            kept.append(prose[at : layout.start()])
            at = end if end >= 0 else layout.end()
    kept.append(prose[at:])
    lines = (_flat(p) for p in paragraphs(plain_tex("".join(kept))))
    found.body("\n".join(line for line in lines if sum(map(str.isalpha, line)) > 12), MAX_TEXT)


def _flat(text: str) -> str:
    return squeeze(plain_tex(text)).strip(" ,.")


SUMMARIZER = Summarizer(types=("TeX",), run=run)
