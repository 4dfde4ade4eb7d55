"""How deep the elements of a page are nested, how many attributes one has, and a list options: told before it is parsed.

Every parser that follows the HTML standard looks through the open elements at most start tags (13.2.4.2), so that its time
grows with their depth: 8 MB of `<div>` would take an hour. And each paragraph begins anew all fonts and the like that are not
ended (13.2.4.3), however many: 40 kB of `<b x=1><p><b x=2><p>` make millions of elements.

Strategy: the tags of a page are counted (0.3 ms for 100 kB); where they are too few to take long, that is all. Of the others, most
have their elements nested in order, which is told of all tags at once (`_order`). What is left is read tag by tag. Where that
reading and a parser's could differ, start tags count and end tags do not: an end tag that no parser sees must not hide depth.
"""

from __future__ import annotations

import re

from processors.essence.summarize.pages._open_elements import ANEW, DEPTH, ORDER, PASSED, RAW, STYLED, STYLES, Open, known

FEW = 20_000
"""Tags that may be nested in any way: a parser has done with them in a second."""
ATTRIBUTES = 2_000
"""Attributes of one element: a parser compares each with all before it."""
OPTIONS = 5_000
"""Options of one list: a parser looks through all before each of them."""
_FONTS = b"|".join(sorted(STYLED))
_STYLE = re.compile(
    rb"<(?=[" + bytes(sorted({name[0] for name in STYLED})) + rb"])(?:" + _FONTS + rb")[\s/]",
    re.IGNORECASE,
)
"""A font or the like that has attributes."""
_ENDED = re.compile(rb"<(" + _FONTS + rb")(?:\s++[a-z-]++=\"[^\"<>]*+\"|(?!))++\s*+>[^<]*+</\1>")
"""One of them that is ended before another tag comes, its attributes in quotes: nobody can read its beginning but not its end."""
_ATTRIBUTE = (
    rb"[^\t\n\f\r />][^\t\n\f\r />=]*+"
    rb"(?:[\t\n\f\r ]*+=[\t\n\f\r ]*+(?:\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z)|[^\t\n\f\r >\"'][^\t\n\f\r >]*+)?)?"
)
"""What a parser takes for one (HTML, 13.2.5.32 to 13.2.5.39): where a name is due a `=` begins one, and a quote is part of it."""
_TAG = re.compile(
    rb"<!--(?:-?>|.*?(?:--!?>|\Z))|<(?:[!?]|/[^a-zA-Z>])[^>]*+"
    rb"|<(/?)([a-zA-Z][^\t\n\f\r />]*+)(?:[\t\n\f\r /]++|" + _ATTRIBUTE + rb"|(?!))*+",
    re.DOTALL,
)
"""A tag without its `>`, or what is none and hides some: a comment, and what counts as one."""
_ATTRIBUTES = re.compile(_ATTRIBUTE)
_BEGUN = re.compile(rb"</?[a-zA-Z][^\t\n\f\r />]*+")
_PART = re.compile(rb"=[\t\n\f\r ]*+(?:\"[^\"<>]*+>|'[^'<>]*+>)")
"""A value with a bracket in it, where brackets take turns: the first one behind a `<` is a `>`."""
_CLOSING = {name: re.compile(rb"</" + name + rb"(?=[\t\n\f\r />])", re.IGNORECASE) for name in RAW}
_OPTION = re.compile(rb"<(?:option|(select))", re.IGNORECASE)
_MERGED = re.compile(rb"<(?:body|html)[\t\n\f\r /]", re.IGNORECASE)
"""Tags whose attributes all become those of one element (13.2.6.4.7)."""
_MERGED_LEAST = 100_000
"""Bytes of a page in which so many take long."""
_COMMENT = re.compile(rb"<!--[^<>]*+(?<=--)>")
"""A comment that ends at its first bracket."""
_PARTING = (b" ", b"\n", b"\t", b"\r", b"\f", b"/", b'"', b"'")
"""What stands before an attribute."""
_NO_BRACKETS = bytes(sorted(set(range(256)) - set(b"<>")))
_LEAST = 2 * ATTRIBUTES
"""Bytes that so many take."""


