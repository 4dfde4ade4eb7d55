r"""PostScript, the language (PLRM: Adobe, PostScript Language Reference, third edition): objects, scanner, and what runs it.

What a page says is nowhere in the file: each word processor has procedures of its own, which its prologue defines from those of the
language. So the prologue is run. Here are the operators that know no page; those that draw are in `_postscript_page`.

Laws:
- A step is paid for each object that is met, more for what copies; when the steps are used up, it ends (Enough). Stacks, nesting,
  strings and arrays are bounded as in printers (PLRM, appendix B). So no file keeps it for long.
- It goes on behind an error, with what the operator left: the file is read for its words, not judged. Within `stopped` an error is
  one, since prologues ask so what a printer can do.
- It touches nothing but its own objects: there are no files but the one that is read, no printer, no clock.

Simpler than printers: parts of strings and arrays are copies; `restore` brings back the state of the graphics alone; access is not
guarded.
"""

from __future__ import annotations

import math
import operator
import re
import zlib
from base64 import a85decode
from binascii import unhexlify
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pdfminer.lzw import lzwdecode

LARGEST = 65_535
"""Elements of a string or an array."""
STACK = 20_000
"""Operands."""
NESTED = 100
"""Procedures that run within each other, or stand within each other."""
MAX_DECODED = 4_194_304
"""Bytes that a filter gives."""
WORD = 40
"""Characters of a number; PostScript's have 11."""
INTEGER = 1 << 31

Operator = Callable[["Machine"], None]


class Fault(Exception):  # noqa: N818 - an error of the file's; those of ours are errors
    """An error as PostScript has them (PLRM, 8.1); its text is the name."""


class Enough(Exception):  # noqa: N818 - no error
    """The steps are used up, or the text is long enough: the machine ends."""


class _Exit(Exception):  # noqa: N818 - no error
    """`exit`: leaves the innermost loop."""


class Halt(Exception):  # noqa: N818 - no error
    """`stop`: leaves the innermost `stopped`."""


class Name(str):
    """A literal name: `/x`."""

    __slots__ = ()


class Word(str):
    """An executable name: `x`."""

    __slots__ = ()


class Immediate(str):
    """A name that stands for its value when it is read: `//x`."""

    __slots__ = ()


class Procedure(list[object]):
    """An executable array: `{x y}`; `bound`: whether `bind` has been there."""

    __slots__ = ("bound",)

    def __init__(self, items: Iterable[object] = ()) -> None:
        super().__init__(items)
        self.bound = False


class Text:
    """A string; `code`: an executable one."""

    __slots__ = ("code", "data")

    def __init__(self, data: bytes | bytearray, *, code: bool = False) -> None:
        self.data = bytearray(data)
        self.code = code


class Mark:
    """What `mark`, `[` and `<<` leave on the stack."""


MARK = Mark()
_OPEN, _CLOSE, END = object(), object(), object()

_REGULAR = rb"[^\0\t\n\f\r ()<>\[\]{}/%]"
_TOKEN = re.compile(
    rb"[\0\t\n\f\r ]*+(?:(?P<plain>"
    + _REGULAR
    + rb"++)(?:\r\n|[\0\t\n\f\r ])?+|(?P<name>//?+"
    + _REGULAR
    + rb"*+)|\((?P<text>[^()\\\r]*+)\)"
    rb"|(?P<comment>%[^\r\n]*+)|<~(?P<base>[^~]*+)~?>?|(?P<mark><<|>>|[\[\]])|<(?P<hex>[^>]*+)>?|(?P<open>\{)|(?P<close>\})"
    rb"|(?P<nested>\()|[)>])"
)
_PART = re.compile(rb"[^()\\\r]++|\\(?:[0-7]{1,3}|\r\n|[^\0]|)|\r\n?+|[()]", re.DOTALL)
_INTEGER = re.compile(rb"[+-]?[0-9]++")
_REAL = re.compile(rb"[+-]?(?:[0-9]++\.?+[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]{1,3})?")
_RADIX = re.compile(rb"([0-9]{1,2})#([0-9a-zA-Z]++)")
_COUNT = re.compile(rb"%%Begin(?:Data|Binary): *+([0-9]{1,9})")
_FONT = re.compile(rb"%DVIPSBitmapFont: (\S{1,20}) (\S{1,40})")
_HEX = re.compile(rb"[0-9A-Fa-f]")
_NO_HEX = re.compile(rb"[^0-9A-Fa-f]++")
_WHITE = re.compile(rb"[\0\t\n\f\r ]++")
_ESCAPES = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"f": b"\f", b"\n": b"", b"\r": b"", b"\r\n": b"", b"": b""}
_KNOWN: dict[bytes, object] = {}


