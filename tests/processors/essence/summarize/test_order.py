"""Pages are cut where the parser has too many open elements; the count is checked against the parser itself."""

from __future__ import annotations

import random

import pytest
from selectolax.lexbor import LexborHTMLParser, LexborNode

from processors.essence.summarize.pages import _nesting
from processors.essence.summarize.pages import _open_elements as _open
from processors.essence.summarize.pages._page import parse

_NAMES = """
    div b a p li ul table tr td th caption tbody svg g math mi foreignObject script style textarea title select option button form
    h1 span template object em font nobr dd dt dl pre iframe noscript frameset body html br img link details marquee x-y desc ruby
    rt optgroup colgroup br\0
"""
NAMES = _NAMES.split()
ODD = ("x", "<!-- c -->", "<!--a> ", "--><b -->", "</div -->", "<![CDATA[a> ", "<? x>", "</p>", "</br>", "<DIV>", "<b\n>", "</Div>")
TIMES, MOST = 200, 12
"""Units in a page; allowed levels."""
MAX_LEVELS, MAX_NODES_PER_TAG = 120, 40
"""Limits for levels of the parser's tree, and for its nodes per tag, at these numbers of units."""


def size(page: str) -> tuple[int, int]:
    """Return the depth of the parser's tree and its number of nodes."""
    deepest = count = 0
    waiting: list[tuple[LexborNode | None, int]] = [(LexborHTMLParser(page).root, 1)]
    while waiting:
        node, level = waiting.pop()
        while node is not None:
            deepest, count = max(deepest, level), count + 1
            waiting.append((node.child, level + 1))
            node = node.next
    return deepest, count


def unit(chance: random.Random, *, well: bool) -> str:
    """Return some tags, mostly nested correctly; if `well`, all open elements are closed at the end."""
    out: list[str] = []
    opened: list[str] = []
    for number in range(chance.randint(2, 9)):
        what = chance.random()
        if what < 0.45:
            opened.append(chance.choice(NAMES))
            out.append(f"<{opened[-1]}{chance.choice(('', '', f' x={number}'))}>")
        elif what < 0.85 and opened:
            out.append(f"</{opened.pop(chance.choice((-1, -1, -1, chance.randrange(len(opened)))))}>")
        else:
            out.append(chance.choice(ODD))
    return "".join(out) + "".join(f"</{name}>" for name in reversed(opened) if well)


def is_in_order(page: str, most: int = MOST) -> bool:
    """Return whether a page is found to be in order."""
    raw = page.encode()
    return _nesting._has_only_real_tags(raw) and _open.ORDER.kept(raw, most, _open.ANEW)


@pytest.mark.parametrize("seed", range(4))
def test_ordered_page_is_not_deep(seed: int) -> None:
    """In a page found to be in order, no repetition leaves elements open in the parser."""
    chance, told = random.Random(seed), 0
    for _ in range(150):
        page = unit(chance, well=chance.random() < 0.9) * TIMES
        if is_in_order(page):
            told += 1
            assert size(page)[0] < MAX_LEVELS, page[:300]
    assert told > 20


