"""A measured figure, with its baseline and its goal, and its forms in a table and as a JSON line."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "<": operator.lt,
    "=": operator.eq,
}
WIDTHS = (18, 30, 12, 12)


class BenchError(Exception):
    """A measurement failed, or its input could not be obtained."""


class Goal(NamedTuple):
    """The goal of a figure: a comparison and a number."""

    compare: str
    number: float

    def met(self, figure: float) -> bool:
        """Whether a figure meets the goal."""
        return COMPARE[self.compare](figure, self.number)

    def __str__(self) -> str:
        return f"{self.compare} {self.number:,g}"


class Figure(NamedTuple):
    """One line of the table."""

    group: str
    name: str
    figure: float
    unit: str
    against: str = ""
    goal: Goal | None = None

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None if there is none."""
        return self.goal.met(self.figure) if self.goal else None

    def as_json(self) -> str:
        """The figure as a JSON line."""
        goal = str(self.goal) if self.goal else None
        return msgspec.json.encode(self._asdict() | {"goal": goal, "met": self.met}).decode()

    def as_line(self) -> str:
        """The figure as a line of the table."""
        goal = "" if self.goal is None else f"{self.goal} {'met' if self.met else 'MISSED'}"
        group, name, figure, unit = WIDTHS
        return f"{self.group:{group}} {self.name:{name}} {shown(self.figure):>{figure}} {self.unit:{unit}} {goal:16} {self.against}"


def shown(figure: float) -> str:
    """Format a number: integers whole, large figures without a fraction, small ones with three digits."""
    if isinstance(figure, int) or abs(figure) >= 1_000:
        return f"{figure:,.0f}"
    return f"{figure:,.3f}" if abs(figure) < 10 else f"{figure:,.1f}"


def heading() -> str:
    """The first line of the table."""
    group, name, figure, unit = WIDTHS
    return f"{'what':{group}} {'':{name}} {'figure':>{figure}} {'unit':{unit}} {'goal':16} measured against"
