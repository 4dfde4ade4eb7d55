"""Health: the state that a process reports, in this process and over HTTP."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator

import pytest

from streams.telemetry import Health, Metrics, Progress, Pulse
from streams.telemetry.server import HealthServer


class Clock:
    """A clock that the test sets."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    """A clock at 100 s."""
    return Clock()


@pytest.fixture
def health() -> Health:
    """A Health without checks."""
    return Health()


@pytest.fixture
def ask(health: Health) -> Iterator[Callable[..., tuple[int, str]]]:
    """A function from a path to the status and the body of the server's answer."""
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


def test_partition_without_progress_is_stalled(clock: Clock) -> None:
    """A partition with lag and without progress for longer than the limit is named; one that moves, or has no lag, is not."""
    progress = Progress(60, clock)
    progress.note("catalog made/0", 5, 3)
    progress.note("catalog made/1", 5, 0)
    clock.now += 60
    assert progress.stalled() == ""
    clock.now += 1
    assert progress.stalled() == "no progress in catalog made/0"
    progress.note("catalog made/0", 6, 3)
    assert progress.stalled() == ""


def test_stall_time_starts_with_the_first_unread_record(clock: Clock) -> None:
    """The time without progress starts with the first unread record, however long the partition was idle."""
    progress = Progress(60, clock)
    progress.note("fetch fetches/0", 5, 0)
    clock.now += 3600
    progress.note("fetch fetches/0", 5, 1)
    clock.now += 60
    assert progress.stalled() == ""
    clock.now += 1
    assert progress.stalled() != ""


def test_revoked_partition_is_not_stalled(clock: Clock) -> None:
    """A revoked partition no longer counts as stalled; an edge has its own limit, the time that one record may take."""
    progress = Progress(60, clock)
    progress.note("fetch fetches/0", 5, 1)
    progress.note("essence objects/0", 5, 1, 1800)
    clock.now += 100
    progress.forget("fetch fetches/0")
    assert progress.stalled() == ""
    clock.now += 1800
    assert progress.stalled() == "no progress in essence objects/0"


def test_loop_is_healthy_while_it_beats(clock: Clock) -> None:
    """The event loop is healthy as long as it beats."""
    pulse = Pulse(60, clock)
    clock.now += 61
    assert "stood still" in pulse.stopped()
    pulse.beat()
    assert pulse.stopped() == ""


def test_process_is_not_ready_before_all_checks_are_registered(health: Health, ask: Callable[..., tuple[int, str]]) -> None:
    """Before all checks are registered a process is alive but not ready, also with some of them registered."""
    starting = (503, '{"ok": false, "checks": {"starting": "not all checks are there yet"}}\n')
    assert (ask("/livez"), ask("/readyz")) == ((200, '{"ok": true, "checks": {}}\n'), starting)
    health.ready_when("sandbox", str)
    assert ask("/readyz")[0] == 503
    health.started()
    assert ask("/readyz") == (200, '{"ok": true, "checks": {"sandbox": "ok"}}\n')


def test_livez_and_readyz_report_their_checks(health: Health, ask: Callable[..., tuple[int, str]]) -> None:
    """/livez reports progress; /readyz reports progress and dependencies; each check appears under its name."""
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


def test_raising_check_fails_without_its_text(health: Health, ask: Callable[..., tuple[int, str]]) -> None:
    """A check that raises fails, and the answer names the type of the exception, not its text."""

    def check() -> str:
        raise OSError("/secret")

    health.alive_when("disk", check)
    assert ask("/livez") == (503, '{"ok": false, "checks": {"disk": "the check failed: OSError"}}\n')


def test_metrics_are_served(ask: Callable[..., tuple[int, str]]) -> None:
    """/metrics has the counters and the memory of the process; HEAD has no body; other paths and methods are refused."""
    status, text = ask("/metrics")
    assert status == 200
    assert 'harvest_records_total{stage="catalog",topic="summaries"} 1.0' in text
    assert "process_resident_memory_bytes" in text
    assert ask("/metrics", "HEAD") == (200, "")
    assert ask("/")[0] == 404
    assert ask("/metrics", "POST")[0] == 501


def test_address_in_use_raises_oserror(health: Health) -> None:
    """An address in use raises OSError when the server is created."""
    with HealthServer("127.0.0.1", 0, health, Metrics()) as first, pytest.raises(OSError, match="in use"):
        HealthServer(*first.address, health, Metrics())
