"""The open elements at a position of a page, estimated from its tags: at least as many as the parser has.

The effect of each tag follows HTML (13.2.6): which elements an end tag looks through, which are closed without one, which are
reconstructed. An element that the tables below do not name is treated as HTML's "any other".

Law: it is a bug if the parser may have one more element open than this; one fewer is not.
"""

from __future__ import annotations

from processors.essence.summarize.pages._nesting_vectorized import Order

DEPTH = 512
"""Maximum open elements: the limit of browsers."""
STYLES = 256
"""Maximum open formatting elements."""
ANEW = 1_000_000
"""Maximum reconstructions of formatting elements: each takes some 100 bytes of memory."""
_LOOK = 64
"""Open elements that an end tag searches for its own start."""

_BLOCKS = frozenset(
    b"address article aside blockquote center details dialog dir div dl fieldset figcaption figure footer form header h1 h2 h3 h4 "
    b"h5 h6 hgroup listing main menu nav ol pre search section summary ul".split()
)
"""Elements whose end also closes the elements open in them."""
_HTML_WALLS = frozenset(b"table caption template object applet marquee select button".split())
_WALLS = _HTML_WALLS.union(b"svg math foreignobject desc title".split())
"""Elements that another element's end tag does not look through."""
RAW = frozenset(b"script style textarea title xmp iframe noembed noframes".split())
"""Elements whose content is text, whatever it looks like."""
STYLED = frozenset(b"b big code em font i nobr s small strike strong tt u".split())
"""Formatting elements, reconstructed until closed; of those without attributes, at most three of a kind. Links close each other."""
_FORMATTING = STYLED.union((b"a",))
_DRAWINGS = frozenset((b"svg", b"math"))
_DRAWN = _DRAWINGS.union(b"foreignobject desc title mi mo mn ms mtext annotation-xml".split())
"""SVG, MathML, and the elements in them that may contain HTML. Their end tags close nothing from within HTML (13.2.6.5)."""
_ODD = _DRAWINGS.union((b"select",))
"""Elements in which a start tag may be ignored, or text be read as tags; the same may happen behind a frameset."""
_BROKEN_OUT = frozenset(
    b"b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing menu meta nobr ol p "
    b"pre ruby s small span strong strike sub sup table tt u ul var".split()
)
"""HTML elements that close the SVG or MathML in which they begin (13.2.6.5)."""
_CELLS = frozenset((b"td", b"th", b"caption"))
_PARTS = _CELLS.union(b"colgroup tbody thead tfoot tr".split())
"""Elements that exist in tables only."""
_ITEMS = (frozenset((b"li",)), frozenset((b"dt", b"dd")))
"""Elements that close each other, unless one of the other set is open between them."""
_LOOSE = _PARTS.union((b"p",), *_ITEMS)
"""Elements that are closed without an end tag, and that an ordinary element's end tag does not look through: they are "special"."""
PASSED = frozenset(b"area base br col embed hr img input link meta param source track wbr frame option html head body".split())
"""Elements whose tags matter only in SVG and MathML: they are void, or two of them are never open."""
_FIRM = (_BLOCKS | _FORMATTING | RAW | _HTML_WALLS) - {b"title"}
"""Elements whose end tags close everything open in them. All others are ordinary (13.2.6.4.7, "any other end tag")."""
_NAMES = PASSED | _LOOSE | _BLOCKS | _WALLS | RAW | _FORMATTING | {b"span"}
"""Known names, in lower case."""
ORDER = Order(passed=PASSED, loose=_LOOSE, items=_ITEMS, formatting=_FORMATTING, firm=_FIRM, drawings=_DRAWINGS)


def known(name: bytes) -> bytes:
    """Return a name in lower case; known ones, which are the most, without a conversion."""
    return name if name in _NAMES else name.lower()


