"""No pattern triggers the bug of possessive repeats in Python until 3.11.4 (its issues 100061 and 106052).

There `(?:ab?c)*+` matches "a": if the last attempt at the repeated part advances and then fails, the match continues from where
that failed. Where an attempt may do that, `|(?!)` after it, which never matches, resets the matcher: `(?:ab?c|(?!))*+`. An atomic
group, `(?>(?:ab?c)*)`, would be right as well, but stores each iteration: 120 bytes for two characters.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

PACKAGES = ("processors", "schemas", "sinks", "streams")
ONE = {"LITERAL", "NOT_LITERAL", "IN", "ANY", "AT", "RANGE"}
"""Operations that fail without advancing."""
GROUPS = {"SUBPATTERN", "ATOMIC_GROUP"}
REPEATS = {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}


def flat(parsed: Any) -> list[tuple[str, Any]]:
    """Return the operations of a sequence, with groups expanded in place."""
    found: list[tuple[str, Any]] = []
    for op, argument in parsed:
        name = str(op)
        found += flat(argument[-1] if name == "SUBPATTERN" else argument) if name in GROUPS else [(name, argument)]
    return found


def is_one(parsed: Any) -> bool:
    """Return whether the repeated part is a single character."""
    return [op in ONE for op, _ in flat(parsed)] == [True]


def is_never(ops: Sequence[tuple[str, Any]]) -> bool:
    """Return whether this is `(?!)`, which Python represents in one of two ways."""
    return [op for op, _ in ops] == ["FAILURE"] or (len(ops) == 1 and ops[0][0] == "ASSERT_NOT" and not len(ops[0][1][1]))


def fails_in_place(ops: Sequence[tuple[str, Any]]) -> bool:
    """Return whether every failing attempt leaves the matcher at its start; false if that is unknown."""
    moved = False
    for at, (op, argument) in enumerate(ops):
        if op in ONE:
            if moved:
                return False
        elif op in REPEATS and is_one(argument[2]):
            if argument[0] > 0 and (moved or at > 0):
                return False
            moved = True
        elif op == "BRANCH" and at == 0:
            tries = [flat(each) for each in argument[1]]
            if not is_never(tries[-1]) and not all(map(fails_in_place, tries)):
                return False
            moved = True
        else:
            return False
    return True


def faults(pattern: str | bytes, flags: int = 0) -> list[str]:
    """Return the possessive repeats of a pattern that may trigger the bug, as operations."""

    def within(parsed: Any) -> Iterator[str]:
        for op, argument in parsed:
            if str(op) == "POSSESSIVE_REPEAT" and not is_one(argument[2]) and not fails_in_place(flat(argument[2])):
                yield str(argument[2])[:300]
            for part in argument if isinstance(argument, tuple) else ():
                if str(op) == "BRANCH" and isinstance(part, list):
                    for each in part:
                        yield from within(each)
                elif hasattr(part, "getwidth"):
                    yield from within(part)

    # `re` has no public way to get the operations.
    return list(within(importlib.import_module("re._parser").parse(pattern, flags)))


def patterns_in(value: Any, depth: int = 5) -> Iterator[re.Pattern[Any]]:
    """Yield the patterns in a value: itself, in a container, in a function's closure, in a class."""
    if isinstance(value, re.Pattern):
        yield value
    within: Iterable[Any] = ()
    if isinstance(value, Mapping):
        within = value.values()
    elif isinstance(value, tuple | list | set | frozenset):
        within = value
    elif isinstance(value, FunctionType):
        within = [cell.cell_contents for cell in value.__closure__ or ()]
    elif isinstance(value, type):
        within = list(vars(value).values())
    for each in within if depth else ():
        yield from patterns_in(each, depth - 1)


def project_patterns() -> Iterator[tuple[str, re.Pattern[Any]]]:
    """Yield all patterns reachable from module-level names of our modules."""
    for name in PACKAGES:
        package = importlib.import_module(name)
        names = (info.name for info in pkgutil.walk_packages(package.__path__, f"{name}."))
        for module in (each for each in names if not each.endswith("__main__")):
            for known, value in vars(importlib.import_module(module)).items():
                if getattr(value, "__module__", module) == module or not isinstance(value, type | FunctionType):
                    for each in patterns_in(value):
                        yield f"{module}.{known}", each


def test_module_patterns_avoid_bug() -> None:
    """No pattern in a module can trigger the bug."""
    patterns = list(project_patterns())
    assert len({each for _, each in patterns}) > 350
    assert [(name, found) for name, each in patterns if (found := faults(each.pattern, each.flags & ~re.DEBUG))] == []


def test_type_patterns_avoid_bug(root: Path) -> None:
    """No pattern for recognizing types can trigger the bug."""
    types = tomllib.loads((root / "processors" / "essence" / "recognize" / "types.toml").read_text("utf-8"))

    def strings(value: Any) -> Iterator[str]:
        if isinstance(value, str):
            yield value
        for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from strings(each)

    patterns = [each for each in strings(types) if re.search(r"\)[*+?}\d,{]{1,8}\+", each)]
    assert len(patterns) > 5
    assert [(each, found) for each in patterns if (found := faults(each))] == []


def test_patterns_are_found_wherever_they_are_kept() -> None:
    """Patterns are found in containers, named tuples included, in closures and in classes."""
    pattern = re.compile("x")

    class Kept:
        of = (("name", pattern),)

    for value in (pattern, (pattern,), {"a": [pattern]}, [("name", pattern)], frozenset((pattern,)), lambda: pattern, Kept):
        assert list(patterns_in(value)) == [pattern]
    assert list(patterns_in("x")) == []


@pytest.mark.parametrize(
    ("pattern", "wrong"),
    [
        (r"(?:ab?c)*+", True),
        (r"(?:ab?c|(?!))*+", False),
        (r"(?:[^\"\\\n]++|\\(?:.|\Z))*+", True),
        (r"(?:[^\"\\\n]++|\\[^x])*+", False),
        (r"(?:\.\./)*+", False),
        (r"(?:a+b|c)?+", True),
        (r"x(?:y(?:a*b){2}+)", True),
        (r"[a-z]++", False),
        (r"(a[b-d]*+)++", False),
        (r"((?!C).)++", True),
    ],
)
def test_faulty_patterns_are_distinguished(pattern: str, wrong: bool) -> None:
    """Patterns that may trigger the bug are distinguished from those that fail in place, or reset the matcher."""
    assert bool(faults(pattern)) is wrong
