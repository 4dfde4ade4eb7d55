"""Hits of several Brokers as one list.

Scores are merged as CORI does (`processors/query/routing/choice.py`): by the score within the Broker and the belief in it.

Law: equal contents are shown once, in the better place: of one OID, of one URL, or of one digest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from processors.query.routing.choice import Chosen
from schemas.ports import Hit


class Answered(NamedTuple):
    """Answer of a Broker."""

    broker: str
    hits: Sequence[Hit]
    total: int
    digests: Sequence[str] = ()
    """The digest of the content of each hit; "" if it is not known."""


class RoutedHit(NamedTuple):
    """Hit of a routed search."""

    broker: str
    hit: Hit
    """With a score that is comparable to those of other Brokers, from 0 to 1."""
    others: tuple[str, ...] = ()
    """Other Brokers that have the same content."""


class Routed(NamedTuple):
    """Answer to a routed search."""

    hits: Sequence[RoutedHit]
    least: int
    """Minimum number of matches of the Brokers that answered, each content counted once."""
    most: int
    """Maximum number of them: Brokers may have contents in common that are not among their best hits."""
    asked: Sequence[str]
    """Brokers that were asked, the best first."""
    silent: Mapping[str, str] = {}
    """Brokers and gateways without an answer in time, each with the reason; if there are any, `most` says nothing of all."""
    known: int = 0
    """Number of Brokers that could have been asked."""
    without: Sequence[str] = ()
    """Brokers that were left out, because they have not the views that the query names."""

    @property
    def is_exact(self) -> bool:
        """Return whether `least` is the number of matches of all Brokers that were asked."""
        return not self.silent and self.least == self.most


class Merged(NamedTuple):
    """Hits of several Brokers as one list, and bounds of the number of their matches (`Routed`)."""

    hits: Sequence[RoutedHit]
    least: int
    most: int


def merge(chosen: Sequence[Chosen], answers: Sequence[Answered], limit: int) -> Merged:
    """Return the best hits of all answers, with comparable scores: CORI's (D' + 0.4 D' C') / 1.4; and the number of matches.

    D' is the score by the highest that is possible in its Broker, C' the belief in the Broker; both are from 0 to 1.
    There are at least as many matches as the Broker with the most has, or as different hits were returned; and at most as many as
    all have together, without the repetitions among the hits.
    """
    ranks = {each.name: each for each in chosen}
    rated: list[tuple[float, str, str, Hit, str]] = []
    for answer in answers:
        broker = ranks[answer.broker]
        top = max([broker.best, *(hit.score for hit in answer.hits)]) or 1.0
        for at, hit in enumerate(answer.hits):
            own = max(0.0, hit.score) / top
            score = (own + 0.4 * own * broker.belief) / 1.4
            rated.append((score, answer.broker, answer.digests[at] if answer.digests else "", hit, hit.url))
    rated.sort(key=lambda each: (-each[0], each[4], each[1]))
    found, distinct = _once(rated)
    unseen = {answer.broker: max(0, answer.total - len(answer.hits)) for answer in answers}
    least = max([len(found), *(count + distinct[broker] for broker, count in unseen.items())])
    return Merged(found[:limit], least, len(found) + sum(unseen.values()))


def _once(rated: Sequence[tuple[float, str, str, Hit, str]]) -> tuple[list[RoutedHit], Counter[str]]:
    """Return the first of each content, with the other Brokers that have it; and how many contents each Broker has."""
    places: dict[tuple[str, str], int] = {}
    distinct: Counter[str] = Counter()
    found: list[RoutedHit] = []
    for score, broker, digest, hit, url in rated:
        keys = [key for key in (("oid", hit.oid), ("url", url), ("digest", digest)) if key[1]]
        at = next((places[key] for key in keys if key in places), len(found))
        if at < len(found):
            first = found[at]
            if broker != first.broker and broker not in first.others:
                found[at] = first._replace(others=(*first.others, broker))
                distinct[broker] += 1
        else:
            found.append(RoutedHit(broker, hit._replace(score=score)))
            distinct[broker] += 1
        places.update((key, at) for key in keys if key not in places)
    return found, distinct


def behind(own: Iterable[tuple[str, str]], others: Sequence[Hit]) -> list[Hit]:
    """Return the hits of a fallback Broker that stand behind those of a Broker: those with other OIDs and URLs than `own`."""
    known = {name for names in own for name in names}
    return [hit for hit in others if hit.oid not in known and hit.url not in known]