@pytest.mark.parametrize("seed", range(4))
def test_page_read_tag_by_tag_is_not_deep(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same holds for pages that are read tag by tag, as all pages that are not in order are."""
    monkeypatch.setattr(_open, "DEPTH", MOST)
    monkeypatch.setattr(_open, "STYLES", MOST)
    chance, told = random.Random(seed), 0
    for _ in range(150):
        page = unit(chance, well=chance.random() < 0.7) * TIMES
        if _nesting._read(page.encode()) < 0:
            told += 1
            deepest, nodes = size(page)
            assert deepest < MAX_LEVELS, page[:300]
            assert nodes < MAX_NODES_PER_TAG * page.count("<"), page[:300]
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
        "<li><dd>",
        "<li><b><dd></b>",
        "<br\0>",
        "<svg><link></svg>",
        "<svg><br>",
        "<an-element-of-a-long-name></an-element-of-a-long-name>",
    ],
)
def test_misleading_end_tags_are_not_in_order(page: str) -> None:
    """A page with end tags that the parser ignores, or with names too long to compare in full, is not in order."""
    assert not is_in_order(page * 13)


def test_ordinary_pages_are_in_order() -> None:
    """Ordinary pages are in order: upper case, comments, omitted end tags, elements that end with the page."""
    page = (
        "<!DOCTYPE html><HTML><body class=x><ul><li>a<li><p>b<br></ul><!-- c --><table><tr><td><Span>x</span></table><div/></DIV>"
    )
    assert is_in_order(page * 13)
    assert is_in_order("<div>" * MOST)
    assert not is_in_order("<div>" * (MOST + 1))
    assert is_in_order("no tags, 1 < 2")


def test_unclosed_inline_elements_are_counted() -> None:
    """An inline end tag after a new paragraph or item closes nothing: the page is cut before a parser takes hours."""
    for unit, more in (
        (b"<span><li></span></li>", 1),
        (b"<form><div></form>", 1),
        (b"<li><dd>", 2),
        (b"<li><p>x<dd>", 2),
        (b"<table><table></table><div><td>", 1),
        (b"<rt>", 1),
        (b"<svg><link></svg>", 2),
        (b"<svg><link></x>", 2),
        (b"<script><!--</script><div>", 1),
        (b"<textarea><!--</textarea><div>", 1),
        (b"<ul><li><span>a</span><li><span><p>b</p></span></ul>", 0),
        (b"<script>'<div>'</script>", 0),
    ):
        cut = _nesting.find_depth_overflow(unit * 25_000)
        assert (cut // len(unit) if cut >= 0 else 0) == pytest.approx(_open.DEPTH / more if more else 0, abs=2), unit


@pytest.mark.parametrize("charset", ["utf-16", "cp037", "utf-7"])
def test_page_is_checked_in_any_charset(charset: str) -> None:
    """A page is checked as the parser reads it, whatever its charset."""
    tree, cut, _ = parse(("<div>" * 25_000).encode(charset), "" if charset == "utf-16" else charset)
    assert "too deep" in cut
    assert len(tree.css("div")) == _open.DEPTH


@pytest.mark.parametrize(
    "page",
    [
        "<body {0}>" * 40,
        "<p {0}>" * 2,
        "<select>" + "<option>a</option>" * 2 * _nesting.OPTIONS,
        "<p>" + "".join(f"<font size={number}>" for number in range(250)) + "<p>x" * 15_000,
    ],
)
def test_excessive_attributes_options_and_fonts_are_cut(page: str) -> None:
    """Excessive attributes of an element, options of a list, or fonts of many paragraphs are not in order."""
    step = _nesting.ATTRIBUTES + 1 if "<p {0}" in page else 100
    parts = page.split("{0}")
    names = (" ".join(f"a{part * step + number}" for number in range(step)) for part in range(len(parts) - 1))
    cut = _nesting.parsable(("<h1>x</h1>" + "".join(part + next(names, "") for part in parts) + " " * 100_000).encode())
    assert cut[1]
    assert cut[0].startswith(b"<h1>x</h1>")


def test_self_closing_element_is_closed_in_drawing_only() -> None:
    """A self-closing element in a drawing is not open after it; in HTML, it is."""
    assert _nesting.find_depth_overflow((b"<svg>" + b"<path d=x />" * 1_500 + b"</svg>") + b"<p>a</p>" * 12_000) == -1
    assert _nesting.find_depth_overflow(b"<svg></p>" + b"<path d='x'/>" * 25_000) > 0
    assert _nesting.find_depth_overflow(b"<svg>" + b"<path d=x/>" * 25_000) > 0


def test_fonts_before_table_stay_open() -> None:
    """Font elements before a table stay open: the end tags in its cells close only elements opened there."""
    fonts = b"".join(b"<b x=%d>" % number for number in range(20))
    page = (b"<div>" + fonts + b"<table><tr><td></td></tr></table></div>") * 40 + b"<p>x" * 1_000
    assert _nesting.find_depth_overflow(page) > 0
    assert _nesting.find_depth_overflow((b"<table>" + b"<tr><td><b x=1>y" * 1_000 + b"</table>") * 30) == -1
