"""Progress of reading a topic: one redrawn line on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from streams.cli.common import note

if TYPE_CHECKING:
    from streams.operations.selection import ReplayProgress, Watch

PLAIN, LIVE = 5.0, 0.25
"""Seconds between two lines, and between two updates on a terminal."""


class ReplayDisplay:
    """Prints a tally, at most once in each interval."""

    def __init__(self, every: float, show: Callable[[str], None]) -> None:
        self._every = every
        self._show = show
        self._begun = time.monotonic()
        self._next = self._begun + every

    def __call__(self, tally: ReplayProgress) -> None:
        """Handle the end of a batch."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + self._every
            seconds = now - self._begun
            rate = tally.read / max(seconds, 0.001)
            self._show(f"{tally.read:,} read, {tally.applied:,} applied, {tally.left:,} to go, {rate:,.0f}/s, {seconds:,.0f} s")


@contextmanager
def watched(*, quiet: bool) -> Iterator[Watch]:
    """Yield the callback for batches, live if standard error is a terminal. rich itself handles NO_COLOR."""
    if quiet:
        yield lambda _: None
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        with Live(console=Console(stderr=True, highlight=False), auto_refresh=False, transient=True) as live:
            yield ReplayDisplay(LIVE, lambda state: live.update(Text(state), refresh=True))
    else:
        yield ReplayDisplay(PLAIN, note)
