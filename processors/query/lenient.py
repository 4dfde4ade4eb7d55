"""Parser of queries with mistakes: it leaves out what cannot be looked for, and reports it.

Laws:
- No text raises an error. A text that `parse` reads gives the same tree, and nothing is left out.
- Operators without a term are left out with it; a quote or a parenthesis that is not closed ends with the text.
"""

from __future__ import annotations

from processors.query.definitions import Views
from processors.query.limits import MAX_LENGTH
from processors.query.mistakes import LimitError, QueryError, printable
from processors.query.parser import NOTHING, Parser
from processors.query.terms import RUN
from schemas.query import Query

MAX_LEFT_OUT = 20
"""Maximum number of messages about parts that were left out."""
MAX_PIECE = 40
"""Maximum length in characters of the part in a message."""


def parse_lenient(text: str, views: Views | None = None) -> tuple[Query, tuple[str, ...]]:
    """Return the tree of what can be looked for, and messages about the parts that were left out; raise no error.

    The tree is Or(()), which finds nothing, if nothing can be looked for.
    """
    parser = _Lenient(text[:MAX_LENGTH], views)
    if len(text) > MAX_LENGTH:
        parser.left_out[f"what follows the first {MAX_LENGTH:,} characters"] = None
    tree = parser.whole()
    return tree, tuple(parser.left_out)[:MAX_LEFT_OUT]


class _Lenient(Parser):
    """Parser that leaves out what cannot be looked for."""

    def __init__(self, text: str, views: Views | None = None) -> None:
        super().__init__(text, views)
        self.left_out: dict[str, None] = {}
        self.stopped = False

    def complain(self, message: str, position: int, proposal: str = "") -> None:
        if not self.stopped:
            self.left_out[f"'{self.text[position]}': {message}"] = None

    def empty(self) -> Query:
        return NOTHING

    def skip(self) -> None:
        super().skip()
        while not self.opened and self.text.startswith(")", self.at):
            self.complain("this parenthesis has no opening one", self.at)
            self.at += 1
            super().skip()

    def part(self, depth: int, after: str = "") -> Query:
        start = self.at
        try:
            return super().part(depth, after)
        except QueryError as error:
            self.recover(start, error)
            return NOTHING

    def recover(self, start: int, error: QueryError) -> None:
        """Go past the term that began at `start`, or to the end of the text if it has reached a limit."""
        run = RUN.match(self.text, start)
        missing = start == len(self.text) or self.text[start] == ")" or (run is not None and run.group() in ("AND", "OR"))
        end = start if missing else max(self.at, run.end() if run else start + 1)
        if isinstance(error, LimitError):
            end, self.stopped = len(self.text), True
        piece = printable(self.text[start:end].strip())
        shown = piece[:MAX_PIECE] + "…" * (len(piece) > MAX_PIECE)
        self.left_out[f"'{shown}': {error.message}" if shown else error.message] = None
        self.at = end
        self.skip()
