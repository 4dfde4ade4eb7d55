"""The progress of a run as lines: rates, and counts with their nouns."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from processors.frontier.rows import Table
from schemas.records import Root
from streams.cli.output.progress import PLAIN, Progress
from streams.cli.output.recent_rate import RecentRate
from streams.embedded.run_stats import RunStats
from streams.simulator import MemoryRows

ROOT = "http://a.example/"


def test_rate_is_that_of_the_last_ten_seconds() -> None:
    """The rate is that of the last ten seconds: neither that of the last tick, nor that of the whole run."""
    rate, count = RecentRate(0.0), 0
    for second in range(1, 101):
        count += 100 if second <= 90 else 10
        rate.add(float(second), count)
    assert rate.per_second(100.0, count) == 10
    assert rate.per_second(100.1, count + 50) == pytest.approx(15, abs=0.5)


def test_rate_at_the_beginning_is_that_of_the_run() -> None:
    """Before ten seconds have passed, the rate is that since the beginning."""
    rate = RecentRate(50.0)
    rate.add(52.0, 10)
    assert rate.per_second(54.0, 40) == 10


def test_rate_after_a_rest_is_not_spread_over_it() -> None:
    """What is done after an hour without work is a rate of ten seconds, and falls to zero when ten more have passed."""
    rate = RecentRate(0.0)
    rate.add(1.0, 500)
    assert rate.per_second(3_600.0, 600) == 10
    assert rate.per_second(3_611.0, 600) == 0


def test_samples_are_bounded() -> None:
    """However often samples are taken, those of ten seconds at one step each are kept."""
    rate = RecentRate(0.0)
    for tick in range(100_000):
        rate.add(tick / 1_000, tick)
    assert len(rate._samples) <= 42
    assert rate.per_second(100.0, 100_000) == pytest.approx(1_000, rel=0.03)


def shown(urls: int, tally: RunStats, every: float = PLAIN) -> Progress:
    """The progress of a run with one root of which a number of URLs is known."""
    rows = MemoryRows()
    Table(rows).count(ROOT, urls)
    idle = SimpleNamespace(backlog=lambda: 0, flying=lambda: 0, waiting=lambda: 0)
    runner = SimpleNamespace(tally=tally, fetch=idle, essence=idle, frontier_rows=lambda: [rows])
    return Progress(cast("Any", runner), [Root(url=ROOT, run="r")], every)


@pytest.mark.parametrize(("urls", "text"), [(0, "0 URLs known"), (1, "1 URL known"), (1_200, "1,200 URLs known")])
def test_known_urls_agree_with_their_noun(urls: int, text: str) -> None:
    """The line of a root has "1 URL known", and "URLs" for every other number."""
    assert shown(urls, RunStats()).of_roots() == [f"  {ROOT}: {text}"]


def test_state_line_has_counts_and_rate() -> None:
    """The state line has what is done, queued and rejected, one summary as such, and the rate."""
    progress = shown(1, RunStats(answered=20, summaries=1))
    line = progress.state(progress._begun + 10)
    assert line.startswith("20 done, 0 queued, 0 rejected, 1 summary, 2/s, ")


def test_idle_display_is_drawn_again_after_work_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A display that waits is drawn again once something was done between two looks, as its counts have changed; else it is not."""
    drawn: list[str] = []
    monkeypatch.setattr(Progress, "show", lambda _, state: drawn.append(state))
    tally = RunStats(answered=1)
    display = shown(1, tally, every=0)
    display.idle = lambda: "idle"
    for answered in (1, 1, 2, 2):
        tally.answered = answered
        display.seen()
    assert drawn == ["idle", "idle"]


def test_summaries_of_a_tail_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line is due while summaries are still made, though every request is answered; none if nothing has happened since."""
    tally = RunStats(answered=20, summaries=1)
    progress, lines = shown(1, tally), list[str]()
    monkeypatch.setattr(progress, "show", lines.append)
    for _ in range(2):
        progress._next = 0.0
        progress.seen()
    tally.summaries = 9
    progress._next = 0.0
    progress.seen()
    assert [line.split(", ")[3] for line in lines] == ["1 summary", "9 summaries"]
