"""The text of a page, a block a line, from the tree that lexbor made of it.

Strategy: each question asked of a node is a call into the parser, so that few are asked. One walk meets the elements that matter,
told by their numbers. Where all text is wanted, what stands within lines is taken out of the tree, but for its text: what is left
parts blocks, and the parser gives all texts between them in one go. Where only the first is wanted, a second walk goes from node to
node, and ends there.

Laws:
- Both ways give the same text.
- Elements that are kept take memory: a page with more than WHOLE tags is walked through node by node.
"""

from __future__ import annotations

from collections.abc import Mapping

from selectolax.lexbor import LexborHTMLParser, LexborNode

from processors.essence.formats.text import decode, squeeze
from processors.essence.summarize.pages._nesting import parsable

MAX_TEXT = 2_048
"""Bytes of the main text that are kept."""
WHOLE = 250_000
"""Tags of a page whose text the parser gives in one go: 100 bytes are kept of each of them."""
MARK = "\0"
"""Ends a line. No text of a page has it: the parser drops it, or makes U+FFFD of it (HTML, 13.2.5 and 13.2.6.4)."""


def numbers(names: str) -> dict[int, str]:
    """The parser's numbers of elements by name: they are the cheapest that a node can be asked for."""
    tree = LexborHTMLParser("")
    return {tree.create_node(name).tag_id: name for name in names.split()}


_COMMENT, _TEXT = (node.tag_id for node in LexborHTMLParser("<body><!---->x").css("body")[0].iter(include_text=True))
_UNSEEN = frozenset(numbers("script style noscript template"))
_HIDDEN = _UNSEEN | {_COMMENT, *numbers("head")}
"""Elements whose text nobody sees."""
_NOISE = _HIDDEN.union(numbers("svg nav footer aside form select iframe object"))
"""Elements that hold no text of the page's own."""
_DROPPED = _UNSEEN | {_COMMENT}
"""What is taken out of the tree where the parser gives the text."""
_MAIN = frozenset(numbers("main article"))
"""Elements that hold the text of a page, where there is one of them."""
_BLOCKS = frozenset(
    numbers(
        "br hr img p div li ul ol dl dt dd h1 h2 h3 h4 h5 h6 pre table tr td th blockquote section article main header center "
        "address caption figure figcaption details summary title body fieldset legend option"
    )
)
"""Elements that part words; all others stand within a line."""
_LEFT = _BLOCKS.union(numbers("html head tbody thead tfoot colgroup col"))
"""Elements that may stay where the parser gives the text: blocks, and those that no text stands beside."""


def parse(raw: bytes, charset: str = "") -> tuple[LexborHTMLParser, str]:
    """The tree of a page, as far as it can be parsed, and why that is not all of it; "" where it is."""
    # As the parser reads it: there are charsets in which a tag does not look like one.
    page, cut = parsable(decode(raw, charset).encode("utf-8", "ignore"))
    return LexborHTMLParser(page), cut


class Page:
    """A page that was walked through once. `wanted`: numbers of elements that the caller wants to see, with their names.

    `whole`: the main text is all text, with navigation and forms, since who asks for the full text leaves nothing out.
    """

    def __init__(
        self, tree: LexborHTMLParser, limit: int = MAX_TEXT, *, whole: bool = False, wanted: Mapping[int, str] | None = None
    ) -> None:
        self._tree = tree
        # One that frames have taken the place of is in no tree any more (HTML, 13.2.6.4.7).
        self._body = tree.body if tree.body is not None and tree.body.parent is not None else None
        self._limit = limit
        self._whole = whole
        self._dropped: list[LexborNode] = []
        self._mains: list[LexborNode] = []
        self.met: list[tuple[str, LexborNode]] = []
        """The elements wanted, in order, each with its name."""
        self._within: list[LexborNode] = []
        """Elements that stand within a line."""
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
        """The main text, a block a line, without navigation, forms and scripts; no more is visited than `limit` bytes take."""
        if self._at_once:
            self._drop()
            self._join()
            return lines(self._all(MARK)[: self._limit + self._limit // 4])
        node = self._mains[0] if len(self._mains) == 1 and not self._whole else self._body
        return lines(_parts(node, self._limit + self._limit // 4, _HIDDEN if self._whole else _NOISE)) if node else ""

    def words(self, separator: str = "") -> str:
        """All text that is seen of a page, as the parser itself gives it. What is not seen is gone from the tree then."""
        self._drop()
        return self._all(separator)

    def _all(self, separator: str) -> str:
        return self._body.text(separator=separator) if self._body is not None else ""

    def _drop(self) -> None:
        """Take what is not seen out of the tree."""
        # What stands in another one comes behind it.
        for node in reversed(self._dropped):
            node.decompose(recursive=False)
        self._dropped.clear()

    def _join(self) -> None:
        """Make one text of those that stand within a line. Only blocks are left in the tree then."""
        for node in self._within:
            node.unwrap(delete_empty=True)
        self._within.clear()
        if self._body is not None:
            self._body.merge_text_nodes()


def main_text(tree: LexborHTMLParser, limit: int = MAX_TEXT, *, whole: bool = False) -> str:
    """The first text of a page, a block a line; see `Page`."""
    return Page(tree, limit, whole=whole).text()


def lines(text: str) -> str:
    """A text whose lines end at marks, each with its white space made single; empty ones are left out."""
    # Most marks stand beside others, with nothing but white space between.
    parts = [part for part in text.replace("\u00ad", "").split(MARK) if part and not part.isspace()]
    return "\n".join([squeeze(part) for part in parts])


def _parts(node: LexborNode, room: int, noise: frozenset[int]) -> str:
    """Text in order, and a mark where a block begins or ends."""
    parts: list[str] = []
    # An own stack: depth is the page's to choose. Iterators, because a node may have a million children.
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
