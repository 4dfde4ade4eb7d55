"""Two readings of a document held against each other: token F1 of the texts, and what each found that the other did not.

Tokens are runs of letters and digits, lower case, after NFKC (a ligature is its letters); their order does not count, how often
each comes does. Each document counts as one, however long: mean, median and worst are those over documents.
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
"""What Harvest makes where a document says nothing; it counts only where it holds what Tika found."""


def tokens(text: str) -> Counter[str]:
    """The tokens of a text, and how often each comes."""
    return Counter(_TOKEN.findall(unicodedata.normalize("NFKC", text).lower()))


def f1(ours: str, theirs: str) -> float:
    """The harmonic mean of precision and recall of our tokens, theirs being right; 1 where neither has any."""
    mine, right = tokens(ours), tokens(theirs)
    total = mine.total() + right.total()
    return 2 * (mine & right).total() / total if total else 1.0


def same(kind: str, ours: Sequence[str], theirs: Sequence[str]) -> bool:
    """Whether one of our values is one of theirs."""
    match kind:
        case "created" | "modified":
            mine, right = (list(filter(None, map(_when, values))) for values in (ours, theirs))
            # A zone may be known to one of the two alone. Some write dates as nobody else does: of those the words count.
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
    """The moment that is meant, by the clock of Greenwich where the zone is known: one of us may write it as the document does."""
    for read in (datetime.fromisoformat, lambda plain: datetime.strptime(plain, "%a %b %d %H:%M:%S %z %Y")):
        with suppress(ValueError, OverflowError):
            when = read(text.strip())
            return (when.astimezone(UTC) if when.tzinfo else when).replace(tzinfo=None)
    return None


class Compared(NamedTuple):
    """One document."""

    name: str
    f1: float
    ours: Reading
    theirs: Reading

    def lacking(self) -> list[str]:
        """The facts that Tika has and we lack."""
        pairs = ((kind, self.ours.facts.get(kind, ()), values) for kind, values in self.theirs.facts.items())
        return [kind for kind, mine, values in pairs if not same(kind, mine, values)]

    def beyond(self) -> list[str]:
        """The facts that documents state and Tika lacks."""
        return [kind for kind in self.ours.facts if kind not in self.theirs.facts and kind not in MADE]


def compared(name: str, ours: Reading, theirs: Reading) -> Compared:
    """One document, judged."""
    return Compared(name, f1(ours.text, theirs.text), ours, theirs)


class Text(NamedTuple):
    """The F1 of all documents of a kind."""

    mean: float
    median: float
    worst: float
    above: float
    """The share of documents of 0.9 at least."""


def text(found: Sequence[Compared]) -> Text:
    """How alike the texts are."""
    scores = [one.f1 for one in found]
    return Text(fmean(scores), median(scores), min(scores), fmean(score >= 0.9 for score in scores))


class Count(NamedTuple):
    """How often something was found."""

    ours: int
    theirs: int
    both: int


def links(found: Sequence[Compared]) -> Count:
    """Links, each once a document."""
    pairs = [(one.ours.links, one.theirs.links) for one in found]
    return Count(sum(len(a) for a, _ in pairs), sum(len(b) for _, b in pairs), sum(len(a & b) for a, b in pairs))


def facts(found: Sequence[Compared]) -> dict[str, Count]:
    """Documents of which something is known, by what that is.

    Ours are those where it is what Tika found, and those that state it where Tika has none.
    """
    counts = {}
    for kind in FACTS:
        theirs = [one for one in found if kind in one.theirs.facts]
        shared = sum(kind not in one.lacking() for one in theirs)
        counts[kind] = Count(shared + sum(kind in one.beyond() for one in found), len(theirs), shared)
    return counts
