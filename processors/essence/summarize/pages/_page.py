"""Text of a page, one block a line, from lexbor's tree.

Strategy: each property of a node is a call into the parser, so that few are read. One traversal collects the relevant elements by
their tag ids. For all text, inline elements are unwrapped: only blocks remain as separators, and the parser returns the texts
between them in one call. For the first text only, a second traversal goes from node to node, and stops early.

Laws:
- Both ways return the same text.
- Collected elements take memory: a page with more than WHOLE tags is traversed node by node.
- Readings of a ruby are no text (`parse`): between the letters they would split the words that people search. A reading with a
  block in it was not closed, and stays: the rest of the page is in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from processors.essence.formats.text import Decoded, identify, squeeze
from processors.essence.summarize.pages._nesting import parsable

MAX_TEXT = 2_048
"""Bytes of the main text that are kept."""
DECLARATION = 2_048
"""Bytes of the start of a page in which it may declare its charset; the standard asks for 1,024."""
_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*+=\s*+[\"']?\s*+([A-Za-z0-9_:.-]{2,40})", re.IGNORECASE)
_XML = re.compile(rb"<\?xml[^>]{0,200}?encoding\s*+=\s*+[\"']\s*+([A-Za-z0-9_:.-]{2,40})")
WHOLE = 250_000
"""Maximum tags of a page whose text the parser returns in one call: each of them takes 100 bytes."""
MARK = "\0"
"""Line separator. It is in no page's text: the parser drops it, or replaces it by U+FFFD (HTML, 13.2.5 and 13.2.6.4)."""

READINGS = 500_000
"""Maximum readings that are removed from a page; one with more of them keeps all."""
_READING = "ruby > rt, ruby > rp, ruby > rtc, ruby > * > rt, ruby > * > rp"
"""Annotations of a ruby and their parentheses (HTML, 4.5.11 and 4.5.12); elsewhere these elements are text like any other."""
_WITHIN = "p, div, li, table, h1, h2, h3, h4, h5, h6, pre, blockquote, section, article, dl"
"""Elements that are in no reading: the parser puts what follows one that is not closed into it."""
UNCLOSED = 50
"""Readings with such elements after which no more are removed."""
_GLYPHS = re.compile(r"[\s\u2e80-\u312f\u31a0-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]*+")
"""Text in a script that has no spaces between words."""


def numbers(names: str) -> dict[int, str]:
    """Return the names by lexbor's tag ids: an id is the cheapest property of a node."""
    tree = LexborHTMLParser("")
    return {tree.create_node(name).tag_id: name for name in names.split()}


_COMMENT, _TEXT = (node.tag_id for node in LexborHTMLParser("<body><!---->x").css("body")[0].iter(include_text=True))
_UNSEEN = frozenset(numbers("script style noscript template"))
_HIDDEN = _UNSEEN | {_COMMENT, *numbers("head")}
"""Elements whose text is not displayed."""
_NOISE = _HIDDEN.union(numbers("svg nav footer aside form select iframe object"))
"""Elements without text of the page's own."""
_DROPPED = _UNSEEN | {_COMMENT}
"""Elements that are removed from the tree before the parser returns the text."""
_MAIN = frozenset(numbers("main article"))
"""Elements with the main text of a page, if there is exactly one of them."""
_BLOCKS = frozenset(
    numbers(
        "br hr img p div li ul ol dl dt dd h1 h2 h3 h4 h5 h6 pre table tr td th blockquote section article main header center "
        "address caption figure figcaption details summary title body fieldset legend option"
    )
)
"""Block elements, which separate words; all others are inline."""
_LEFT = _BLOCKS.union(numbers("html head tbody thead tfoot colgroup col"))
"""Elements that remain while the parser returns the text: blocks, and those without text beside them."""


class Parsed(NamedTuple):
    """A parsed page."""

    tree: LexborHTMLParser
    cut: str
    """Why it is not all of the page; "" if it is."""
    encoding: str
    """The encoding that the page was in, as `charsets.encoding` names it."""


def parse(raw: bytes, charset: str = "") -> Parsed:
    """Parse a page as far as possible. `charset`: as the source declares it, which counts before what the page declares."""
    decoded = decoded_page(raw, charset)
    # In UTF-8, as the parser reads it: in some charsets the bytes of a tag do not look like one.
    page, cut = parsable(decoded.text.encode("utf-8", "ignore"))
    tree = LexborHTMLParser(page)
    if (b"<rt" in page or b"<RT" in page) and page.count(b"<rt") + page.count(b"<rp") <= READINGS:
        _remove_readings(tree)
    return Parsed(tree, cut, decoded.encoding)


def decoded_page(raw: bytes, charset: str = "") -> Decoded:
    """Return the text of a page, and its encoding. `charset`: as the source declares it, which counts before its declaration."""
    return identify(raw, charset, _declared(raw[:DECLARATION]))


def _declared(start: bytes) -> str:
    """Return the charset that a page declares in a meta element or an XML declaration; "" for none (HTML, 13.2.3.2).

    What can be read as ASCII so far is not in UTF-16, whatever it says.
    """
    meta = _CHARSET.search(start) or _XML.match(start)
    label = meta[1].decode("ascii") if meta else ""
    return "utf-8" if label.lower().startswith("utf-16") else label


