"""Mistakes in a query."""

from __future__ import annotations

MAX_PROPOSAL = 40
"""Maximum length of a proposal in characters; a longer one is left out."""


class QueryError(ValueError):
    """Syntax error in a query: `message` says what is wrong, `position` where (in code points, from 0).

    `proposal` is text to type instead of the mistaken part, and part of the message; "" if there is none.
    """

    def __init__(self, message: str, position: int, proposal: str = "") -> None:
        self.proposal = printable(proposal) if len(proposal) <= MAX_PROPOSAL else ""
        self.message = printable(message) + (f" (did you mean {self.proposal}?)" if self.proposal else "")
        super().__init__(self.message)
        self.position = position

    def line(self, query: str) -> str:
        """Return the error on one line: the message, and the query with a caret before the position."""
        low, high = max(0, self.position - 40), self.position + 40
        before, after = query[low : self.position], query[self.position : high]
        shown = f"{'…' if low else ''}{before}^{after}{'…' if len(query) > high else ''}"
        return f"{self.message}: {printable(shown)}"


class LimitError(QueryError):
    """A query that is too long, too deep or has too many terms: the rest of it is not read."""


def printable(text: str) -> str:
    """Return a text with a blank for each character that cannot be printed."""
    return "".join(c if c.isprintable() else " " for c in text)