class Source:
    """A file: the bytes that the machine reads, tokens or data, from where it is."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self.at = 0
        self.marked = True
        """Whether there may be a mark behind data that is not read yet."""
        self.bitmaps = ""
        """The font of TeX that is to come, as dvips names it in a comment."""

    @property
    def raw(self) -> bytes:
        """The bytes. May raise Enough where they are decoded first."""
        return self._raw

    def skip(self, size: int) -> None:
        """Pass over so many bytes of a picture."""
        self.at = min(self.at + max(size, 0), len(self._raw))

    def token(self) -> object:
        """The next token, or END; braces are _OPEN and _CLOSE."""
        raw = self.raw
        while found := _TOKEN.match(raw, self.at):
            self.at = found.end()
            kind = found.lastgroup
            if kind == "plain":
                return _plain(found["plain"])
            if kind == "name":
                name = found["name"].decode("latin-1")
                return Immediate(name[2:]) if name.startswith("//") else Name(name[1:])
            if kind == "comment":
                self._comment(found["comment"])
            elif kind is not None:
                return self._composite(kind, found)
        self.at = len(raw)
        return END

    def _composite(self, kind: str, found: re.Match[bytes]) -> object:
        if kind == "open":
            return _OPEN
        if kind == "close":
            return _CLOSE
        if kind == "mark":
            return Word(found["mark"].decode())
        if kind == "text":
            return Text(found["text"])
        if kind == "hex":
            return Text(_unhex(found["hex"]))
        return Text(_base_85(found["base"]) if kind == "base" else self._nested())

    def _nested(self) -> bytes:
        """A string behind its bracket, with brackets and escapes in it (PLRM, 3.2.2)."""
        kept: list[bytes] = []
        depth = 1
        while (found := _PART.match(self.raw, self.at)) and depth:
            part = found[0]
            self.at = found.end()
            depth += {b"(": 1, b")": -1}.get(part, 0)
            if part[0] == 0x5C:
                kept.append(_escape(part[1:]))
            elif depth:
                kept.append(b"\n" if part[0] == 0x0D else part)
        return b"".join(kept)

    def _comment(self, comment: bytes) -> None:
        """What comments say to a reader: how much data follows (DSC 3.0, 5.2), and the font that dvips makes next."""
        if not comment.startswith((b"%%B", b"%D")):
            return
        if counted := _COUNT.match(comment):
            end = self.raw.find(b"%%End", self.at) if self.marked else -1
            self.marked = end >= 0
            self.at = end if self.marked else self.at + int(counted[1])
        elif font := _FONT.match(comment):
            self.bitmaps = font[2].decode("latin-1")

    def read(self, size: int) -> bytes:
        """So many bytes, or what there is; one white space behind the operator that reads has gone before."""
        part = self.raw[self.at : self.at + size]
        self.at += len(part)
        return part

    def until(self, end: bytes, size: int = MAX_DECODED) -> bytes:
        """The bytes before a mark, which is left out; all that there are where it is missing."""
        found = self.raw.find(end, self.at, self.at + size)
        part = self.raw[self.at : found if found >= 0 else self.at + size]
        self.at += len(part) + (len(end) if found >= 0 else 0)
        return part

    def digits(self, size: int) -> bytes:
        """So many bytes that are written in hexadecimal; other characters between them are passed over."""
        kept = b""
        while len(kept) < 2 * size and (found := _HEX.search(self.raw, self.at)):
            self.at = found.start()
            # Never beyond the last digit, since what stands behind it is not of the data.
            kept += _NO_HEX.sub(b"", self.read(2 * size - len(kept)))
        return _unhex(kept)


def _plain(raw: bytes) -> object:
    """A number, or the name that it is otherwise."""
    known = _KNOWN.get(raw)
    if known is None:
        known = _number(raw)
        if len(_KNOWN) < STACK:
            _KNOWN[raw] = known
    return known


def _number(raw: bytes) -> object:
    if len(raw) > WORD:
        return Word(raw[:WORD].decode("latin-1"))
    if _INTEGER.fullmatch(raw):
        return bounded(int(raw))
    if _REAL.fullmatch(raw):
        return float(raw)
    if radix := _RADIX.fullmatch(raw):
        try:
            return bounded(int(radix[2], int(radix[1])))
        except ValueError:
            pass
    return Word(raw.decode("latin-1"))


def bounded(value: float) -> float:
    """A number as PostScript has them: a whole one that is too large is a real one."""
    return value if -INTEGER <= value < INTEGER else float(value)


def _escape(code: bytes) -> bytes:
    return bytes([int(code, 8) & 0xFF]) if code[:1].isdigit() and code[0] < 0x38 else _ESCAPES.get(code, code)


def _unhex(digits: bytes) -> bytes:
    kept = _NO_HEX.sub(b"", digits)
    return unhexlify(kept + b"0" * (len(kept) % 2))


def _base_85(raw: bytes) -> bytes:
    try:
        return a85decode(_WHITE.sub(b"", raw))
    except ValueError:
        return b""


class Machine:
    """What runs a file: stacks, dictionaries, files."""

    def __init__(self, operators: dict[str, Operator], steps: int) -> None:
        self.steps = steps
        """Steps that are left."""
        self.operands: list[object] = []
        self.system: dict[object, object] = {"true": True, "false": False, "null": None, "mark": MARK}
        self.system.update(OPERATORS | operators)
        self.system |= {"systemdict": self.system, "$error": {}, "errordict": {}, "statusdict": {}, "globaldict": {}}
        self.system |= {"languagelevel": 2, "version": Text(b"2017"), "product": Text(b""), "revision": 0, "serialnumber": 0}
        self.system["userdict"] = {}
        self.names: list[dict[object, object]] = [self.system, self.dictionary(self.system["userdict"])]
        self.files: list[Source] = []
        self.depth = 0
        self.guarded = 0
        """How many `stopped` there are around what runs."""

    def known(self, name: object) -> dict[object, object] | None:
        """The topmost dictionary that has a name."""
        return next((names for names in reversed(self.names) if name in names), None)

    # What operators take from the stack; where it is not there, or of another type, they end by a Fault.

    def pop(self) -> object:
        """The topmost operand."""
        if not self.operands:
            raise Fault("stackunderflow")
        return self.operands.pop()

    def push(self, value: object) -> None:
        """Leave a result."""
        if len(self.operands) >= STACK:
            raise Enough
        self.operands.append(value)

    def number(self) -> float:
        """A number, whole or real."""
        value = self.pop()
        if isinstance(value, int | float) and not isinstance(value, bool):
            return value
        raise Fault("typecheck")

    def whole(self) -> int:
        """A whole number; programs leave real ones, too."""
        value = self.number()
        if math.isfinite(value):
            return int(value)
        raise Fault("rangecheck")

    def count(self) -> int:
        """How many: not less than none, and no more than there may be; paid for."""
        value = self.whole()
        if 0 <= value <= LARGEST:
            self.pay(value >> 2)
            return value
        raise Fault("rangecheck")

    def numbers(self, many: int) -> list[float]:
        """So many numbers, in the order in which they were left."""
        return [self.number() for _ in range(many)][::-1]

    def text(self) -> Text:
        """A string."""
        value = self.pop()
        if isinstance(value, Text):
            return value
        raise Fault("typecheck")

    def array(self) -> list[object]:
        """An array or a procedure."""
        return self.listed(self.pop())

    def listed(self, value: object) -> list[object]:
        """A value that must be an array."""
        if isinstance(value, list):
            return value
        raise Fault("typecheck")

    def matrix(self, value: object) -> tuple[float, ...]:
        """A value that must be a matrix: six numbers."""
        six = self.listed(value)
        if len(six) == 6 and all(isinstance(each, int | float) for each in six):
            return tuple(float(each) for each in six if isinstance(each, int | float))
        raise Fault("typecheck")

    def dictionary(self, value: object) -> dict[object, object]:
        """A value that must be a dictionary."""
        if isinstance(value, dict):
            return value
        raise Fault("typecheck")

    def source(self, value: object) -> Source:
        """A value that must be a file."""
        if isinstance(value, Source):
            return value
        raise Fault("typecheck")

    def pay(self, steps: int) -> None:
        """Pay for what costs more than one step. Raises Enough."""
        self.steps -= steps
        if self.steps < 0:
            raise Enough

    # Running.

    def run(self, source: Source) -> None:
        """Run what a file holds, to its end. Raises Enough, Fault."""
        if len(self.files) > NESTED:
            raise Fault("limitcheck")
        self.files.append(source)
        try:
            while (item := self.read(source)) is not END:
                if item.__class__ is Word:
                    self._outermost(item)
                else:
                    self.push(item)
        finally:
            self.files.pop()

    def _outermost(self, name: object) -> None:
        """Execute a word of a file; `exit` and `stop` that nothing waits for end that word."""
        try:
            self.word(name)
        except (_Exit, Halt):
            if self.guarded:
                raise

    def read(self, source: Source) -> object:
        """The next object of a file, a procedure with all that is in it; END where there is none."""
        building: list[Procedure] = []
        while True:
            self.pay(1)
            item = source.token()
            if item.__class__ is Immediate:
                item = self.find(item)
            if item is _OPEN:
                building.append(Procedure())
                if len(building) > NESTED:
                    raise Enough
                continue
            if item is _CLOSE:
                if not building:
                    continue
                item = building.pop()
            if not building or item is END:
                return item
            building[-1].append(item)

    def find(self, name: object) -> object:
        """The value of a name. Raises Fault."""
        for names in reversed(self.names):
            if name in names:
                return names[name]
        raise Fault("undefined")

    def word(self, name: object) -> None:
        """Execute an executable name; what goes wrong is passed over unless the file wants to know of it."""
        try:
            self.execute(self.find(name))
        except (Fault, ArithmeticError):
            if self.guarded:
                raise

    def execute(self, value: object) -> None:
        """Execute an object that was found by name, or that stands on the stack: what is not executable is left there."""
        if isinstance(value, Procedure):
            self.call(value)
        elif callable(value):
            self.pay(1)
            value(self)
        elif isinstance(value, Word):
            self.pay(1)
            self.execute_deep(value)
        elif isinstance(value, Source):
            self.run(value)
        elif isinstance(value, Text) and value.code:
            self.pay(len(value.data) >> 6)
            self.run(Source(bytes(value.data)))
        else:
            self.push(value)

    def execute_deep(self, name: Word) -> None:
        """Execute a name that another name stands for."""
        self.call(Procedure([name]))

    def call(self, procedure: list[object]) -> None:
        """Execute the objects of a procedure."""
        self.pay(len(procedure) + 1)
        if self.depth >= NESTED:
            raise Fault("execstackoverflow")
        self.depth += 1
        try:
            for item in procedure:
                if item.__class__ is Word:
                    self.word(item)
                elif callable(item):
                    self.bound(item)
                else:
                    self.push(item)
        finally:
            self.depth -= 1

    def bound(self, item: Operator) -> None:
        """Execute an operator that `bind` has put for its name."""
        try:
            item(self)
        except (Fault, ArithmeticError):
            if self.guarded:
                raise

    def stopped(self, value: object) -> bool:
        """Execute, and say whether that went wrong."""
        self.guarded += 1
        try:
            self.execute(value)
        except (Fault, ArithmeticError, Halt):
            return True
        finally:
            self.guarded -= 1
        return False

    def repeated(self, values: Iterator[tuple[object, ...]], body: list[object]) -> None:
        """Execute a procedure for each of several values, until it says `exit`."""
        try:
            for each in values:
                for value in each:
                    self.push(value)
                self.call(body)
        except _Exit:
            return


OPERATORS: dict[str, Operator] = {}
"""The operators by name."""


def named(*names: str) -> Callable[[Operator], Operator]:
    """A decorator: an operator's names."""

    def keep(run: Operator) -> Operator:
        OPERATORS.update(dict.fromkeys(names, run))
        return run

    return keep


