"""How deep the elements of a page are nested, and how many attributes one has, told before it is parsed.

Every parser that follows the HTML standard looks through the open elements at most start tags (13.2.4.2), so that its time
grows with their depth: 8 MB of `<div>` would take an hour. And each paragraph begins anew all fonts and the like that are not
ended (13.2.4.3), however many: 40 kB of `<b x=1><p><b x=2><p>` make millions of elements.

Strategy: the tags of a page are counted (0.3 ms for 100 kB); where they are too few to take long, that is all. Of the others, most
have their elements nested in order, which is told of all tags at once (`_order`). What is left is read tag by tag. Where that
reading and a parser's could differ (scripts, styles), start tags count and end tags do not: an end tag that no parser sees must not
hide depth.
"""

from __future__ import annotations

import re

from processors.summarize._order import Order

DEPTH = 1_000
"""Elements that may be open at once: twice what browsers keep."""
FEW = 20_000
"""Tags that may be nested in any way: a parser has done with them in a second."""
STYLES = 256
"""Fonts and the like that may wait for their end."""
ATTRIBUTES = 10_000
"""Attributes of one element: a parser compares each with all before it."""
_LOOK = 64
"""Open elements that an end tag looks through for its own."""

_NEVER = frozenset(
    b"area base br col embed hr img input link meta param source track wbr "
    b"p li dt dd tr td th tbody thead tfoot option optgroup rp rt".split()
)
"""Elements that are empty, or that the next of their kind ends."""
_BLOCKS = frozenset(
    b"address article aside blockquote center details dialog dir div dl fieldset figcaption figure footer form header h1 h2 h3 h4 "
    b"h5 h6 main menu nav ol pre section summary ul".split()
)
"""Elements that end together with what is open in them."""
_HTML_WALLS = frozenset(b"table caption template object applet marquee select button".split())
_WALLS = _HTML_WALLS.union(b"svg math foreignobject desc title".split())
"""Elements that no end tag of another looks through."""
_RAW = frozenset(b"script style textarea title xmp iframe noembed noframes".split())
_STYLED = frozenset(b"b big code em font i s small strike strong tt u".split())
"""Elements that are begun anew until they are ended; of those without attributes, three of a kind at most. Links end each other."""
_STYLE = re.compile(rb"<(?=[bcefistu])(?:b|big|code|em|font|i|s|small|strike|strong|tt|u)[\s/]", re.IGNORECASE)
_ENDED = re.compile(
    rb"<(b|big|code|em|font|i|s|small|strike|strong|tt|u)(?:\s++[a-z-]++=\"[^\"<>]*+\"|(?!))++\s*+>[^<]*+</\1>",
)
"""One of them that is ended before another tag comes, its attributes in quotes: nobody can read its beginning but not its end."""
_CELLS = frozenset(b"td th tr caption".split())
"""Elements at which a style of the cell before ends."""
_PASSED = frozenset(b"area base br col embed hr img input link meta param source track wbr option optgroup rp rt html body".split())
"""Elements whose tags are of no concern: they are empty, never end another, or end nothing."""
_LOOSE = (_NEVER - _PASSED) | {b"caption"}
"""Elements that others end without a tag, and that an end tag of a word does not look through."""
_FIRM = (_BLOCKS | _STYLED | _RAW | _CELLS | _HTML_WALLS | frozenset((b"a", b"nobr"))) - {b"title"}
"""Elements that their end tags end whatever is open in them. All others are words (13.2.6.4.7, "any other end tag")."""
_ORDER = Order(_PASSED, _LOOSE, _FIRM)
_NAMES = _PASSED | _LOOSE | _BLOCKS | _WALLS | _RAW | _STYLED | _CELLS | frozenset(b"a span".split())
"""Names in lower case."""
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
_COMMENT = re.compile(rb"<!--[^<>]*+(?<=--)>")
"""A comment that ends at its first bracket."""
_PARTING = (b" ", b"\n", b"\t", b"\r", b"\f", b"/", b'"', b"'")
"""What stands before an attribute."""
_NO_BRACKETS = bytes(sorted(set(range(256)) - set(b"<>")))
_LEAST = 2 * ATTRIBUTES
"""Bytes that so many take."""


