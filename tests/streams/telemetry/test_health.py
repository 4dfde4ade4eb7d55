"""Health: what a process says of itself, over HTTP too."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator

import pytest

from streams.telemetry import Health, Metrics, Progress, Pulse
from streams.telemetry.server import HealthServer


class Clock:
    """A clock that is set by hand."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    """At 100 s."""
    return Clock()


@pytest.fixture
def health() -> Health:
    """Without checks."""
    return Health()


@pytest.fixture
def ask(health: Health) -> Iterator[Callable[..., tuple[int, str]]]:
    """A function from a path to the status and the body that the server answers with."""
    metrics = Metrics()
    metrics.records.add("catalog", "summaries")
    with HealthServer("127.0.0.1", 0, health, metrics) as server:

        def get(path: str, method: str = "GET") -> tuple[int, str]:
            connection = http.client.HTTPConnection(*server.address, timeout=30)
            connection.request(method, path)
            answer = connection.getresponse()
            body = answer.read().decode()
            connection.close()
            return answer.status, body

        yield get


def test_what_stands_still_is_stalled(clock: Clock) -> None:
    """A place with lag that has not moved for longer than it may take is named; one that moves, or has no lag, is not."""
    progress = Progress(60, clock)
    progress.note("catalog made/0", 5, 3)
    progress.note("catalog made/1", 5, 0)
    clock.now += 60
    assert progress.stalled() == ""
    clock.now += 1
    assert progress.stalled() == "no progress in catalog made/0"
    progress.note("catalog made/0", 6, 3)
    assert progress.stalled() == ""


def test_lag_begins_when_there_is_something_to_read(clock: Clock) -> None:
    """A place that had nothing to do for an hour has its whole time from the first record on."""
    progress = Progress(60, clock)
    progress.note("fetch fetches/0", 5, 0)
    clock.now += 3600
    progress.note("fetch fetches/0", 5, 1)
    clock.now += 60
    assert progress.stalled() == ""
    clock.now += 1
    assert progress.stalled() != ""


def test_a_place_that_goes_is_forgotten(clock: Clock) -> None:
    """A partition that went to another worker stalls nobody; an edge has the time that one record may take there."""
    progress = Progress(60, clock)
    progress.note("fetch fetches/0", 5, 1)
    progress.note("essence objects/0", 5, 1, 1800)
    clock.now += 100
    progress.forget("fetch fetches/0")
    assert progress.stalled() == ""
    clock.now += 1800
    assert progress.stalled() == "no progress in essence objects/0"


def test_a_loop_that_stands_still(clock: Clock) -> None:
    """A loop is well as long as it beats."""
    pulse = Pulse(60, clock)
    clock.now += 61
    assert "stood still" in pulse.stopped()
    pulse.beat()
    assert pulse.stopped() == ""


def test_nobody_is_ready_before_the_checks_are_there(health: Health, ask: Callable[..., tuple[int, str]]) -> None:
    """Who is asked before its checks are there lives, and is not ready; not with some of them either."""
    starting = (503, '{"ok": false, "checks": {"starting": "not all checks are there yet"}}\n')
    assert (ask("/livez"), ask("/readyz")) == ((200, '{"ok": true, "checks": {}}\n'), starting)
    health.ready_when("sandbox", str)
    assert ask("/readyz")[0] == 503
    health.started()
    assert ask("/readyz") == (200, '{"ok": true, "checks": {"sandbox": "ok"}}\n')


def test_answers(health: Health, ask: Callable[..., tuple[int, str]]) -> None:
    """/livez is about progress alone; /readyz about that and what is needed; each check is told by its name."""
    health.started()
    wrong = {"progress": "", "index": "not open"}
    health.alive_when("progress", lambda: wrong["progress"])
    health.ready_when("index", lambda: wrong["index"])
    assert ask("/livez") == (200, '{"ok": true, "checks": {"progress": "ok"}}\n')
    status, body = ask("/readyz")
    assert (status, json.loads(body)) == (503, {"ok": False, "checks": {"progress": "ok", "index": "not open"}})
    wrong |= {"index": "", "progress": "no progress in catalog made/0"}
    assert [ask(path)[0] for path in ("/livez", "/readyz")] == [503, 503]
    wrong["progress"] = ""
    assert [ask(path)[0] for path in ("/livez", "/readyz?verbose")] == [200, 200]


def test_a_check_that_fails(health: Health, ask: Callable[..., tuple[int, str]]) -> None:
    """A check that raises is bad news, told without what it raised."""

    def check() -> str:
        raise OSError("/secret")

    health.alive_when("disk", check)
    assert ask("/livez") == (503, '{"ok": false, "checks": {"disk": "the check failed: OSError"}}\n')


def test_metrics_are_served(ask: Callable[..., tuple[int, str]]) -> None:
    """/metrics has what was counted, and the memory of the process; HEAD has no body; there is nothing else."""
    status, text = ask("/metrics")
    assert status == 200
    assert 'harvest_records_total{stage="catalog",topic="summaries"} 1.0' in text
    assert "process_resident_memory_bytes" in text
    assert ask("/metrics", "HEAD") == (200, "")
    assert ask("/")[0] == 404
    assert ask("/metrics", "POST")[0] == 501


def test_an_address_that_is_taken(health: Health) -> None:
    """An address that somebody has is an OSError where the server is made, not later."""
    with HealthServer("127.0.0.1", 0, health, Metrics()) as first, pytest.raises(OSError, match="in use"):
        HealthServer(*first.address, health, Metrics())
