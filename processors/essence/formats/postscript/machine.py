"""The machine that runs a file: stacks, dictionaries, files; and how operators are written down."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from copy import deepcopy

from processors.essence.formats.postscript.objects import (
    CLOSE,
    END,
    LARGEST,
    MARK,
    NESTED,
    OPEN,
    STACK,
    Enough,
    Exit,
    Fault,
    Halt,
    Immediate,
    Procedure,
    Text,
    Word,
)
from processors.essence.formats.postscript.scan import Program, Source


class Machine:
    """What runs a file: stacks, dictionaries, files."""

    def __init__(self, operators: Operators, steps: int) -> None:
        self.steps = steps
        """Steps that are left."""
        self.operands: list[object] = []
        self.system: dict[object, object] = {"true": True, "false": False, "null": None, "mark": MARK}
        self.system.update(operators)
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
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise Fault("typecheck")
        if not math.isfinite(value):
            raise Fault("undefinedresult")
        return value

    def whole(self) -> int:
        """A whole number; programs leave real ones, too."""
        return int(self.number())

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

    def dictionary(self, value: object) -> dict[object, object]:
        """A value that must be a dictionary."""
        if isinstance(value, dict):
            return value
        raise Fault("typecheck")

    def source(self, value: object) -> Source:
        """A value that must be a file."""
        if isinstance(value, Source):
            return value
        if isinstance(value, Program):
            return value.source
        raise Fault("typecheck")

    def pay(self, steps: int) -> None:
        """Pay for what costs more than one step. Raises Enough."""
        self.steps -= steps
        if self.steps < 0:
            raise Enough

    # Running.

    def run(self, source: Source) -> None:
        """Run what a file holds, to its end. Raises Enough, Fault."""
        if self.depth >= NESTED:
            raise Fault("execstackoverflow")
        self.depth += 1
        self.files.append(source)
        try:
            while (item := self.read(source)) is not END:
                if item.__class__ is Word:
                    self._outermost(item)
                else:
                    self.push(item)
        finally:
            self.files.pop()
            self.depth -= 1

    def _outermost(self, name: object) -> None:
        """Execute a word of a file; `exit` and `stop` that nothing waits for end that word."""
        try:
            self.word(name)
        except (Exit, Halt):
            if self.depth > 1:
                raise

    def read(self, source: Source) -> object:
        """The next object of a file, a procedure with all that is in it; END where there is none."""
        building: list[Procedure] = []
        while True:
            self.pay(1)
            item = source.token()
            if isinstance(item, Immediate):
                names = self.known(item)
                item = names[item] if names is not None else Word(item)
            if item is OPEN:
                building.append(Procedure())
                if len(building) > NESTED:
                    raise Enough
                continue
            if item is CLOSE:
                if not building:
                    continue
                item = building.pop()
            if not building or item is END:
                return item
            building[-1].append(item)

    def find(self, name: object) -> object:
        """The value of a name. Raises Fault."""
        # The way of each word: no function is called.
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
        elif isinstance(value, Program):
            self.run(value.source)
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
        except Exit:
            return


Operator = Callable[[Machine], None]


class Operators(dict[str, Operator]):
    """Operators by name."""

    def named(self, *names: str) -> Callable[[Operator], Operator]:
        """A decorator: an operator's names."""

        def keep(run: Operator) -> Operator:
            self.update(dict.fromkeys(names, run))
            return run

        return keep

    def ignore(self, names: str, operands: int = 0, results: tuple[object, ...] = ()) -> None:
        """Operators that do nothing here: how many operands they take, and what they leave."""

        def run(m: Machine) -> None:
            if operands > len(m.operands):
                raise Fault("stackunderflow")
            del m.operands[len(m.operands) - operands :]
            if results:
                # A program may write into what it is given; the next one gets its own.
                m.operands.extend(deepcopy(results))

        self.update(dict.fromkeys(names.split(), run))