def parsable(page: bytes) -> tuple[bytes, str]:
    """A page, as far as it can be parsed, and why it is not all; "" where it is."""
    crowd = crowded(page)
    page = page[:crowd] if crowd >= 0 else page
    if (deep := too_deep(page)) >= 0:
        return page[:deep], f"elements nested too deep (more than {DEPTH}, or {STYLES} fonts and the like)"
    return page, f"an element with more than {ATTRIBUTES:,} attributes" if crowd >= 0 else ""


def crowded(page: bytes) -> int:
    """Where the first tag with more than ATTRIBUTES of them begins; -1 if there is none. A long value counts as one."""
    if len(page) < _LEAST:
        return -1
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
    few = len(page) < FEW or page.count(b"<") < FEW
    if (few and not _styled(page)) or (_bare(page) and _ORDER.kept(page, STYLES)):
        return -1
    return _read(page)


def _bare(page: bytes) -> bool:
    """Whether whatever looks like a tag of a plain page is one, but for what stands in a script and the like."""
    return _plain(page) and b"<![CDATA[" not in page and page.count(b"<!--") == len(_COMMENT.findall(page))


def _styled(page: bytes) -> bool:
    """Whether fonts and the like, all of those that are not ended at once, may be too many."""
    styles = len(_STYLE.findall(page))
    return styles >= STYLES and styles - len(_ENDED.findall(page)) >= STYLES


def _read(page: bytes) -> int:
    """Where a page comes to be too deep, tag by tag; -1 where it does not."""
    opened = _Open()
    raw = b""
    # Most tags are ends of what was begun last, and names in lower case: the shortest way is theirs.
    for tag in _TAG.finditer(page):
        end, name = tag.groups()
        if name is None or name in _PASSED:
            continue
        if name not in _NAMES:
            name = name.lower()
        if end:
            if raw in (b"", name):
                raw = b""
                opened.end(name)
        elif not raw or name not in _LOOSE:
            # What stands in a script opens no table.
            opened.begin(name, raw=bool(raw))
            raw = raw or (name if name in _RAW else b"")
            if opened.too_many():
                return tag.start()
    return -1


class _Open:
    """The elements that are open at a place in a page."""

    def __init__(self) -> None:
        self._stack: list[bytes] = []
        """But for the loose ones, which are open without a tag's saying so."""
        self._loose: list[bytes] = []
        self._bases: list[int] = []
        """Of each element in the stack, how many loose ones were open before it."""
        self._styles = 0

    def too_many(self) -> bool:
        """Whether a parser would take too long from here on."""
        return len(self._stack) > DEPTH or self._styles > STYLES

    def begin(self, name: bytes, *, raw: bool) -> None:
        """See a start tag; a `raw` one may be none."""
        if name in _CELLS and self._cell():
            self._styles = 0
        if name not in _LOOSE:
            self._stack.append(b"" if raw else name)
            self._bases.append(len(self._loose))
            self._styles += name in _STYLED
        elif len(self._loose) == self._base() or self._loose[-1] != name:
            self._loose.append(name)

    def end(self, name: bytes) -> None:
        """See an end tag."""
        if name in _LOOSE:
            for depth in range(1, min(_LOOK, len(self._loose) - self._base()) + 1):
                if self._loose[-depth] == name:
                    del self._loose[-depth:]
                    return
        elif depth := self._found(name):
            self._styles -= name in _STYLED
            if name == b"form":
                # What is open in it stays open (13.2.6.4.7).
                del self._stack[-depth], self._bases[-depth]
            else:
                self._cut(len(self._stack) - depth)

    def _base(self) -> int:
        return self._bases[-1] if self._bases else 0

    def _cut(self, size: int) -> None:
        del self._loose[self._bases[size] :], self._stack[size:], self._bases[size:]

    def _found(self, name: bytes) -> int:
        """How many elements an end tag ends; 0 where a parser might not find its own."""
        for depth in range(1, min(_LOOK, len(self._stack)) + 1):
            last = self._stack[-depth]
            if last == name:
                return depth if name in _FIRM or len(self._loose) == self._bases[-depth] else 0
            if last in _WALLS or (last in _BLOCKS and name not in _BLOCKS and name not in _HTML_WALLS):
                return 0
        return 0

    def _cell(self) -> bool:
        """End what is open in the cell before, if a table is open."""
        for depth in range(1, min(_LOOK, len(self._stack)) + 1):
            if self._stack[-depth] == b"table":
                if depth > 1:
                    self._cut(len(self._stack) - depth + 1)
                return True
            if self._stack[-depth] in _WALLS:
                return False
        return False