def ignored(names: str, operands: int, results: tuple[object, ...] = ()) -> dict[str, Operator]:
    """Operators that do nothing here: how many operands they take, and what they leave."""

    def run(m: Machine) -> None:
        if operands > len(m.operands):
            raise Fault("stackunderflow")
        del m.operands[len(m.operands) - operands :]
        m.operands.extend(results)

    return dict.fromkeys(names.split(), run)


OPERATORS |= ignored("flush executive prompt startjob pstack nulldevice erasepage quit initgraphics", 0)
OPERATORS |= ignored("run = == print closefile flushfile resetfile srand setglobal setpacking setvmthreshold vmreclaim echo", 1)
OPERATORS |= ignored("setpagedevice setuserparams setsystemparams setobjectformat undefineuserobject deletefile", 1)
OPERATORS |= ignored("write writestring writehexstring undefineresource defineuserobject renamefile printobject setdevparams", 2)
OPERATORS |= ignored("resourceforall", 4) | ignored("filenameforall internaldict", 3) | ignored("countexecstack", 0, (0,))
OPERATORS |= ignored("currentglobal currentpacking", 0, (False,)) | ignored("gcheck", 1, (True,))
OPERATORS |= ignored("rcheck wcheck", 1, (True,)) | ignored("executeonly noaccess readonly", 0) | ignored("status", 1, (False,))
OPERATORS |= ignored("rand realtime usertime", 0, (0,)) | ignored("vmstatus", 0, (0, 0, LARGEST))
OPERATORS |= ignored("bytesavailable", 1, (-1,))
OPERATORS |= ignored("resourcestatus", 2, (False,)) | ignored("currentuserparams currentsystemparams", 0, ({},))


