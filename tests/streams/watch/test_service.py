"""Changes as events, and the line about a service that waits."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any, cast

import pytest

from schemas.records import MAX_LINKS, CrawlEvent, Link
from streams.cli.output.progress import PLAIN, Progress
from streams.embedded.run_stats import RunStats
from streams.watch.service import changed_events, day


def test_changes_are_events_by_folder() -> None:
    """Paths become URLs of files and folders, grouped by the folder that has them; a root's folder belongs to the one above it."""
    given = changed_events([b"/a/b/x y.txt", b"/a/b/", b"/a/b/\xe9", b"/a/c"], 7)
    events = {event.host: event.links for _, event in given if isinstance(event, CrawlEvent)}
    assert events == {
        "file:///a/b/": (Link(url="file:///a/b/%E9", kind="file"), Link(url="file:///a/b/x%20y.txt", kind="file")),
        "file:///a/": (Link(url="file:///a/b/", kind="folder"), Link(url="file:///a/c", kind="file")),
    }


def test_many_changes_are_several_events() -> None:
    """An event has at most as many links as a record may."""
    given = changed_events([b"/a/%d" % number for number in range(MAX_LINKS + 1)], 7)
    assert [len(event.links) for _, event in given if isinstance(event, CrawlEvent)] == [MAX_LINKS, 1]


@pytest.mark.parametrize(
    ("at", "shown"), [((2026, 11, 29, 18, 5), "at 18:05"), ((2026, 12, 25), "25 Dec"), ((2027, 1, 3), "3 Jan 2027")]
)
def test_refresh_is_shown_by_its_day(at: tuple[int, ...], shown: str) -> None:
    """The next refresh is shown as a time of today, as a day of this year, or with its year."""
    now, then = datetime(2026, 11, 29, 12).astimezone(), datetime(*at).astimezone()  # type: ignore[arg-type]
    assert day(int(then.timestamp() * 1000), int(now.timestamp() * 1000)) == shown


class _Runner:
    def __init__(self) -> None:
        self.tally = RunStats()


def test_waiting_service_draws_its_line_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a service waits, its line is drawn once, and again only when it is another one."""
    drawn: list[str] = []
    clock = iter(range(0, 1_000, round(PLAIN)))
    monkeypatch.setattr("streams.cli.output.progress.time.monotonic", lambda: float(next(clock)))
    progress = Progress(cast("Any", _Runner()), [], every=0.25)
    monkeypatch.setattr(progress, "show", drawn.append)
    monkeypatch.setattr(progress, "state", lambda _: "busy")
    for line in ("", "idle, 1 root", "idle, 1 root", "idle, 1 root", "idle, 2 roots", "", "idle, 2 roots"):
        progress.idle = partial(str, line)
        progress.seen()
    assert drawn == ["busy", "idle, 1 root", "idle, 2 roots", "busy", "idle, 2 roots"]
