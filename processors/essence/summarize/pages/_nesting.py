"""Checks before parsing how deep a page's elements are nested, and how many attributes or options an element has.

Every parser that follows the HTML standard looks through the open elements at most start tags (13.2.4.2), so that its time
grows with their depth: 8 MB of `<div>` would take an hour. And each paragraph reconstructs all formatting elements that are not
closed (13.2.4.3), however many: 40 kB of `<b x=1><p><b x=2><p>` make millions of elements.

Strategy: count the tags of a page (0.3 ms for 100 kB); too few to take long need no further check. Most of the other pages have
properly nested elements, which is checked for all tags at once (`_nesting_vectorized`). The rest is read tag by tag. Where that
reading and a parser's could differ, start tags count and end tags do not: an end tag that no parser sees must not hide depth.
"""

from __future__ import annotations

import re

from processors.essence.summarize.pages._open_elements import ANEW, DEPTH, ORDER, PASSED, RAW, STYLED, STYLES, Open, known

FEW = 20_000
"""Tags that may be nested in any way: a parser takes less than a second for them."""
ATTRIBUTES = 2_000
"""Maximum attributes of one element: a parser compares each with all before it."""
OPTIONS = 5_000
"""Maximum options of one list: a parser looks through all before each of them."""
_FONTS = b"|".join(sorted(STYLED))
_STYLE = re.compile(
    rb"<(?=[" + bytes(sorted({name[0] for name in STYLED})) + rb"])(?:" + _FONTS + rb")[\s/]",
    re.IGNORECASE,
)
"""The start tag of a formatting element with attributes."""
_ENDED = re.compile(rb"<(" + _FONTS + rb")(?:\s++[a-z-]++=\"[^\"<>]*+\"|(?!))++\s*+>[^<]*+</\1>")
"""A formatting element that is closed before another tag, its attributes in quotes: any parser that sees its start sees its end."""
_ATTRIBUTE = (
    rb"[^\t\n\f\r />][^\t\n\f\r />=]*+"
    rb"(?:[\t\n\f\r ]*+=[\t\n\f\r ]*+(?:\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z)|[^\t\n\f\r >\"'][^\t\n\f\r >]*+)?)?"
)
"""An attribute, as a parser reads it (HTML, 13.2.5.32 to 13.2.5.39): a `=` in place of a name begins one, a quote is part of it."""
_TAG = re.compile(
    rb"<!--(?:-?>|.*?(?:--!?>|\Z))|<(?:[!?]|/[^a-zA-Z>])[^>]*+"
    rb"|<(/?)([a-zA-Z][^\t\n\f\r />]*+)(?:[\t\n\f\r /]++|" + _ATTRIBUTE + rb"|(?!))*+",
    re.DOTALL,
)
"""A tag without its `>`, or a construct that may hide tags: a comment, or one that is parsed as a comment."""
_ATTRIBUTES = re.compile(_ATTRIBUTE)
_BEGUN = re.compile(rb"</?[a-zA-Z][^\t\n\f\r />]*+")
_PART = re.compile(rb"=[\t\n\f\r ]*+(?:\"[^\"<>]*+>|'[^'<>]*+>)")
"""A value that contains a bracket although `<` and `>` alternate: the first bracket behind a `<` is a `>`."""
_CLOSING = {name: re.compile(rb"</" + name + rb"(?=[\t\n\f\r />])", re.IGNORECASE) for name in RAW}
_OPTION = re.compile(rb"<(?:option|(select))", re.IGNORECASE)
_MERGED = re.compile(rb"<(?:body|html)[\t\n\f\r /]", re.IGNORECASE)
"""Tags whose attributes are all merged into one element (13.2.6.4.7)."""
_MERGED_LEAST = 100_000
"""Least bytes of a page in which so many merged attributes take long."""
_COMMENT = re.compile(rb"<!--[^<>]*+(?<=--)>")
"""A comment that ends at its first bracket."""
_PARTING = (b" ", b"\n", b"\t", b"\r", b"\f", b"/", b'"', b"'")
"""Bytes that can precede an attribute."""
_NO_BRACKETS = bytes(sorted(set(range(256)) - set(b"<>")))
_LEAST = 2 * ATTRIBUTES
"""Least bytes that too many attributes take."""


def parsable(page: bytes) -> tuple[bytes, str]:
    """Return the part of a page that can be parsed, and the reason if it is not all of it, else ""."""
    crowd, what = find_attribute_overflow(page), f"an element with more than {ATTRIBUTES:,} attributes"
    if crowd < 0:
        crowd, what = find_option_overflow(page), f"a list of more than {OPTIONS:,} options"
    page = page[:crowd] if crowd >= 0 else page
    if (deep := find_depth_overflow(page)) >= 0:
        return page[:deep], f"elements nested too deep (more than {DEPTH}, or {STYLES} open formatting elements)"
    return page, what if crowd >= 0 else ""


