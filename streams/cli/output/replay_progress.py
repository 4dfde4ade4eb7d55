"""Progress of what reads a topic: one line that is drawn again and again on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from streams.cli.common import note

if TYPE_CHECKING:
    from streams.operations.selection import Tally, Watch

PLAIN, LIVE = 5.0, 0.25
"""Seconds between two lines, and between two states of a terminal."""


class Reading:
    """Shows a tally, unless that was done a moment ago."""

    def __init__(self, every: float, show: Callable[[str], None]) -> None:
        self._every = every
        self._show = show
        self._begun = time.monotonic()
        self._next = self._begun + every

    def __call__(self, tally: Tally) -> None:
        """A batch was read."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + self._every
            seconds = now - self._begun
            rate = tally.read / max(seconds, 0.001)
            self._show(f"{tally.read:,} read, {tally.applied:,} applied, {tally.left:,} to go, {rate:,.0f}/s, {seconds:,.0f} s")


@contextmanager
def watched(*, quiet: bool) -> Iterator[Watch]:
    """What is told of each batch, in the way that standard error allows. NO_COLOR is rich's own affair."""
    if quiet:
        yield lambda _: None
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        with Live(console=Console(stderr=True, highlight=False), auto_refresh=False, transient=True) as live:
            yield Reading(LIVE, lambda state: live.update(Text(state), refresh=True))
    else:
        yield Reading(PLAIN, note)
