"""Marks: which changes a stream contains, so that a reader can ask for later ones."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import NamedTuple

_MARK = re.compile(r"([0-9a-f]{16})-(0|[1-9][0-9]{0,17})")
_SECONDS = re.compile(r"[0-9]{1,11}")


class Mark(NamedTuple):
    """Position in the order of changes of one feed."""

    epoch: str
    """16 hex digits, chosen when the feed was made; a feed made anew has another one, since its order is another."""
    number: int
    """Number of the last change; 0: none."""

    def __str__(self) -> str:
        return f"{self.epoch}-{self.number}"


def parse_mark(text: str) -> Mark | None:
    """Return the mark that a text states; None if it is no mark."""
    found = _MARK.fullmatch(text)
    return Mark(found[1], int(found[2])) if found else None


def parse_since(text: str) -> Mark | int:
    """Return a mark, or a time (seconds since the epoch, or ISO 8601; UTC unless it says so) in ms. Raises ValueError."""
    if (mark := parse_mark(text)) is not None:
        return mark
    if _SECONDS.fullmatch(text):
        return int(text) * 1_000
    moment = datetime.fromisoformat(text)
    try:
        return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1_000)
    except OverflowError as error:
        raise ValueError(text) from error