def find_option_overflow(page: bytes) -> int:
    """Return the offset at which a list of options has too many; -1 if none has."""
    if len(page) < 8 * OPTIONS:
        return -1
    count = 0
    for tag in _OPTION.finditer(page):
        count = 0 if tag[1] else count + 1
        if count > OPTIONS:
            return tag.start()
    return -1


def find_attribute_overflow(page: bytes) -> int:
    """Return the offset of the first tag with more than ATTRIBUTES attributes; -1 if none. A long value counts as one."""
    if len(page) < _LEAST:
        return -1
    count = 0
    for place in _MERGED.finditer(page) if len(page) >= _MERGED_LEAST else ():
        tag = _TAG.match(page, place.start())
        count += len(_ATTRIBUTES.findall(tag[0], 5)) if tag else 0
        if count > ATTRIBUTES:
            return place.start()
    if not _plain(page):
        if sum(map(page.count, _PARTING)) <= ATTRIBUTES:
            return -1
        spans = (tag.span() for tag in _TAG.finditer(page))
        return next((begin for begin, end in spans if end - begin >= _LEAST and _crowd(page[begin:end])), -1)
    # Too many attributes span at least two steps; most pages have no step without a tag in it.
    step = _LEAST // 2 - 1
    if all(page.find(b"<", at, at + step) >= 0 for at in range(0, len(page) - step, step)):
        return -1
    at = -1
    for piece in page.split(b"<"):
        if len(piece) >= _LEAST and _crowd(b"<" + piece.partition(b">")[0]):
            return at
        at += len(piece) + 1
    return -1


def _plain(page: bytes) -> bool:
    """Whether no tag contains a bracket, so that each ends at the first `>`. A cheap check that most pages pass."""
    brackets = page.translate(None, _NO_BRACKETS)
    return not (b"<<" in brackets or b">>" in brackets or _PART.search(page))


def _crowd(tag: bytes) -> bool:
    """Whether a tag has too many attributes; False for a construct that is not a tag."""
    name = _BEGUN.match(tag)
    return name is not None and len(_ATTRIBUTES.findall(tag, name.end())) > ATTRIBUTES


def find_depth_overflow(page: bytes) -> int:
    """Return the offset at which elements are nested too deep to be parsed; -1 if they are not, or if it does not matter."""
    tags = page.count(b"<")
    if (tags < FEW and not _styled(page, tags)) or (_has_only_real_tags(page) and ORDER.kept(page, STYLES, ANEW)):
        return -1
    return _read(page)


def _has_only_real_tags(page: bytes) -> bool:
    """Whether a page is plain and everything in it that looks like a tag is one, except inside of scripts and the like."""
    return b"\0" not in page and _plain(page) and b"<![CDATA[" not in page and page.count(b"<!--") == len(_COMMENT.findall(page))


def _styled(page: bytes, tags: int) -> bool:
    """Whether formatting elements that are not closed at once may be too many, or be reconstructed too often."""
    least = min(STYLES, ANEW // max(1, tags))
    styles = len(_STYLE.findall(page)) if tags >= least else 0
    return styles >= least and styles - len(_ENDED.findall(page)) >= least


def _read(page: bytes) -> int:
    """Return the offset at which a page is too deep, read tag by tag; -1 if it is not."""
    opened = Open()
    at = until = 0
    doubt = False
    # Most tags close the last opened element or have names in lower case: these take the shortest path.
    while tag := _TAG.search(page, at):
        at = tag.end()
        end, name = tag.groups()
        if name is None:
            # In SVG or MathML CDATA may hide more than it seems to; inside of a raw text element it is text and hides nothing.
            doubt = doubt or (page.startswith(b"<![CDATA[", tag.start()) and opened.odd > 0)
            at = tag.start() + 2 if tag.start() < until else at
            continue
        if name in PASSED and not opened.drawn:
            continue
        name = known(name)
        if end:
            if not doubt and tag.start() >= until:
                opened.end(name)
            continue
        if opened.drawn and tag[0].endswith(b"/") and _closed(tag) and opened.empty(name):
            continue
        if name in RAW and tag.start() >= until:
            close = _CLOSING[name].search(page, at)
            until = close.start() if close else len(page)
            # A comment in a script may hide its end tag (13.2.5.17), and so may one in a style that is part of SVG.
            doubt = doubt or ((name == b"script" or opened.odd > 0) and page.find(b"<!--", at, until) >= 0)
            if not opened.odd:
                at = until
                continue
        opened.begin(name)
        if opened.too_many():
            return tag.start()
    return -1


def _closed(tag: re.Match[bytes]) -> bool:
    """Whether a tag with a slash at its end is self-closing: at the end of an unquoted value the slash is part of the value."""
    attributes = _ATTRIBUTES.findall(tag[0], tag.end(2) - tag.start())
    return not attributes or not attributes[-1].endswith(b"/")
