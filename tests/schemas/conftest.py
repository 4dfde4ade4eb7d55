"""Strategies for records of every type, derived from the annotations of the classes."""

from __future__ import annotations

from collections.abc import Callable
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import strategies as st

from schemas.records import Record

LONG = st.integers(-(2**53), 2**53)
INT = st.integers(-(2**31), 2**31 - 1)
TEXT = st.text(max_size=20)


def values(annotation: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for any value that an annotation allows."""
    if annotation in (str, bytes, int, bool):
        return {str: TEXT, bytes: st.binary(max_size=20), int: LONG, bool: st.booleans()}[annotation]
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return st.sampled_from(inner)
    if origin in (Union, UnionType):
        return st.one_of(*map(values, inner))
    if origin is tuple:
        return st.lists(values(inner[0]), max_size=3).map(tuple)
    if origin is not None:
        return st.dictionaries(TEXT, values(inner[1]), max_size=3)
    return st.none() if annotation is type(None) else record(annotation)


NARROW = {"depth": INT, "mode": INT, "moves": INT, "partition": INT, "status": INT}
"""Fields that are an Avro int."""


def record(cls: type[Record]) -> st.SearchStrategy[Record]:
    """Return a strategy for any record of a class."""
    hints = get_type_hints(cls)
    return st.builds(cls, **{name: NARROW[name] if name in NARROW else values(hints[name]) for name in cls.__struct_fields__})


@pytest.fixture(scope="session")
def any_record() -> Callable[[type[Record]], st.SearchStrategy[Any]]:
    """Function from a class to a strategy for its records."""
    return record
