"""Info, as makeinfo generates it from a Texinfo manual: title, description, chapters and sections, the first text.

A line with 0x1F separates nodes (Texinfo 7.1, "Info Format Specification"); a preamble precedes the first one, with the manual's
entries in the directory of all manuals. Headings are underlined by `*`, `=`, `-` and `.`, from chapters down.
"""

from __future__ import annotations

import re
from typing import BinaryIO

from processors.essence.formats.text import read_text, squeeze
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize._text import add_references, first_sentence, paragraphs
from processors.essence.summarize.source._source import add_all
from processors.essence.summarize.text.rawtext import raw_text

MAX_READ = 1 << 20

_NODE = re.compile(r"^\x1f\f?\n?", re.MULTILINE)
_FILE = re.compile(r"\AFile: [^\n]*\n*")
_TOP = re.compile(r"\AFile: [^\n]{1,300}?Node: Top\b")
_TELLS_NOTHING = frozenset(("top", "introduction", "overview", "preface", "short contents", "table of contents"))
"""Headings of the first node, in lower case, that are not titles of a manual."""
_TABLES = ("Tag Table:", "Indirect:", "Local Variables:", "End Tag Table")
"""Beginnings of nodes for programs that read the file."""
_MADE = re.compile(
    r"\AThis is (?:Info file )?\S{1,100},\s{1,9}produced by (\S{1,50}(?: version [^\s]{1,50})?)\s{1,9}from\s(?:the\s)?"
    r"(?:input\s)?(?:file\s)?(\S{1,200}?)\.?\n"
)
_UNDERLINE = r"(?:\*{3,}+|={3,}+|-{3,}+|\.{3,}+)[ \t]*$"
_HEADING = re.compile(rf"^(\S[^\n]{{0,200}})\n{_UNDERLINE}", re.MULTILINE)
_LINES = re.compile(rf"^{_UNDERLINE}\n?", re.MULTILINE)
_SECTION = re.compile(r"^INFO-DIR-SECTION[ \t]++([^\n]{1,200})", re.MULTILINE)
_ENTRY = re.compile(
    r"^\*[ \t]++([^:\n]{1,100}):[ \t]*+\([^)\n]{1,100}\)([^.\n]{0,100})\.?([^\n]{0,200}(?:\n[ \t]{6,}[^\n]{1,200}){0,3})",
    re.MULTILINE,
)
"""An entry of the directory: its name, the node unless it is the whole manual, the description."""
_DIRECTORY = re.compile(
    r"^INFO-DIR-SECTION[^\n]*\n|^START-INFO-DIR-ENTRY\n(?:(?!END-)[^\n]*+\n|(?!))*+(?:END-INFO-DIR-ENTRY\n?)?", re.MULTILINE
)
_MENU = re.compile(
    r"^\* [^\n]*::?[^\n]*(?:\n[ \t]{20,}[^\n]++|(?!))*+\n?|^\* Menu:[ \t]*\n?|^\W{1,5}The Detailed Node Listing[^\n]*\n?",
    re.MULTILINE,
)
_MARKED = re.compile(r"\0\x08\[([^\0]{0,600})\0\x08\]")
"""Placeholder of an image or an index, for programs that can display it."""
_ALT = re.compile(r"alt=\"([^\"]{1,300})\"")
_NOTE = re.compile(r"\*[Nn]ote\s{1,9}([^:\n]{1,100})::")


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add title, description, category, generator, source-file, headings, keywords, url-references and partial-text."""
    text = _MARKED.sub(_shown, read_text(body, facts.charset, max(MAX_READ, found.full)))
    preamble, *nodes = _NODE.split(text)
    pages = [_FILE.sub("", node) for node in nodes if not node.startswith(_TABLES)]
    entries = [(squeeze(name), not node.strip(), squeeze(said)) for name, node, said in _ENTRY.findall(preamble)]
    # A manual whose first node has no heading gets its name in the directory as title.
    name, _, said = next((entry for entry in entries if entry[1]), entries[0] if entries else ("", True, ""))
    found.add("title", _title(next((node for node in nodes if not node.startswith(_TABLES)), ""), pages, name), 300)
    about = first_sentence(next(iter(paragraphs(_prose(preamble))), ""))
    add_all(found, "description", [said, "" if about.startswith("Copyright") else about])
    add_all(found, "category", _SECTION.findall(preamble))
    if made := _MADE.match(preamble):
        add_all(found, "generator", [made[1]])
        add_all(found, "source-file", [made[2]])
    add_all(found, "headings", (heading[1] for page in pages for heading in _HEADING.finditer(page)))
    add_all(found, "keywords", (name for name, whole, _ in entries if not whole))
    add_references(found, text)
    prose = re.sub(r"\n{3,}", "\n\n", "\n".join(map(_prose, pages))).strip()
    raw_text(prose or _prose(preamble), found)


def _title(first: str, pages: list[str], name: str) -> str:
    """Return the title of a manual, or of a part without its first node: then with the first heading. `name`: the directory's."""
    called = _HEADING.match(pages[0]) if pages else None
    heading = called[1].strip() if called else ""
    if pages and not _TOP.match(first):
        return f"{name}: {heading}" if name and heading else name or heading
    return name if name and heading.lower() in _TELLS_NOTHING else heading or name


def _prose(page: str) -> str:
    """Return the prose of a node, without menus, directory entries and underlines of headings."""
    return _NOTE.sub(r"\1", _LINES.sub("", _MENU.sub("", _DIRECTORY.sub("", _MADE.sub("", page)))))


def _shown(mark: re.Match[str]) -> str:
    said = _ALT.search(mark[1])
    return said[1] if said else ""


SUMMARIZER = Summarizer(types=("Info",), run=run)