# The stack (PLRM, 8.1).


@named("pop")
def _pop(m: Machine) -> None:
    m.pop()


@named("exch")
def _exch(m: Machine) -> None:
    top, below = m.pop(), m.pop()
    m.operands += (top, below)


@named("dup")
def _dup(m: Machine) -> None:
    top = m.pop()
    m.operands.append(top)
    m.push(top)


@named("copy")
def _copy(m: Machine) -> None:
    top = m.pop()
    if isinstance(top, dict):
        top.update(m.dictionary(m.pop()))
        m.pay(len(top))
        m.push(top)
    elif isinstance(top, Text | list):
        m.push(top)
        _copy_part(m)
    else:
        m.push(top)
        many = m.count()
        if many > len(m.operands):
            raise Fault("stackunderflow")
        if len(m.operands) + many > STACK:
            raise Enough
        m.operands += m.operands[len(m.operands) - many :]


def _copy_part(m: Machine) -> None:
    into, of = m.pop(), m.pop()
    if isinstance(into, Text) and isinstance(of, Text):
        into.data[: len(of.data)] = of.data
        m.pay(len(of.data) >> 4)
        m.push(Text(of.data))
    else:
        m.listed(into)[: len(m.listed(of))] = m.listed(of)
        m.pay(len(m.listed(of)))
        m.push(m.listed(into)[: len(m.listed(of))])


@named("index")
def _index(m: Machine) -> None:
    at = m.whole()
    if not 0 <= at < len(m.operands):
        raise Fault("rangecheck")
    m.push(m.operands[-1 - at])


@named("roll")
def _roll(m: Machine) -> None:
    by = m.whole()
    many = m.count()
    if many > len(m.operands):
        raise Fault("stackunderflow")
    if many:
        part = m.operands[-many:]
        at = -by % many
        m.operands[-many:] = part[at:] + part[:at]


@named("clear")
def _clear(m: Machine) -> None:
    m.operands.clear()


@named("count")
def _count(m: Machine) -> None:
    m.push(len(m.operands))


@named("counttomark")
def _counttomark(m: Machine) -> None:
    m.push(len(m.operands) - 1 - _marked(m))


@named("cleartomark")
def _cleartomark(m: Machine) -> None:
    del m.operands[_marked(m) :]


def _marked(m: Machine) -> int:
    """Where the topmost mark is."""
    try:
        above = operator.indexOf(reversed(m.operands), MARK)
    except ValueError:
        m.pay(len(m.operands) >> 4)
        raise Fault("unmatchedmark") from None
    m.pay(above >> 4)
    return len(m.operands) - 1 - above


def taken(m: Machine) -> list[object]:
    """What stands above the topmost mark; both go."""
    at = _marked(m)
    part = m.operands[at + 1 :]
    del m.operands[at:]
    return part