def _remove_readings(tree: LexborHTMLParser) -> None:
    """Remove the readings of all rubies from a tree, and in scripts without spaces the line breaks between their letters."""
    unclosed = 0
    for node in tree.css(_READING):
        if node.css_first(_WITHIN) is None:
            node.decompose(recursive=False)
        elif (unclosed := unclosed + 1) >= UNCLOSED:
            break
    room = 2 * len(tree.raw_html)
    for ruby in tree.css("ruby"):
        text = ruby.text()
        room -= len(text)
        if room < 0:
            # Nested rubies contain each other's text.
            break
        # White space around a base is not rendered (CSS Ruby 1, 3.3), nor is a line break between such letters (CSS Text 3, 4.1.3).
        if text.split() != [text] and _GLYPHS.fullmatch(text) and ruby.css_first(f"a, {_WITHIN}") is None:
            ruby.replace_with("".join(text.split()))


class Page:
    """A page, traversed once. `wanted`: names by tag ids of the elements to collect in `met`.

    `whole`: the main text is all text, with navigation and forms, since a full text leaves nothing out.
    """

    def __init__(
        self, tree: LexborHTMLParser, limit: int = MAX_TEXT, *, whole: bool = False, wanted: Mapping[int, str] | None = None
    ) -> None:
        self._tree = tree
        # A body that framesets have replaced is not in the tree any more (HTML, 13.2.6.4.7).
        self._body = tree.body if tree.body is not None and tree.body.parent is not None else None
        self._limit = limit
        self._whole = whole
        self._dropped: list[LexborNode] = []
        self._mains: list[LexborNode] = []
        self.met: list[tuple[str, LexborNode]] = []
        """The wanted elements in order, each with its name."""
        self._within: list[LexborNode] = []
        """Inline elements."""
        page = tree.raw_html
        self._at_once = whole and (len(page) <= WHOLE or page.count(b"<") <= WHOLE)
        self._walk(wanted or {})

    def _walk(self, wanted: Mapping[int, str]) -> None:
        root, at_once = self._tree.root, self._at_once
        for node in root.traverse() if root else ():
            number = node.tag_id
            if number in wanted:
                self.met.append((wanted[number], node))
            if number in _DROPPED:
                self._dropped.append(node)
            elif at_once and number not in _LEFT:
                self._within.append(node)
            elif number in _MAIN and len(self._mains) <= 1:
                self._mains.append(node)

    def text(self) -> str:
        """Return the main text, one block a line, without navigation, forms and scripts.

        The traversal stops at about `limit` characters. Changes the tree if `whole`.
        """
        if self._at_once:
            self._drop()
            self._join()
            return lines(self._all(MARK)[: self._limit + self._limit // 4])
        node = self._mains[0] if len(self._mains) == 1 and not self._whole else self._body
        return lines(_parts(node, self._limit + self._limit // 4, _HIDDEN if self._whole else _NOISE)) if node else ""

    def has_text(self) -> bool:
        """Whether the page has text of its own, without navigation, forms and scripts. Call it before `text`."""
        return self._body is not None and bool(lines(_parts(self._body, self._limit + self._limit // 4, _NOISE)))

    def words(self, separator: str = "") -> str:
        """Return all displayed text in the parser's order. Removes elements without displayed text from the tree."""
        self._drop()
        return self._all(separator)

    def _all(self, separator: str) -> str:
        return self._body.text(separator=separator) if self._body is not None else ""

    def _drop(self) -> None:
        """Remove elements without displayed text from the tree."""
        # Nested elements come after their parents.
        for node in reversed(self._dropped):
            node.decompose(recursive=False)
        self._dropped.clear()

    def _join(self) -> None:
        """Unwrap inline elements and merge their texts. Only blocks remain in the tree."""
        for node in self._within:
            node.unwrap(delete_empty=True)
        self._within.clear()
        if self._body is not None:
            self._body.merge_text_nodes()


def main_text(tree: LexborHTMLParser, limit: int = MAX_TEXT, *, whole: bool = False) -> str:
    """Return the first text of a page, one block a line; see `Page`."""
    return Page(tree, limit, whole=whole).text()


def lines(text: str) -> str:
    """Return the text with marks as line breaks, white space collapsed, and empty lines dropped."""
    # Most marks are adjacent, with only white space between.
    parts = [part for part in text.replace("\u00ad", "").split(MARK) if part and not part.isspace()]
    return "\n".join([squeeze(part) for part in parts])


def _parts(node: LexborNode, room: int, noise: frozenset[int]) -> str:
    """Return the text in order, with a mark at the start and end of each block."""
    parts: list[str] = []
    # An explicit stack, since the page determines the depth. Iterators, since a node may have a million children.
    stack = [(node.iter(include_text=True), "")]
    while stack and room > 0:
        children, end = stack[-1]
        for child in children:
            number = child.tag_id
            if number == _TEXT:
                parts.append((child.text_content or "")[:room])
                room -= len(parts[-1])
                if room <= 0:
                    break
            elif number not in noise:
                mark = MARK if number in _BLOCKS else ""
                parts.append(mark)
                room -= 1
                stack.append((child.iter(include_text=True), mark))
                break
        else:
            parts.append(end)
            stack.pop()
    return "".join(parts)
