"""Operators of numbers, booleans and comparison (PLRM, 8.1)."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from processors.essence.formats.postscript.machine import Machine, Operator, Operators
from processors.essence.formats.postscript.objects import INTEGER, Fault, Text, bounded, key

NUMBERS = Operators()


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
    """Return a function that leaves an integer as it is, and rounds a real to a real."""
    return lambda value: value if isinstance(value, int) or not math.isfinite(value) else float(do(value))


def _truncated_division(first: float, second: float) -> int:
    return int(math.copysign(1, first) * math.copysign(1, second)) * (abs(int(first)) // abs(int(second)))


def _power(base: float, exponent: float) -> float:
    return math.pow(base, exponent) if base >= 0 or exponent == int(exponent) else 0.0


NUMBERS |= {
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


NUMBERS |= {do.__name__: _compared(do) for do in (operator.lt, operator.le, operator.gt, operator.ge)}


def _same(m: Machine) -> bool:
    """Pop two operands; return whether they are equal: numbers, strings and names by value, others by identity."""
    first, second = m.pop(), m.pop()
    if isinstance(first, Text) and isinstance(second, Text):
        m.pay(len(first.data) >> 6)
        return first.data == second.data
    if isinstance(first, Text | str) and isinstance(second, Text | str):
        return key(first) == key(second)
    if isinstance(first, int | float | str) and isinstance(second, int | float | str):
        return first == second
    return first is second


@NUMBERS.named("eq")
def _eq(m: Machine) -> None:
    m.operands.append(_same(m))


@NUMBERS.named("ne")
def _ne(m: Machine) -> None:
    m.operands.append(not _same(m))


def _bits(do: Callable[[Any, Any], Any]) -> Operator:
    def run(m: Machine) -> None:
        second, first = m.pop(), m.pop()
        if not isinstance(first, int) or not isinstance(second, int):
            raise Fault("typecheck")
        m.operands.append(do(first, second))

    return run


NUMBERS |= {"and": _bits(operator.and_), "or": _bits(operator.or_), "xor": _bits(operator.xor)}


@NUMBERS.named("not")
def _not(m: Machine) -> None:
    value = m.pop()
    m.operands.append(not value if isinstance(value, bool) else ~int(value) if isinstance(value, int) else False)


@NUMBERS.named("bitshift")
def _bitshift(m: Machine) -> None:
    by, value = m.whole(), m.whole()
    shifted = (value << min(by, 32)) & 0xFFFF_FFFF if by > 0 else (value & 0xFFFF_FFFF) >> min(-by, 32)
    # The result has 32 bits, the first of which is the sign.
    m.operands.append(shifted - 2 * INTEGER if shifted >= INTEGER else shifted)