class Open:
    """The open elements after the tags that were read so far."""

    def __init__(self) -> None:
        self._stack: list[bytes] = []
        """All open elements except the loose ones."""
        self._loose: list[bytes] = []
        self._bases: list[int] = []
        """For each element of the stack, the number of loose elements open before it."""
        self._styles = 0
        """Open formatting elements, which each paragraph reconstructs."""
        self.anew = 0
        """Upper bound of the reconstructions so far."""
        self._tables: list[int] = []
        """For each open table, the formatting elements that no cell closes: begun before it, or beside its cells (13.2.6.4.9)."""
        self._framesets = 0
        """Framesets begun: in a page of frames nothing else may be open, in any other no frameset is."""
        self.odd = 0
        """Open elements in which a tag may be read differently."""
        self.drawn = 0
        """Open SVG and MathML elements among them."""

    def too_many(self) -> bool:
        """Whether a parser would take too long from here on."""
        return len(self._stack) + len(self._loose) + self._framesets > DEPTH or self._styles > STYLES or self.anew > ANEW

    def empty(self, name: bytes) -> bool:
        """Whether a self-closing tag makes an empty element here: in SVG or MathML, but not in HTML within them."""
        within = next((one for one in reversed(self._stack) if one in _DRAWN or one == b"font"), b"")
        return name not in _BROKEN_OUT and name != b"font" and within in _DRAWINGS

    def begin(self, name: bytes) -> None:
        """Process a start tag."""
        if self.drawn and name in _BROKEN_OUT:
            self._break_out()
        elif self.drawn:
            self._push(name)
            return
        if name in _BLOCKS or name in _LOOSE:
            self.anew += self._styles
        if name in _LOOSE:
            self._begin_loose(name)
        elif name not in PASSED and self._admits(name):
            if name in STYLED:
                self._styles += 1
                if self._table() >= 0:
                    self._tables[-1] += 1
            self._push(name)

    def _admits(self, name: bytes) -> bool:
        """Whether a start tag opens an element here; a table first closes the one that it begins in, beside its cells."""
        if name == b"frameset":
            self._framesets += 1
            self.odd += 1
            return False
        if name == b"form":
            # No form begins inside of another, nor beside cells (13.2.6.4.7, 13.2.6.4.9).
            return name not in self._stack and self._table() < 0
        if name == b"table" and (at := self._table()) >= 0:
            self._cut(at)
        return True

    def _table(self) -> int:
        """Return the index of the table in which, but outside of its cells, an element begins now; -1 if there is none."""
        at = next((at for at in range(len(self._stack) - 1, -1, -1) if self._stack[at] not in STYLED), -1)
        # The open part of a table is the loose element directly in it.
        beside = at >= 0 and self._stack[at] == b"table" and not _CELLS.intersection(self._loose[self._bases[at] :][:1])
        return at if beside else -1

    def _push(self, name: bytes) -> None:
        self._stack.append(name)
        self._bases.append(len(self._loose))
        self.odd += name in _ODD
        self.drawn += name in _DRAWINGS
        if name == b"table":
            self._tables.append(self._styles)

    def _begin_loose(self, name: bytes) -> None:
        if name in _PARTS:
            # Outside of a table the tag is ignored.
            if self._in_table():
                self._loose[self._base() :] = [name]
            return
        # An item closes the one before it, and every loose element closes a paragraph, with their content.
        for alike in (next((items for items in _ITEMS if name in items), ()), (b"p",)):
            for at in range(len(self._loose) - 1, max(self._base(), len(self._loose) - _LOOK) - 1, -1):
                if self._loose[at] in alike:
                    del self._loose[at:]
                    break
                if b"p" not in alike and self._loose[at] != b"p":
                    break
        self._loose.append(name)

    def end(self, name: bytes) -> None:
        """Process an end tag."""
        if self.drawn and name in (b"p", b"br"):
            self._break_out()
        if name in _LOOSE and not self.drawn:
            for depth in range(1, min(_LOOK, len(self._loose) - self._base()) + 1):
                if self._loose[-depth] == name:
                    del self._loose[-depth:]
                    return
        elif depth := self._found(name):
            self._styles -= name in STYLED
            if name == b"form":
                # The form's content stays open (13.2.6.4.7).
                del self._stack[-depth], self._bases[-depth]
            else:
                # Items that began in a formatting element stay open behind it (13.2.6.4.7, the adoption agency).
                self._cut(len(self._stack) - depth, loose=name not in _FORMATTING)

    def _base(self) -> int:
        return self._bases[-1] if self._bases else 0

    def _cut(self, size: int, *, loose: bool = True) -> None:
        """Close all elements of the stack except the first `size`."""
        for name in reversed(self._stack[size:]):
            self.odd -= name in _ODD
            self.drawn -= name in _DRAWINGS
            if name == b"table":
                self._styles = self._tables.pop()
        if loose:
            del self._loose[self._bases[size] :]
        del self._stack[size:], self._bases[size:]

    def _found(self, name: bytes) -> int:
        """Return how many elements an end tag closes; 0 if a parser might not find the start of its own."""
        for depth in range(1, min(_LOOK, len(self._stack)) + 1):
            last = self._stack[-depth]
            if last == name:
                return depth if name in _FIRM or len(self._loose) == self._bases[-depth] else 0
            if last in _WALLS or last == b"noscript" or (last in _BLOCKS and name not in _BLOCKS and name not in _HTML_WALLS):
                return 0
            if name in _DRAWN and (last in _NAMES or last in _DRAWN):
                return 0
        return 0

    def _break_out(self) -> None:
        """Close the open SVG and MathML elements, up to the innermost one that may contain HTML."""
        for at in range(len(self._stack) - 1, -1, -1):
            if self._stack[at] in _DRAWINGS:
                self._cut(at)
            elif self._stack[at] in _DRAWN:
                return

    def _in_table(self) -> bool:
        """Whether a table is open; the content of its last part is closed then."""
        for depth in range(1, min(_LOOK, len(self._stack)) + 1):
            if self._stack[-depth] == b"table":
                if depth > 1:
                    self._cut(len(self._stack) - depth + 1)
                self._styles = self._tables[-1]
                return True
            if self._stack[-depth] in _WALLS:
                return False
        return False
