"""The machine that runs a PostScript file (stacks, dictionaries, files), and the registry of operators."""

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
    Exit,
    Fault,
    Halt,
    Immediate,
    LimitReached,
    Procedure,
    Text,
    Word,
)
from processors.essence.formats.postscript.scan import Program, Source


class Machine:
    """Interpreter state and execution: stacks, dictionaries, files."""

    def __init__(self, operators: Operators, steps: int) -> None:
        self.steps = steps
        """Steps that remain."""
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
        """Number of `stopped` contexts around the running procedure."""

    def known(self, name: object) -> dict[object, object] | None:
        """Return the topmost dictionary that contains a name."""
        return next((names for names in reversed(self.names) if name in names), None)

    # Operands: each method raises Fault if the operand is missing or of another type.

    def pop(self) -> object:
        """Pop the topmost operand."""
        if not self.operands:
            raise Fault("stackunderflow")
        return self.operands.pop()

    def push(self, value: object) -> None:
        """Push a result. Raises Enough when the stack is full."""
        if len(self.operands) >= STACK:
            raise LimitReached
        self.operands.append(value)

    def number(self) -> float:
        """Pop a number, integer or real."""
        value = self.pop()
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise Fault("typecheck")
        if not math.isfinite(value):
            raise Fault("undefinedresult")
        return value

    def whole(self) -> int:
        """Pop an integer; a real is truncated, since programs pass reals, too."""
        return int(self.number())

    def count(self) -> int:
        """Pop a size or count from 0 to LARGEST, and pay for it."""
        value = self.whole()
        if 0 <= value <= LARGEST:
            self.pay(value >> 2)
            return value
        raise Fault("rangecheck")

    def numbers(self, many: int) -> list[float]:
        """Pop `many` numbers, in the order in which they were pushed."""
        return [self.number() for _ in range(many)][::-1]

    def text(self) -> Text:
        """Pop a string."""
        value = self.pop()
        if isinstance(value, Text):
            return value
        raise Fault("typecheck")

    def array(self) -> list[object]:
        """Pop an array or a procedure."""
        return self.listed(self.pop())

    def listed(self, value: object) -> list[object]:
        """Return a value that must be an array."""
        if isinstance(value, list):
            return value
        raise Fault("typecheck")

    def dictionary(self, value: object) -> dict[object, object]:
        """Return a value that must be a dictionary."""
        if isinstance(value, dict):
            return value
        raise Fault("typecheck")

    def source(self, value: object) -> Source:
        """Return a value that must be a file."""
        if isinstance(value, Source):
            return value
        if isinstance(value, Program):
            return value.source
        raise Fault("typecheck")

    def pay(self, steps: int) -> None:
        """Pay for an operation that costs more than one step. Raises Enough."""
        self.steps -= steps
        if self.steps < 0:
            raise LimitReached

    # Execution.

    def run(self, source: Source) -> None:
        """Run a file to its end. Raises Enough, Fault."""
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
        """Execute a name at the top level of a file; `exit` or `stop` without an enclosing context ends only that name."""
        try:
            self.word(name)
        except (Exit, Halt):
            if self.depth > 1:
                raise

    def read(self, source: Source) -> object:
        """Return the next object of a file, a procedure as a whole; END at the end of the file."""
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
                    raise LimitReached
                continue
            if item is CLOSE:
                if not building:
                    continue
                item = building.pop()
            if not building or item is END:
                return item
            building[-1].append(item)

    def find(self, name: object) -> object:
        """Return the value of a name. Raises Fault."""
        # The hot path of every name: inlined, without a function call.
        for names in reversed(self.names):
            if name in names:
                return names[name]
        raise Fault("undefined")

    def word(self, name: object) -> None:
        """Execute an executable name; errors are ignored unless a `stopped` encloses it."""
        try:
            self.execute(self.find(name))
        except (Fault, ArithmeticError):
            if self.guarded:
                raise

    def execute(self, value: object) -> None:
        """Execute an object that was found by name or is on the stack; push it if it is not executable."""
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
        """Execute a name that is the value of another name."""
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
        """Execute an operator that `bind` has put in place of its name."""
        try:
            item(self)
        except (Fault, ArithmeticError):
            if self.guarded:
                raise

    def stopped(self, value: object) -> bool:
        """Execute an object; return whether it failed."""
        self.guarded += 1
        try:
            self.execute(value)
        except (Fault, ArithmeticError, Halt):
            return True
        finally:
            self.guarded -= 1
        return False

    def repeated(self, values: Iterator[tuple[object, ...]], body: list[object]) -> None:
        """Execute a procedure for each of several values, until it calls `exit`."""
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
        """Return a decorator that registers an operator under its names."""

        def keep(run: Operator) -> Operator:
            self.update(dict.fromkeys(names, run))
            return run

        return keep

    def ignore(self, names: str, operands: int = 0, results: tuple[object, ...] = ()) -> None:
        """Register operators that do nothing here: the number of operands that they pop, and the results that they push."""

        def run(m: Machine) -> None:
            if operands > len(m.operands):
                raise Fault("stackunderflow")
            del m.operands[len(m.operands) - operands :]
            if results:
                # A program may modify a result, so that each call pushes a copy.
                m.operands.extend(deepcopy(results))

        self.update(dict.fromkeys(names.split(), run))
