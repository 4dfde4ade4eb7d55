"""Progress of a run as lines on standard error, or none.

No total is shown, since nobody knows it: what is done, what is queued so far, what failed, and the rate of the last ten seconds.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from itertools import islice

from processors.frontier.rows import Table
from schemas.records import Root
from streams.cli.common import counted, printable
from streams.cli.output.recent_rate import RecentRate
from streams.embedded import Embedded

PLAIN = 5.0
"""Seconds between two lines."""
QUEUE = 1_000
"""Maximum number of queued URLs that are counted in one partition."""
ROOTS = 8
"""Maximum number of roots with a line of their own."""


class Progress:
    """Progress of a run. `seen` is called after every turn."""

    def __init__(self, runner: Embedded, roots: Sequence[Root], every: float) -> None:
        self.runner = runner
        self.roots = roots
        self._every = every
        self._begun = time.monotonic()
        self._next = self._begun + every
        self._rate = RecentRate(self._begun)
        self._last = (0, 0)
        """Answers and summaries that the last line has counted."""
        self._slow = 0
        self.idle: Callable[[], str] = lambda: ""
        """Returns the line to show while a service has nothing to do; "": it has."""
        self._waiting = ""

    @property
    def seconds(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self._begun

    def say(self, text: str) -> None:
        """Print a line that is not progress."""
        print(f"harvest: {text}", file=sys.stderr, flush=True)

    def seen(self) -> None:
        """Show the state after a turn, at most once in each interval."""
        now = time.monotonic()
        self._rate.add(now, self.runner.tally.answered)
        slow = self.runner.tally.slow
        if len(slow) > self._slow:
            for host, pause in islice(list(slow.items()), self._slow, ROOTS):
                why = "for its robots.txt, its load or its roots"
                self.say(f"{printable(host)}: {pause / 1000:g} s are kept between requests ({why})")
            self._slow = len(slow)
        if now >= self._next:
            self._next = now + self._every
            waited, self._waiting = self._waiting, self.idle()
            live, counts = self._every < PLAIN, self._counts()
            if self._waiting:
                # A display has counts, which change by work that was done between two updates.
                if self._waiting != waited or (live and counts != self._last):
                    self._last = counts
                    self.show(self._waiting)
            elif counts != self._last or live:
                self.show(self.state(now))

    def show(self, state: str) -> None:
        """Draw a state line."""
        self.say(state)

    def state(self, now: float) -> str:
        """Return the state on one line."""
        tally = self.runner.tally
        rate = self._rate.per_second(now, tally.answered)
        self._last = self._counts()
        failed = sum(tally.rejected.values())
        return (
            f"{tally.answered:,} done, {self._queued()} queued, {failed:,} rejected, "
            f"{counted(tally.summaries, 'summary', 'summaries')}, {rate:,.0f}/s, {self.seconds:,.0f} s"
        )

    def _counts(self) -> tuple[int, int]:
        return self.runner.tally.answered, self.runner.tally.summaries

    def _queued(self) -> str:
        waiting = self.runner.fetch.backlog() + self.runner.fetch.flying() + self.runner.essence.waiting()
        more = False
        for rows in self.runner.frontier_rows():
            found = sum(1 for _ in rows.scan(b"q|", limit=QUEUE))
            waiting, more = waiting + found, more or found == QUEUE
        return f"{waiting:,}{'+' * more}"

    def of_roots(self) -> list[str]:
        """Return a line for each root with the number of URLs found so far."""
        lines = []
        for root in self.roots[:ROOTS]:
            found = sum(Table(rows).counted(root.url) for rows in self.runner.frontier_rows())
            lines.append(f"  {printable(root.url)}: {counted(found, 'URL')} known")
        return lines


class Silent(Progress):
    """Progress that prints nothing."""

    def seen(self) -> None:
        """Ignore the end of a turn."""

    def say(self, text: str) -> None:
        """Print a line that is not progress."""