# Numbers (PLRM, 8.1).


def _of_two(do: Callable[[Any, Any], Any]) -> Operator:
    def run(m: Machine) -> None:
        second, first = m.number(), m.number()
        m.operands.append(bounded(do(first, second)))

    return run


def _of_one(do: Callable[[Any], Any]) -> Operator:
    def run(m: Machine) -> None:
        m.operands.append(bounded(do(m.number())))

    return run


def _rounded(do: Callable[[float], int]) -> Callable[[float], float]:
    """A function that gives a whole number for a whole one, and a real one for a real one."""
    return lambda value: value if isinstance(value, int) or not math.isfinite(value) else float(do(value))


def _truncated_division(first: float, second: float) -> int:
    return int(math.copysign(1, first) * math.copysign(1, second)) * (abs(int(first)) // abs(int(second)))


def _power(base: float, exponent: float) -> float:
    return math.pow(base, exponent) if base >= 0 or exponent == int(exponent) else 0.0


OPERATORS |= {
    "add": _of_two(operator.add), "sub": _of_two(operator.sub), "mul": _of_two(operator.mul), "div": _of_two(operator.truediv),
    "idiv": _of_two(_truncated_division), "mod": _of_two(lambda a, b: math.fmod(int(a), int(b)).__trunc__()),
    "atan": _of_two(lambda a, b: math.degrees(math.atan2(a, b)) % 360), "exp": _of_two(_power),
    "neg": _of_one(operator.neg), "abs": _of_one(abs), "sqrt": _of_one(lambda a: math.sqrt(max(a, 0))),
    "floor": _of_one(_rounded(math.floor)), "ceiling": _of_one(_rounded(math.ceil)), "truncate": _of_one(_rounded(math.trunc)),
    "round": _of_one(_rounded(lambda a: math.floor(a + 0.5))), "sin": _of_one(lambda a: math.sin(math.radians(a))),
    "cos": _of_one(lambda a: math.cos(math.radians(a))), "ln": _of_one(lambda a: math.log(a) if a > 0 else 0.0),
    "log": _of_one(lambda a: math.log10(a) if a > 0 else 0.0),
}  # fmt: skip


def _compared(do: Callable[[Any, Any], bool]) -> Operator:
    def run(m: Machine) -> None:
        second, first = m.pop(), m.pop()
        if isinstance(first, Text) and isinstance(second, Text):
            m.pay(len(first.data) >> 6)
            m.operands.append(do(first.data, second.data))
        elif isinstance(first, int | float) and isinstance(second, int | float):
            m.operands.append(do(first, second))
        else:
            raise Fault("typecheck")

    return run


OPERATORS |= {do.__name__: _compared(do) for do in (operator.lt, operator.le, operator.gt, operator.ge)}


def _same(m: Machine) -> bool:
    """Whether two operands are equal: numbers, strings and names by what they say, others where they are one."""
    first, second = m.pop(), m.pop()
    if isinstance(first, Text) and isinstance(second, Text):
        m.pay(len(first.data) >> 6)
        return first.data == second.data
    if isinstance(first, Text | str) and isinstance(second, Text | str):
        return key(first) == key(second)
    if isinstance(first, int | float | str) and isinstance(second, int | float | str):
        return first == second
    return first is second


@named("eq")
def _eq(m: Machine) -> None:
    m.operands.append(_same(m))


@named("ne")
def _ne(m: Machine) -> None:
    m.operands.append(not _same(m))


def _bits(do: Callable[[Any, Any], Any]) -> Operator:
    def run(m: Machine) -> None:
        second, first = m.pop(), m.pop()
        if not isinstance(first, int) or not isinstance(second, int):
            raise Fault("typecheck")
        m.operands.append(do(first, second))

    return run


OPERATORS |= {"and": _bits(operator.and_), "or": _bits(operator.or_), "xor": _bits(operator.xor)}


@named("not")
def _not(m: Machine) -> None:
    value = m.pop()
    m.operands.append(not value if isinstance(value, bool) else ~int(value) if isinstance(value, int) else False)


@named("bitshift")
def _bitshift(m: Machine) -> None:
    by, value = m.whole(), m.whole()
    m.operands.append(bounded((value << min(by, 31)) & 0xFFFF_FFFF if by > 0 else (value & 0xFFFF_FFFF) >> min(-by, 32)))


# Arrays, strings, dictionaries (PLRM, 8.1).


def key(value: object) -> object:
    """What an object is in a dictionary: strings are names there, which have 127 characters (PLRM, appendix B)."""
    if isinstance(value, Text):
        return value.data[:127].decode("latin-1")
    return value if isinstance(value, str | int | float) or value is None else id(value)


@named("array")
def _array(m: Machine) -> None:
    m.push([None] * m.count())


@named("string")
def _string(m: Machine) -> None:
    m.push(Text(bytes(m.count())))


@named("dict")
def _dict(m: Machine) -> None:
    m.whole()
    # dvips says in a comment which font it makes next, and nowhere else.
    source = m.files[-1] if m.files else Source(b"")
    m.push({"TeX": source.bitmaps} if source.bitmaps else {})
    source.bitmaps = ""


OPERATORS |= {"[": lambda m: m.push(MARK), "<<": lambda m: m.push(MARK), "]": lambda m: m.push(taken(m))}


@named(">>")
def _dict_of(m: Machine) -> None:
    part = taken(m)
    m.push({key(name): value for name, value in zip(part[::2], part[1::2], strict=False)})


@named("packedarray")
def _packedarray(m: Machine) -> None:
    many = m.count()
    part = m.operands[len(m.operands) - many :] if many else []
    del m.operands[len(m.operands) - many :]
    m.push(part)


@named("aload")
def _aload(m: Machine) -> None:
    array = m.array()
    m.pay(len(array))
    if len(array) + len(m.operands) > STACK:
        raise Enough
    m.operands += (*array, array)


@named("astore")
def _astore(m: Machine) -> None:
    array = m.array()
    if len(array) > len(m.operands):
        raise Fault("stackunderflow")
    m.pay(len(array))
    at = len(m.operands) - len(array)
    array[:] = m.operands[at:]
    m.operands[at:] = [array]


@named("length")
def _length(m: Machine) -> None:
    value = m.pop()
    if isinstance(value, Text):
        m.push(len(value.data))
    elif isinstance(value, dict | list | str):
        m.push(len(value))
    else:
        raise Fault("typecheck")


OPERATORS["maxlength"] = lambda m: m.push(LARGEST) if isinstance(m.pop(), dict) else None


@named("get")
def _get(m: Machine) -> None:
    at, of = m.pop(), m.pop()
    if isinstance(of, dict):
        if key(at) not in of:
            raise Fault("undefined")
        m.push(of[key(at)])
        return
    values = of.data if isinstance(of, Text) else m.listed(of)
    if not isinstance(at, int) or not 0 <= at < len(values):
        raise Fault("rangecheck")
    m.push(values[at])


@named("put")
def _put(m: Machine) -> None:
    value, at, of = m.pop(), m.pop(), m.pop()
    if isinstance(of, dict):
        of[key(at)] = value
        return
    values = of.data if isinstance(of, Text) else m.listed(of)
    if not isinstance(at, int) or not 0 <= at < len(values):
        raise Fault("rangecheck")
    if not isinstance(of, Text):
        m.listed(of)[at] = value
    elif isinstance(value, int):
        of.data[at] = value & 0xFF


@named("getinterval")
def _getinterval(m: Machine) -> None:
    many, at, of = m.count(), m.whole(), m.pop()
    if at < 0:
        raise Fault("rangecheck")
    if isinstance(of, Text):
        m.push(Text(of.data[at : at + many]))
    else:
        part = m.listed(of)[at : at + many]
        m.push(Procedure(part) if isinstance(of, Procedure) else part)


@named("putinterval")
def _putinterval(m: Machine) -> None:
    part, at, of = m.pop(), m.whole(), m.pop()
    if isinstance(of, Text) and isinstance(part, Text):
        m.pay(len(part.data) >> 4)
        if not 0 <= at <= len(of.data) - len(part.data):
            raise Fault("rangecheck")
        of.data[at : at + len(part.data)] = part.data
    else:
        m.pay(len(m.listed(part)) >> 4)
        if not 0 <= at <= len(m.listed(of)) - len(m.listed(part)):
            raise Fault("rangecheck")
        m.listed(of)[at : at + len(m.listed(part))] = m.listed(part)


@named("search")
def _search(m: Machine) -> None:
    what, of = m.text(), m.text()
    m.pay(len(of.data) >> 4)
    before, found, behind = of.data.partition(what.data) if what.data else (b"", b"", of.data)
    m.operands += (Text(behind), Text(found), Text(before), True) if found or not what.data else (of, False)


@named("anchorsearch")
def _anchorsearch(m: Machine) -> None:
    what, of = m.text(), m.text()
    m.pay(len(of.data) >> 4)
    m.operands += (Text(of.data[len(what.data) :]), what, True) if of.data.startswith(what.data) else (of, False)


@named("begin")
def _begin(m: Machine) -> None:
    if len(m.names) > NESTED:
        raise Fault("dictstackoverflow")
    m.names.append(m.dictionary(m.pop()))


@named("end")
def _end(m: Machine) -> None:
    if len(m.names) <= 2:
        raise Fault("dictstackunderflow")
    m.names.pop()


@named("def")
def _def(m: Machine) -> None:
    value, name = m.pop(), m.pop()
    m.names[-1][key(name)] = value


@named("store")
def _store(m: Machine) -> None:
    value, name = m.pop(), key(m.pop())
    next((names for names in reversed(m.names) if name in names), m.names[-1])[name] = value


@named("load")
def _load(m: Machine) -> None:
    m.push(m.find(key(m.pop())))


@named("where")
def _where(m: Machine) -> None:
    name = key(m.pop())
    holder = next((names for names in reversed(m.names) if name in names), None)
    m.operands += (False,) if holder is None else (holder, True)


@named("known")
def _known(m: Machine) -> None:
    name, names = key(m.pop()), m.dictionary(m.pop())
    m.push(name in names)


@named("undef")
def _undef(m: Machine) -> None:
    name, names = key(m.pop()), m.dictionary(m.pop())
    names.pop(name, None)


OPERATORS["currentdict"] = lambda m: m.push(m.names[-1])
OPERATORS["countdictstack"] = lambda m: m.push(len(m.names))


@named("cleardictstack")
def _cleardictstack(m: Machine) -> None:
    del m.names[2:]


@named("dictstack")
def _dictstack(m: Machine) -> None:
    m.array()
    m.push(list(m.names))


# Control (PLRM, 8.1).


@named("exec")
def _exec(m: Machine) -> None:
    m.execute(m.pop())


@named("if")
def _if(m: Machine) -> None:
    body, asked = m.array(), m.pop()
    if asked is True:
        m.call(body)


@named("ifelse")
def _ifelse(m: Machine) -> None:
    other, body, asked = m.array(), m.array(), m.pop()
    m.call(body if asked is True else other)


@named("for")
def _for(m: Machine) -> None:
    body, (first, by, last) = m.array(), m.numbers(3)

    def values() -> Iterator[tuple[object, ...]]:
        value = first
        while value <= last if by > 0 else value >= last:
            yield (value,)
            value = bounded(value + by)

    m.repeated(values(), body)


@named("repeat")
def _repeat(m: Machine) -> None:
    body, many = m.array(), m.whole()
    m.repeated((() for _ in range(many)), body)


@named("loop")
def _loop(m: Machine) -> None:
    m.repeated(iter(tuple, None), m.array())


@named("forall")
def _forall(m: Machine) -> None:
    body, of = m.array(), m.pop()
    if isinstance(of, dict):
        m.pay(len(of))
        m.repeated(((Name(k) if isinstance(k, str) else k, v) for k, v in list(of.items())), body)
    elif isinstance(of, Text):
        m.repeated(((each,) for each in bytes(of.data)), body)
    else:
        m.pay(len(m.listed(of)))
        m.repeated(((each,) for each in list(m.listed(of))), body)


@named("exit")
def _exit(m: Machine) -> None:
    raise _Exit


@named("stop")
def _stop(m: Machine) -> None:
    raise Halt


@named("stopped")
def _stopped(m: Machine) -> None:
    m.push(m.stopped(m.pop()))


@named("bind")
def _bind(m: Machine) -> None:
    body = m.pop()
    waiting = [body] if isinstance(body, Procedure) else []
    while waiting:
        procedure = waiting.pop()
        if procedure.bound:
            continue
        procedure.bound = True
        m.pay(len(procedure))
        for at, item in enumerate(procedure):
            if isinstance(item, Procedure):
                waiting.append(item)
            elif isinstance(item, Word):
                value = next((names[item] for names in reversed(m.names) if item in names), None)
                procedure[at] = value if callable(value) else item
    m.push(body)


# Types (PLRM, 8.1).

_TYPES = {
    bool: "boolean", int: "integer", float: "real", Text: "string", Name: "name", Word: "name", dict: "dict", Mark: "mark",
    Source: "file", list: "array", Procedure: "array", type(None): "null",
}  # fmt: skip


@named("type")
def _type(m: Machine) -> None:
    m.push(Word(f"{_TYPES.get(m.pop().__class__, 'operator')}type"))


@named("cvx")
def _cvx(m: Machine) -> None:
    value = m.pop()
    if isinstance(value, Text):
        m.pay(len(value.data) >> 4)
        m.push(Text(value.data, code=True))
    elif isinstance(value, list):
        m.pay(len(value) >> 2)
        m.push(value if isinstance(value, Procedure) else Procedure(value))
    else:
        m.push(Word(value) if isinstance(value, str) else value)


@named("cvlit")
def _cvlit(m: Machine) -> None:
    value = m.pop()
    if isinstance(value, Text):
        m.pay(len(value.data) >> 4)
        m.push(Text(value.data))
    elif isinstance(value, list):
        m.pay(len(value) >> 2)
        m.push(list(value))
    else:
        m.push(Name(value) if isinstance(value, str) else value)


@named("xcheck")
def _xcheck(m: Machine) -> None:
    value = m.pop()
    m.push(isinstance(value, Procedure | Word) or callable(value) or (isinstance(value, Text) and value.code))


@named("cvn")
def _cvn(m: Machine) -> None:
    value = m.text()
    name = str(key(value))
    m.push(Word(name) if value.code else Name(name))


def _converted(m: Machine) -> float:
    value = m.pop()
    if isinstance(value, Text):
        value = _number(bytes(value.data[:WORD]).strip())
    if isinstance(value, int | float) and math.isfinite(value):
        return value
    raise Fault("typecheck")


OPERATORS["cvi"] = lambda m: m.push(bounded(int(_converted(m))))
OPERATORS["cvr"] = lambda m: m.push(float(_converted(m)))


@named("cvs")
def _cvs(m: Machine) -> None:
    m.text()
    m.push(Text(_shown(m.pop()).encode("latin-1", "replace")))


def _shown(value: object) -> str:
    """An object as `cvs` writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}" if value != int(value) else f"{value:.1f}"
    return str(key(value)) if isinstance(value, Text | str | int) else "--nostringval--"


@named("cvrs")
def _cvrs(m: Machine) -> None:
    m.text()
    radix, value = m.whole(), m.whole()
    digits = ""
    while value > 0 and 2 <= radix <= 36:
        value, digit = divmod(value, radix)
        digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[digit] + digits
    m.push(Text((digits or "0").encode()))


# Files (PLRM, 3.8 and 3.13).

OPERATORS["currentfile"] = lambda m: m.push(m.files[-1] if m.files else Source(b""))


@named("file")
def _file(m: Machine) -> None:
    m.text()
    name = m.text()
    m.push(m.files[-1] if m.files and name.data == b"%stdin" else Source(b""))


@named("read")
def _read(m: Machine) -> None:
    byte = m.source(m.pop()).read(1)
    m.operands += (byte[0], True) if byte else (False,)


def _given(m: Machine, read: Callable[[Source, int], bytes]) -> None:
    """Fill a string from a file; say whether it was filled."""
    text = m.text()
    source = m.source(m.pop())
    size = len(text.data)
    m.pay(size >> 4)
    given = read(source, size)
    text.data[: len(given)] = given
    m.operands += (Text(given) if len(given) < size else text, len(given) == size > 0)


OPERATORS["readstring"] = lambda m: _given(m, Source.read)
OPERATORS["readhexstring"] = lambda m: _given(m, Source.digits)


@named("readline")
def _readline(m: Machine) -> None:
    text = m.text()
    source = m.source(m.pop())
    more = source.at < len(source.raw)
    line = source.until(b"\n", LARGEST)
    m.pay(len(line) >> 4)
    del text
    m.operands += (Text(line.removesuffix(b"\r")), more)


@named("token")
def _token(m: Machine) -> None:
    of = m.pop()
    source = Source(bytes(of.data)) if isinstance(of, Text) else m.source(of)
    m.pay(len(source.raw) >> 4 if isinstance(of, Text) else 0)
    item = m.read(source)
    if item is END:
        m.push(False)
        return
    if isinstance(of, Text):
        m.push(Text(source.raw[source.at :]))
    m.operands += (item, True)


@named("filter")
def _filter(m: Machine) -> None:
    name = str(key(m.pop()))
    if m.operands and isinstance(m.operands[-1], dict):
        m.pop()
    if name == "SubFileDecode":
        end, many = m.text(), m.whole()
        m.push(_Filter(m, name, _data(m), bytes(end.data[:127]), many if 0 < many < MAX_DECODED else MAX_DECODED))
    else:
        m.push(_Filter(m, name, _data(m), _ENDED.get(name, b"")))


class _Filter(Source):
    """What a filter gives of a source: it is decoded when it is first read, and not at all where it is a picture's."""

    def __init__(self, machine: Machine, name: str, source: Source, end: bytes, size: int = 0) -> None:
        super().__init__(b"")
        self._machine = machine
        self._name = name
        self._source: Source | None = source
        self._end = end
        self._size = size

    @property
    def raw(self) -> bytes:
        """The bytes; what is damaged gives none. Raises Enough."""
        if source := self._taken():
            begin = source.at
            try:
                self._raw = _DECODED[self._name](source)[:MAX_DECODED] if self._name in _DECODED else b""
            except (LookupError, ValueError, TypeError):
                self._raw = b""
            read = source.at - begin
            self._machine.pay((read >> 4 if self._name == "FlateDecode" else read) + (len(self._raw) >> 6))
        return self._raw

    def skip(self, size: int) -> None:
        """Pass over all that the filter would give."""
        if self._end or self._size:
            self._taken()
        elif isinstance(self._source, _Filter):
            self._source.skip(size)
        elif self._source:
            self.at = len(self.raw)

    def _taken(self) -> Source | None:
        """What is to be decoded, once: that until the mark, or so many bytes, where the filter has either."""
        source, self._source = self._source, None
        if source and self._end:
            return Source(source.until(self._end))
        return Source(source.read(self._size)) if source and self._size else source


def _data(m: Machine) -> Source:
    """A filter's source: a file, a string, or a procedure that gives strings, which nothing is read from."""
    value = m.pop()
    if isinstance(value, Source):
        return value
    m.pay(len(value.data) >> 4 if isinstance(value, Text) else 0)
    return Source(bytes(value.data) if isinstance(value, Text) else b"")


def _inflated(source: Source) -> bytes:
    inflater = zlib.decompressobj()
    try:
        given = inflater.decompress(source.raw[source.at :], MAX_DECODED)
    except zlib.error:
        given = b""
    source.at = len(source.raw) - len(inflater.unused_data)
    return given


def _run_lengths(source: Source) -> bytes:
    """Runs and copies (PLRM, 3.13.3)."""
    kept: list[bytes] = []
    size = 0
    while size < MAX_DECODED and (head := source.read(1)) and head != b"\x80":
        kept.append(source.read(head[0] + 1) if head[0] < 0x80 else source.read(1) * (257 - head[0]))
        size += len(kept[-1])
    return b"".join(kept)


_ENDED = {"ASCIIHexDecode": b">", "ASCII85Decode": b"~>", "DCTDecode": b"\xff\xd9"}
"""Marks at the end of what filters read."""
_DECODED: dict[str, Callable[[Source], bytes]] = {
    "ASCIIHexDecode": lambda source: _unhex(source.read(MAX_DECODED)),
    "ASCII85Decode": lambda source: _base_85(source.read(MAX_DECODED).lstrip().removeprefix(b"<~")),
    "FlateDecode": _inflated,
    "LZWDecode": lambda source: lzwdecode(source.read(MAX_DECODED)),
    "RunLengthDecode": _run_lengths,
    "SubFileDecode": lambda source: source.read(MAX_DECODED),
    "ReusableStreamDecode": lambda source: source.read(MAX_DECODED),
}
"""What filters give. What images are made of is not decoded, but passed over."""
