"""Compares two readings of a document: token F1 of the texts, and the facts and links that only one reading has.

Tokens are runs of letters and digits, in lower case, after NFKC (a ligature becomes its letters); their order does not count, their
number does. Each document counts once, however long: mean, median and worst are taken over documents.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from statistics import fmean, median
from typing import NamedTuple

from tests.parity.readings import FACTS, Reading

_TOKEN = re.compile(r"[^\W_]+")
MADE = frozenset(("title", "language", "description", "subject"))
"""Facts that Harvest derives if a document does not state them; they count only where they agree with Tika's."""


def tokens(text: str) -> Counter[str]:
    """The tokens of a text, with their counts."""
    return Counter(_TOKEN.findall(unicodedata.normalize("NFKC", text).lower()))


def f1(ours: str, theirs: str) -> float:
    """The harmonic mean of precision and recall of our tokens, with Tika's as the reference; 1 if neither text has tokens."""
    mine, right = tokens(ours), tokens(theirs)
    total = mine.total() + right.total()
    return 2 * (mine & right).total() / total if total else 1.0


def same(kind: str, ours: Sequence[str], theirs: Sequence[str]) -> bool:
    """Whether our values of a fact agree with Tika's."""
    match kind:
        case "created" | "modified":
            mine, right = (list(filter(None, map(_when, values))) for values in (ours, theirs))
            # One side may lack the time zone, so 26 hours are tolerated. Unusual date formats are compared as text.
            alike = any(abs(a - b) <= timedelta(hours=26) for a in mine for b in right)
            return alike or not {" ".join(value.split()) for value in ours}.isdisjoint(" ".join(value.split()) for value in theirs)
        case "language":
            return bool({value[:2].lower() for value in ours} & {value[:2].lower() for value in theirs})
        case _:
            mine_, right_ = (_flat(" ".join(values)) for values in (ours, theirs))
            return len(right_ & mine_) * 10 >= len(right_) * 9 if right_ else not set(theirs).isdisjoint(ours)


def _flat(text: str) -> frozenset[str]:
    return frozenset(tokens(text))


def _when(text: str) -> datetime | None:
    """The time of a text, in UTC if it has a zone, or None: one side may copy the date as the document writes it."""
    for read in (datetime.fromisoformat, lambda plain: datetime.strptime(plain, "%a %b %d %H:%M:%S %z %Y")):
        with suppress(ValueError, OverflowError):
            when = read(text.strip())
            return (when.astimezone(UTC) if when.tzinfo else when).replace(tzinfo=None)
    return None


class Compared(NamedTuple):
    """The comparison of one document."""

    name: str
    f1: float
    ours: Reading
    theirs: Reading

    def lacking(self) -> list[str]:
        """The facts that Tika finds and Harvest does not."""
        pairs = ((kind, self.ours.facts.get(kind, ()), values) for kind, values in self.theirs.facts.items())
        return [kind for kind, mine, values in pairs if not same(kind, mine, values)]

    def beyond(self) -> list[str]:
        """The facts that the document states and Tika does not find."""
        return [kind for kind in self.ours.facts if kind not in self.theirs.facts and kind not in MADE]


def compared(name: str, ours: Reading, theirs: Reading) -> Compared:
    """Compare the two readings of one document."""
    return Compared(name, f1(ours.text, theirs.text), ours, theirs)


class Text(NamedTuple):
    """Statistics of the F1 over all documents of a kind."""

    mean: float
    median: float
    worst: float
    above: float
    """The share of documents with an F1 of at least 0.9."""


def text(found: Sequence[Compared]) -> Text:
    """The similarity of the texts of all documents."""
    scores = [one.f1 for one in found]
    return Text(fmean(scores), median(scores), min(scores), fmean(score >= 0.9 for score in scores))


class Count(NamedTuple):
    """How many were found by Harvest, by Tika, and by both."""

    ours: int
    theirs: int
    both: int


def links(found: Sequence[Compared]) -> Count:
    """Count links; a link counts once in each document."""
    pairs = [(one.ours.links, one.theirs.links) for one in found]
    return Count(sum(len(a) for a, _ in pairs), sum(len(b) for _, b in pairs), sum(len(a & b) for a, b in pairs))


def facts(found: Sequence[Compared]) -> dict[str, Count]:
    """Count the documents that have a fact, for each kind of fact.

    Harvest's count has the documents where it agrees with Tika, and those that state the fact where Tika finds none.
    """
    counts = {}
    for kind in FACTS:
        theirs = [one for one in found if kind in one.theirs.facts]
        shared = sum(kind not in one.lacking() for one in theirs)
        counts[kind] = Count(shared + sum(kind in one.beyond() for one in found), len(theirs), shared)
    return counts
