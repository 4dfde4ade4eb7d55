"""Order of the best hits of a search by freshness and links, the same for every engine.

Laws:
- A hit's score is the engine's score plus what freshness and links add, each in proportion to the engine's: a hit without either
  keeps its score, and with both weights 0 nothing changes.
- Hits of equal score keep their order.
- What freshness adds halves with each half-life of the hit's age. A date in the future counts as now.
- What links add grows with their logarithm, up to MOST_LINKS.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

MOST_LINKS = 1_000
"""Number of summaries that link to a hit from which further ones add nothing."""
DAY_S = 86_400


class Candidate(NamedTuple):
    """Hit of an engine: its score (at least 0), its own date in seconds since the epoch, and how many summaries link to it."""

    score: float
    date: int | None = None
    links: int = 0


class Weights(NamedTuple):
    """Greatest parts of a score that freshness and links add to it, and the half-life of freshness in days (above 0)."""

    freshness: float
    half_life: float
    links: float


class Ranked(NamedTuple):
    """Hit in its new place: its score, its old place, and the parts of the score that were added."""

    score: float
    place: int
    freshness: float
    links: float


def reordered(hits: Sequence[Candidate], weights: Weights, now: int) -> list[Ranked]:
    """Return hits in order of their new scores; `now` is in seconds since the epoch."""
    ranked = [_ranked(place, hit, weights, now) for place, hit in enumerate(hits)]
    return sorted(ranked, key=lambda hit: (-hit.score, hit.place))


def _ranked(place: int, hit: Candidate, weights: Weights, now: int) -> Ranked:
    freshness = 0.0
    if hit.date is not None:
        age = max(now - hit.date, 0) / DAY_S
        freshness = hit.score * weights.freshness * 2 ** (-age / weights.half_life)
    links = hit.score * weights.links * min(math.log1p(hit.links) / math.log1p(MOST_LINKS), 1)
    return Ranked(hit.score + freshness + links, place, freshness, links)
