"""Markup inside of other documents: pages in messages and books, and XML trees from untrusted input.

Entities and DTDs are not resolved, and the network is not used; truncated or damaged input is parsed as far as possible.
"""

from __future__ import annotations

from collections.abc import Iterator

from selectolax.lexbor import LexborHTMLParser

from processors.essence.summarize.pages._page import main_text, parse

MAX_PAGE = 1 << 20
"""Maximum bytes of a page that are parsed."""


PAGE = 4_096
"""Default for the bytes of a page's text that are kept."""


def page(raw: bytes, charset: str = "", limit: int = MAX_PAGE) -> LexborHTMLParser:
    """Parse the first `limit` bytes of a page, as far as they can be parsed."""
    return parse(raw[:limit], charset)[0]


def page_text(tree: LexborHTMLParser, limit: int = PAGE, *, whole: bool = False) -> str:
    """Return the main text of a page, one block a line; see `main_text`."""
    return main_text(tree, limit, whole=whole) if tree.body is not None else ""


def page_links(tree: LexborHTMLParser) -> Iterator[str]:
    """Yield the targets of a page's links, unresolved."""
    for node in tree.css("a[href],area[href]"):
        yield (node.attrs.get("href") or "").strip()
