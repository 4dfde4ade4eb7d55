"""Markup inside of other documents: the text of a page in a message or a book, and trees of XML that came from a stranger.

Entities, DTDs and the network stay shut; what is cut off or damaged is read as far as it goes.
"""

from __future__ import annotations

from collections.abc import Iterator

from selectolax.lexbor import LexborHTMLParser

from processors.essence.summarize.pages._page import main_text, parse

MAX_PAGE = 1 << 20
"""Bytes of one page that are parsed."""


PAGE = 4_096
"""Bytes of the text of a page that are taken, unless its caller says otherwise."""


def page(raw: bytes, charset: str = "", limit: int = MAX_PAGE) -> LexborHTMLParser:
    """The first `limit` bytes of a page as a tree, as far as it can be parsed."""
    return parse(raw[:limit], charset)[0]


def page_text(tree: LexborHTMLParser, limit: int = PAGE, *, whole: bool = False) -> str:
    """The main text of a page, a block a line; see `main_text`."""
    return main_text(tree, limit, whole=whole) if tree.body is not None else ""


def page_links(tree: LexborHTMLParser) -> Iterator[str]:
    """Where the links of a page lead, as they stand."""
    for node in tree.css("a[href],area[href]"):
        yield (node.attrs.get("href") or "").strip()
