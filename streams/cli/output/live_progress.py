"""Live progress on a terminal: a few lines that are redrawn. Rich is loaded only for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.text import Text

from schemas.records import Root
from streams.cli.output.progress import Progress
from streams.embedded import Embedded

LIVE = 0.25
"""Seconds between two updates of the display."""


class LiveProgress(Progress):
    """A display that is redrawn."""

    def __init__(self, runner: Embedded, roots: Sequence[Root], live: Live) -> None:
        super().__init__(runner, roots, LIVE)
        self._live = live

    def say(self, text: str) -> None:
        """Print a line that is not progress."""
        self._live.console.print(Text(f"harvest: {text}"))

    def show(self, state: str) -> None:
        """Draw a state line."""
        self._live.update(Text("\n".join([state, *self.of_roots()])), refresh=True)


@contextmanager
def lively(runner: Embedded, roots: Sequence[Root]) -> Iterator[LiveProgress]:
    """Yield the display of a run. rich itself handles NO_COLOR."""
    with Live(console=Console(stderr=True, highlight=False), auto_refresh=False, transient=True) as live:
        yield LiveProgress(runner, roots, live)
