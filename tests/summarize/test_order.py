"""That elements are nested in order is told of a page only where the parser finds them no deeper."""

from __future__ import annotations

import random

import pytest
from selectolax.lexbor import LexborHTMLParser, LexborNode

from processors.summarize import _nesting

_NAMES = """
    div b a p li ul table tr td th caption tbody svg g math mi foreignObject script style textarea title select option button form
    h1 span template object em font nobr dd dl pre iframe noscript frameset body html br img details marquee x-y desc ruby rt
"""
NAMES = _NAMES.split()
ODD = ("x", "<!-- c -->", "<!--a> ", "--><b -->", "</div -->", "<![CDATA[a> ", "<? x>", "</p>", "</br>", "<DIV>", "<b\n>", "</Div>")
TIMES, MOST, WIDTH = 200, 12, 40
"""Units in a page; levels that are in order; what a level may be in the parser's tree, with all that needs no tag."""


def depth(page: str) -> int:
    """Elements that are open at once, as the parser has them."""
    deepest = 0
    waiting: list[tuple[LexborNode | None, int]] = [(LexborHTMLParser(page).root, 1)]
    while waiting:
        node, level = waiting.pop()
        while node is not None:
            deepest = max(deepest, level)
            waiting.append((node.child, level + 1))
            node = node.next
    return deepest


def unit(chance: random.Random) -> str:
    """Some tags, nested well for the most part."""
    out: list[str] = []
    opened: list[str] = []
    for _ in range(chance.randint(2, 9)):
        what = chance.random()
        if what < 0.45:
            opened.append(chance.choice(NAMES))
            out.append(f"<{opened[-1]}>")
        elif what < 0.85 and opened:
            out.append(f"</{opened.pop(chance.choice((-1, -1, -1, chance.randrange(len(opened)))))}>")
        else:
            out.append(chance.choice(ODD))
    return "".join(out) + "".join(f"</{name}>" for name in reversed(opened))


def kept(page: str, most: int = MOST) -> bool:
    """Whether a page is told to be in order."""
    raw = page.encode()
    return _nesting._bare(raw) and _nesting._ORDER.kept(raw, most)


@pytest.mark.parametrize("seed", range(4))
def test_what_is_in_order_is_not_deep(seed: int) -> None:
    """Whatever is repeated: where it is told to be in order, nothing stays open in the parser."""
    chance, told = random.Random(seed), 0
    for _ in range(150):
        page = unit(chance) * TIMES
        if kept(page):
            told += 1
            assert depth(page) < WIDTH, page[:300]
    assert told > 20


@pytest.mark.parametrize(
    "page",
    [
        "<span><li></span></li>",
        "<div><!--a> </div -->",
        "<svg><g><![CDATA[a> </g ]]></svg>",
        '<div title="x> </div ">',
        "<div><p></span></div></div>",
        "<b>",
        "<an-element-of-a-long-name></an-element-of-a-long-name>",
    ],
)
def test_what_is_not_told(page: str) -> None:
    """Ends that no parser sees, or looks for; names that are not compared whole."""
    assert not kept(page * 13)


def test_what_is_told() -> None:
    """Pages as they are: upper case, comments, ends that are left out, what ends at the page's end."""
    page = (
        "<!DOCTYPE html><HTML><body class=x><ul><li>a<li><p>b<br></ul><!-- c --><table><tr><td><Span>x</span></table><div/></DIV>"
    )
    assert kept(page * 13)
    assert kept("<div>" * MOST)
    assert not kept("<div>" * (MOST + 1))
    assert kept("no tags, 1 < 2")


def test_words_that_are_not_ended() -> None:
    """An end tag of a word is none where a paragraph or an item began since: the page is cut before a parser takes hours."""
    assert _nesting.too_deep(b"<span><li></span></li>" * 20_000) > 0
    assert _nesting.too_deep(b"<form><div></form>" * 20_000) > 0
    assert _nesting.too_deep(b"<ul><li><span>a</span><li><span><p>b</p></span></ul>" * 20_000) == -1
