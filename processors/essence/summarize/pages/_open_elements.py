"""The elements of a page that are open at a place in it, as its tags tell: at least as many as the parser has.

What each tag does is HTML's (13.2.6): which elements an end tag looks through, which end without one, which are begun anew. Where
its tag is all that is known of an element, it is as that says of "any other".

Law: where the parser may have one more open than this, it is a mistake here; one fewer is none.
"""

from __future__ import annotations

from processors.essence.summarize.pages._nesting_vectorized import Order

DEPTH = 512
"""Elements that may be open at once: as many as browsers keep."""
STYLES = 256
"""Fonts and the like that may wait for their end."""
ANEW = 1_000_000
"""Times that these may be begun anew: each is some 100 bytes of memory."""
_LOOK = 64
"""Open elements that an end tag looks through for its own."""

_BLOCKS = frozenset(
    b"address article aside blockquote center details dialog dir div dl fieldset figcaption figure footer form header h1 h2 h3 h4 "
    b"h5 h6 hgroup listing main menu nav ol pre search section summary ul".split()
)
"""Elements that end together with what is open in them."""
_HTML_WALLS = frozenset(b"table caption template object applet marquee select button".split())
_WALLS = _HTML_WALLS.union(b"svg math foreignobject desc title".split())
"""Elements that no end tag of another looks through."""
RAW = frozenset(b"script style textarea title xmp iframe noembed noframes".split())
"""Elements that hold text, whatever it looks like."""
STYLED = frozenset(b"b big code em font i nobr s small strike strong tt u".split())
"""Elements that are begun anew until they are ended; of those without attributes, three of a kind at most. Links end each other."""
_FORMATTING = STYLED.union((b"a",))
_DRAWINGS = frozenset((b"svg", b"math"))
_DRAWN = _DRAWINGS.union(b"foreignobject desc title mi mo mn ms mtext annotation-xml".split())
"""Drawings and formulas, and what HTML may stand in within them. Their end tags end nothing from within HTML (13.2.6.5)."""
_ODD = _DRAWINGS.union((b"select",))
"""Elements in which a start tag may be passed over, or its text be read as tags; behind a frameset it may be, too."""
_BROKEN_OUT = frozenset(
    b"b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing menu meta nobr ol p "
    b"pre ruby s small span strong strike sub sup table tt u ul var".split()
)
"""Elements of HTML that end a drawing in which they begin (13.2.6.5)."""
_CELLS = frozenset((b"td", b"th", b"caption"))
_PARTS = _CELLS.union(b"colgroup tbody thead tfoot tr".split())
"""Elements that there are in tables only."""
_ITEMS = (frozenset((b"li",)), frozenset((b"dt", b"dd")))
"""Elements that end each other, unless one of the other set is open between them."""
_LOOSE = _PARTS.union((b"p",), *_ITEMS)
"""Elements that others end without a tag, and that the end tag of a word does not pass: they are "special"."""
PASSED = frozenset(b"area base br col embed hr img input link meta param source track wbr frame option html head body".split())
"""Elements whose tags are of no concern but in drawings: they are empty, or two of them are never open."""
_FIRM = (_BLOCKS | _FORMATTING | RAW | _HTML_WALLS) - {b"title"}
"""Elements that their end tags end whatever is open in them. All others are words (13.2.6.4.7, "any other end tag")."""
_NAMES = PASSED | _LOOSE | _BLOCKS | _WALLS | RAW | _FORMATTING | {b"span"}
"""Names in lower case."""
ORDER = Order(passed=PASSED, loose=_LOOSE, items=_ITEMS, formatting=_FORMATTING, firm=_FIRM, drawings=_DRAWINGS)


def known(name: bytes) -> bytes:
    """A name as it is compared."""
    return name if name in _NAMES else name.lower()


