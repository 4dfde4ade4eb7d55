"""The text of a page, a block a line, from the tree that lexbor made of it.

Strategy: each question asked of a node is a call into the parser, so that few are asked. One walk meets the elements that matter,
told by their numbers. Where all text is wanted, that walk sets a mark into the tree where a block begins or ends, and the parser
gives the whole text in one go. Where only the first of it is wanted, a second walk goes from node to node, and ends there.

Laws:
- Both ways give the same text.
- A mark takes memory: a page with more than MARKED tags is walked through node by node.
"""

from __future__ import annotations

from collections.abc import Mapping

from selectolax.lexbor import LexborHTMLParser, LexborNode

from processors.summarize._text import squeeze

MAX_TEXT = 2_048
"""Bytes of the main text that are kept."""
MARKED = 250_000
"""Tags of a page whose blocks are marked: a mark takes 150 bytes."""
MARK = "\0"
"""Ends a line. No text of a page has it: the parser drops it, or makes U+FFFD of it (HTML, 13.2.5 and 13.2.6.4)."""

_AROUND = f"{MARK} "


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
_MAIN = frozenset(numbers("main article"))
"""Elements that hold the text of a page, where there is one of them."""
_EMPTY = frozenset(numbers("br hr img"))
"""Those of the following that hold nothing."""
_BLOCKS = _EMPTY.union(
    numbers(
        "p div li ul ol dl dt dd h1 h2 h3 h4 h5 h6 pre table tr td th blockquote section article main header center address "
        "caption figure figcaption details summary title body fieldset legend option"
    )
)
"""Elements that part words; all others stand within a line."""


class Page:
    """A page that was walked through once. `wanted`: numbers of elements that the caller wants to see, with their names.

    `whole`: the main text is all text, with navigation and forms, since who asks for the full text leaves nothing out.
    """

    def __init__(
        self, tree: LexborHTMLParser, limit: int = MAX_TEXT, *, whole: bool = False, wanted: Mapping[int, str] | None = None
    ) -> None:
        self._tree = tree
        self._limit = limit
        self._whole = whole
        self._unseen: list[LexborNode] = []
        self._mains: list[LexborNode] = []
        self.met: list[tuple[str, LexborNode]] = []
        """The elements wanted, in order, each with its name."""
        self._marked = whole and tree.raw_html.count(b"<") <= MARKED
        self._walk(wanted or {})

    def _walk(self, wanted: Mapping[int, str]) -> None:
        blocks = _BLOCKS if self._marked else frozenset()
        some = blocks | _UNSEEN | _MAIN | wanted.keys()
        root = self._tree.root
        for node in root.traverse() if root else ():
            number = node.tag_id
            if number not in some:
                continue
            if number in blocks:
                node.insert_before(MARK)
                if number not in _EMPTY:
                    node.insert_after(MARK)
            if number in wanted:
                self.met.append((wanted[number], node))
            elif number in _UNSEEN:
                self._unseen.append(node)
            elif number in _MAIN and len(self._mains) <= 1:
                self._mains.append(node)

    def text(self) -> str:
        """The main text, a block a line, without navigation, forms and scripts; no more is visited than `limit` bytes take."""
        if self._marked:
            return lines(self.words()[: self._limit + self._limit // 4])
        node = self._mains[0] if len(self._mains) == 1 and not self._whole else self._tree.body
        return lines(_parts(node, self._limit + self._limit // 4, _HIDDEN if self._whole else _NOISE)) if node else ""

    def words(self, separator: str = "") -> str:
        """All text that is seen of a page, as the parser itself gives it. What is not seen is gone from the tree then."""
        # What stands in another one comes behind it.
        for node in reversed(self._unseen):
            node.decompose(recursive=False)
        self._unseen.clear()
        return self._tree.body.text(separator=separator) if self._tree.body is not None else ""


def main_text(tree: LexborHTMLParser, limit: int = MAX_TEXT, *, whole: bool = False) -> str:
    """The first text of a page, a block a line; see `Page`."""
    return Page(tree, limit, whole=whole).text()


def lines(text: str) -> str:
    """A text whose lines end at marks, each with its white space made single; empty ones are left out."""
    # All white space at once, then what stands between marks: most marks stand beside others.
    parts = squeeze(text.replace("\u00ad", "").replace(MARK, f" {MARK} ")).split(f" {MARK}")
    return "\n".join([bare for part in parts if (bare := part.strip(_AROUND))])


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
