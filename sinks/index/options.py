"""Options of searches: weights of the parts of a score, and limits. An index is the same with any of them."""

from __future__ import annotations

from typing import NamedTuple


class Options(NamedTuple):
    """Options of searches; the defaults of the first two weights were found by `make bench ARGS=ranking`."""

    title: float = 0.3
    """Weight of a form in the title, beside its weight of 1 in the whole text."""
    exact: float = 0.2
    """Weight of a bare word as it is written, in the best field, beside its form."""
    freshness: float = 0.0
    """Greatest part of its score that a document's own date adds; see `processors.query.ranking`."""
    half_life: float = 365.0
    """Days after which freshness adds half as much."""
    links: float = 0.0
    """Greatest part of its score that links to a document add."""
    checked: int = 5_000
    """Maximum number of candidates that are read for one search."""


DEFAULT = Options()