class Open:
    """The elements that are open behind the tags that were seen."""

    def __init__(self) -> None:
        self._stack: list[bytes] = []
        """All but the loose ones."""
        self._loose: list[bytes] = []
        self._bases: list[int] = []
        """Of each element in the stack, how many loose ones were open before it."""
        self._styles = 0
        """Fonts and the like that are begun anew where a paragraph begins."""
        self.anew = 0
        """How often one may have been."""
        self._tables: list[int] = []
        """For each table in the stack, how many of those no cell of it ends: they began before it, or beside cells (13.2.6.4.9)."""
        self._framesets = 0
        """Those that have begun: of a page of frames nothing else may be open, of any other none is."""
        self.odd = 0
        """Elements in which a tag may be read otherwise than elsewhere."""
        self.drawn = 0
        """Drawings and formulas among them."""

    def too_many(self) -> bool:
        """Whether a parser would take too long from here on."""
        return len(self._stack) + len(self._loose) + self._framesets > DEPTH or self._styles > STYLES or self.anew > ANEW

    def empty(self, name: bytes) -> bool:
        """Whether an element that ends itself is one here: in a drawing, and not in HTML within it."""
        within = next((one for one in reversed(self._stack) if one in _DRAWN or one == b"font"), b"")
        return name not in _BROKEN_OUT and name != b"font" and within in _DRAWINGS

    def begin(self, name: bytes) -> None:
        """See a start tag."""
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
        """Whether an element begins where a tag says so; of a table, what it ends is ended."""
        if name == b"frameset":
            self._framesets += 1
            self.odd += 1
            return False
        if name == b"form":
            # There is none in another, nor beside cells (13.2.6.4.7, 13.2.6.4.9).
            return name not in self._stack and self._table() < 0
        if name == b"table" and (at := self._table()) >= 0:
            self._cut(at)
        return True

    def _table(self) -> int:
        """Where in the stack the table is in which, but in no cell of which, an element begins now; -1 where it is in none."""
        at = next((at for at in range(len(self._stack) - 1, -1, -1) if self._stack[at] not in STYLED), -1)
        # The part of a table that is open is the loose element right within it.
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
            # Beside a table it is none.
            if self._in_table():
                self._loose[self._base() :] = [name]
            return
        # An item ends the one before it, and every one a paragraph, with what is in them.
        for alike in (next((items for items in _ITEMS if name in items), ()), (b"p",)):
            for at in range(len(self._loose) - 1, max(self._base(), len(self._loose) - _LOOK) - 1, -1):
                if self._loose[at] in alike:
                    del self._loose[at:]
                    break
                if b"p" not in alike and self._loose[at] != b"p":
                    break
        self._loose.append(name)

    def end(self, name: bytes) -> None:
        """See an end tag."""
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
                # What is open in it stays open (13.2.6.4.7).
                del self._stack[-depth], self._bases[-depth]
            else:
                # Items that began in a font stay open behind it (13.2.6.4.7, the adoption agency).
                self._cut(len(self._stack) - depth, loose=name not in _FORMATTING)

    def _base(self) -> int:
        return self._bases[-1] if self._bases else 0

    def _cut(self, size: int, *, loose: bool = True) -> None:
        """End all elements of the stack but the first `size`."""
        for name in reversed(self._stack[size:]):
            self.odd -= name in _ODD
            self.drawn -= name in _DRAWINGS
            if name == b"table":
                self._styles = self._tables.pop()
        if loose:
            del self._loose[self._bases[size] :]
        del self._stack[size:], self._bases[size:]

    def _found(self, name: bytes) -> int:
        """How many elements an end tag ends; 0 where a parser might not find its own."""
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
        """End the drawings and formulas that are open, but for those that HTML stands in."""
        for at in range(len(self._stack) - 1, -1, -1):
            if self._stack[at] in _DRAWINGS:
                self._cut(at)
            elif self._stack[at] in _DRAWN:
                return

    def _in_table(self) -> bool:
        """Whether a table is open; what is open in the part of it that was begun last is ended then."""
        for depth in range(1, min(_LOOK, len(self._stack)) + 1):
            if self._stack[-depth] == b"table":
                if depth > 1:
                    self._cut(len(self._stack) - depth + 1)
                self._styles = self._tables[-1]
                return True
            if self._stack[-depth] in _WALLS:
                return False
        return False
