"""Limits of a query, the same for each syntax."""

from __future__ import annotations

from collections.abc import Mapping

from processors.query.mistakes import LimitError, QueryError
from schemas.query import Fuzzy, Near, Not, Query, Regex, Verbatim, Wildcard

MAX_LENGTH = 4_000
"""Maximum length of a query in characters."""
MAX_DEPTH = 50
"""Maximum nesting of parentheses and NOTs."""
MAX_TERMS = 100
"""Maximum number of terms."""
MAX_PATTERNS = 20
"""Maximum number of terms that are compared with each word or place of a text."""

PATTERNS = (Wildcard, Fuzzy, Regex, Verbatim, Near)

COSTS: Mapping[int, int] = {1: 5, 2: 15, 3: 60}
"""Cost of a word with so many errors, beside that of a plain word, which is 1."""
PATTERN_COST = 10
"""Cost of a term that is compared with many words of an index, or with texts; twice as much if it may begin with any letter."""


def cost(query: Query) -> int:
    """Return roughly how many plain words a query costs an engine as much as."""
    if parts := getattr(query, "parts", ()) or ((query.part,) if isinstance(query, Not) else ()):
        return sum(map(cost, parts))
    match query:
        case Fuzzy(_, errors):
            return COSTS.get(errors, PATTERN_COST)
        case Wildcard(text):
            return PATTERN_COST * (1 + text.startswith(("*", "?")))
        case Regex():
            return 2 * PATTERN_COST
        case Verbatim() | Near():
            return PATTERN_COST
    return 1


def check_length(text: str) -> None:
    """Raise LimitError if a query is too long."""
    if len(text) > MAX_LENGTH:
        raise LimitError(f"the query is longer than {MAX_LENGTH:,} characters", MAX_LENGTH)


def check_depth(depth: int, at: int) -> None:
    """Raise LimitError if parentheses and NOTs are nested too deep."""
    if depth > MAX_DEPTH:
        raise LimitError(f"more than {MAX_DEPTH} nested parentheses or NOTs", at)


class Budget:
    """Number of terms read so far."""

    def __init__(self) -> None:
        self.terms = 0
        self.patterns = 0

    def is_spent(self) -> bool:
        """Return whether no further term may follow."""
        return self.terms >= MAX_TERMS

    def count(self, term: Query, at: int) -> Query:
        """Return a term. Raises LimitError or QueryError if it is one too many."""
        if self.is_spent():
            raise LimitError(f"more than {MAX_TERMS} search terms", at)
        if isinstance(term, PATTERNS):
            if self.patterns >= MAX_PATTERNS:
                raise QueryError(f"more than {MAX_PATTERNS} terms with *, ?, ~, =, NEAR or a regular expression", at)
            self.patterns += 1
        self.terms += 1
        return term
