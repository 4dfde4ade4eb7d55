"""Markup inside of other documents: the text of a page in a message or a book, and trees of XML that came from a stranger.

Entities, DTDs and the network stay shut; what is cut off or damaged is read as far as it goes.
"""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree
from selectolax.lexbor import LexborHTMLParser

from processors.essence.summarize.pages._page import main_text, parse

MAX_PAGE = 1 << 20
"""Bytes of one page that are parsed."""
MAX_PART = 2_000_000
"""Bytes of one XML part that are parsed: a tree takes a hundred times as much where its elements are tiny."""


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


def tree(raw: bytes) -> etree._Element | None:
    """The root of an XML part; None where nothing can be read of it."""
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        recover=True,
        remove_pis=True,
        remove_comments=True,
    )
    try:
        return etree.fromstring(raw[:MAX_PART], parser)
    except etree.XMLSyntaxError:
        return None


def local(element: etree._Element) -> str:
    """The name of an element without its namespace, and without a prefix that was never declared."""
    return str(element.tag).rpartition("}")[2].rpartition(":")[2]


def attribute(element: etree._Element, name: str) -> str:
    """The value of an attribute, whatever its namespace; "" without it."""
    if (value := element.get(name)) is not None:
        return str(value)
    return next((str(v) for k, v in element.items() if str(k).rpartition("}")[2].rpartition(":")[2] == name), "")


def elements(root: etree._Element | None, skip: frozenset[str] = frozenset()) -> Iterator[tuple[str, etree._Element, bool]]:
    """The elements of a tree in order, twice each: (name, element, True) where one begins, with False where it ends.

    Of those in `skip`, nothing but their ends: what stands behind them is not in them.
    """
    if root is None:
        return
    walker = etree.iterwalk(root, events=("start", "end"))
    for event, element in walker:
        if not isinstance(element.tag, str):
            continue
        name = local(element)
        if event == "start" and name in skip:
            walker.skip_subtree()
        else:
            yield name, element, event == "start"