def parsable(page: bytes) -> tuple[bytes, str]:
    """A page, as far as it can be parsed, and why it is not all; "" where it is."""
    crowd, what = crowded(page), f"an element with more than {ATTRIBUTES:,} attributes"
    if crowd < 0:
        crowd, what = listed(page), f"a list of more than {OPTIONS:,} options"
    page = page[:crowd] if crowd >= 0 else page
    if (deep := too_deep(page)) >= 0:
        return page[:deep], f"elements nested too deep (more than {DEPTH}, or {STYLES} fonts and the like)"
    return page, what if crowd >= 0 else ""


def listed(page: bytes) -> int:
    """Where a list of options comes to have too many; -1 if none does."""
    if len(page) < 8 * OPTIONS:
        return -1
    count = 0
    for tag in _OPTION.finditer(page):
        count = 0 if tag[1] else count + 1
        if count > OPTIONS:
            return tag.start()
    return -1


def crowded(page: bytes) -> int:
    """Where the first tag with more than ATTRIBUTES of them begins; -1 if there is none. A long value counts as one."""
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
    # So many take two steps and more: one of those without a tag in it is what most pages do not have.
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
    """Whether no tag has a bracket in it: then each ends at the first `>`. Most pages are such, and it is cheap to see."""
    brackets = page.translate(None, _NO_BRACKETS)
    return not (b"<<" in brackets or b">>" in brackets or _PART.search(page))


def _crowd(tag: bytes) -> bool:
    """Whether a tag has too many attributes; what is none has none."""
    name = _BEGUN.match(tag)
    return name is not None and len(_ATTRIBUTES.findall(tag, name.end())) > ATTRIBUTES


def too_deep(page: bytes) -> int:
    """Where the elements of a page come to be nested too deep to be parsed; -1 if they do not, or if it does not matter."""
    tags = page.count(b"<")
    if (tags < FEW and not _styled(page, tags)) or (_bare(page) and ORDER.kept(page, STYLES, ANEW)):
        return -1
    return _read(page)


def _bare(page: bytes) -> bool:
    """Whether whatever looks like a tag of a plain page is one, but for what stands in a script and the like."""
    return b"\0" not in page and _plain(page) and b"<![CDATA[" not in page and page.count(b"<!--") == len(_COMMENT.findall(page))


def _styled(page: bytes, tags: int) -> bool:
    """Whether fonts and the like, all of those that are not ended at once, may be too many, or be begun anew too often."""
    least = min(STYLES, ANEW // max(1, tags))
    styles = len(_STYLE.findall(page)) if tags >= least else 0
    return styles >= least and styles - len(_ENDED.findall(page)) >= least


def _read(page: bytes) -> int:
    """Where a page comes to be too deep, tag by tag; -1 where it does not."""
    opened = Open()
    at = until = 0
    doubt = False
    # Most tags are ends of what was begun last, and names in lower case: the shortest way is theirs.
    while tag := _TAG.search(page, at):
        at = tag.end()
        end, name = tag.groups()
        if name is None:
            # It may hide more than it seems to in a drawing, and nothing where it is but text.
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
            # A comment in a script may hide the end of it (13.2.5.17), one in a style that is part of a drawing, too.
            doubt = doubt or ((name == b"script" or opened.odd > 0) and page.find(b"<!--", at, until) >= 0)
            if not opened.odd:
                at = until
                continue
        opened.begin(name)
        if opened.too_many():
            return tag.start()
    return -1


def _closed(tag: re.Match[bytes]) -> bool:
    """Whether a tag that has a slash at its end ends its own element: in a value without quotes it is part of that."""
    attributes = _ATTRIBUTES.findall(tag[0], tag.end(2) - tag.start())
    return not attributes or not attributes[-1].endswith(b"/")
