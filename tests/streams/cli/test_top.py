"""`harvest top`: hosts, roots, and stages with their rates, from a data folder, and from a log as on a cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from processors.frontier.rows import Table
from processors.frontier.state import HostState, State, UrlState
from processors.identity import url_digest
from schemas.codec import encode
from schemas.records import CrawlEvent, Root
from sinks.index.errors import IndexDamaged
from streams.cli.commands import top
from streams.cli.output.activity_table import as_lines, as_objects
from streams.config.settings import load
from streams.config.topology import topology_of
from streams.embedded import activity
from streams.embedded.activity import host_activity, root_activity
from streams.logs import Lag, LogAccess
from streams.operations.activity import Activity, HostActivity, RootActivity, StageActivity, StageRates
from streams.store import Store
from tests.streams.cli.terminals import on_terminal

NOW = 1_000_000
FIRST, SECOND = "http://a.example/", "http://b.example/"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(top, "BETWEEN", 0.0)


class LogDouble:
    """A log whose lags are those set."""

    def __init__(self) -> None:
        self.found: list[Lag] = []
        self.damaged = False

    def lags(self, _: object) -> Iterator[Lag]:
        yield from self.found
        if self.damaged:
            raise IndexDamaged("no index")


def lag(group: str, end: int, left: int, topic: str = "crawl", partition: int = 0) -> Lag:
    """A lag; all before it is committed."""
    return Lag(group, topic, partition, end - left, end, left)


def folder(harvest: Any) -> Path:
    """The data folder of the test."""
    return cast("Path", harvest.folder / "harvest-data")


def written(harvest: Any) -> None:
    """Write the rows of two roots and four hosts into the data folder."""
    with Store(folder(harvest), {"crawl": 2}, runner=True) as store, store.transaction() as tx:
        table = Table(tx.rows("frontier", 0))
        states: Sequence[State] = ("queued", "queued", "asked", "waiting", "ok", "failed", "refused", "gone")
        for number, state in enumerate(states):
            url = f"{FIRST}{number}"
            row = UrlState(url, "page", 0, (FIRST, SECOND) if state == "ok" else (FIRST,), state)
            (table.enqueue if state == "queued" else table.put)(FIRST[:-1], url_digest(url), row)
        table.put_root(Root(url=FIRST, run="1"))
        table.put_root(Root(url=SECOND, run="1"))
        table.count(FIRST, 7)
        table.count(SECOND, 1)
        table.put_host(FIRST[:-1], HostState(flying=(b"1" * 16,), delay=5_000))
        table.put_host("http://idle.example", HostState(delay=5_000))
        table.put_host("file:///srv/", HostState(device=1))
        other = Table(tx.rows("frontier", 1))
        other.count(FIRST, 3)
        other.put_host(SECOND[:-1], HostState(failures=3, next_allowed=NOW + 2_500))
        other.put_host("http://past.example", HostState(next_allowed=NOW - 1))
        tx.rows("runner", 0).put(b"p|" + SECOND.encode(), b"")


def test_missing_data_folder_is_one_line(harvest: Any) -> None:
    """Without a data folder the command fails with one line, and creates nothing."""
    for option in ("--json", "--count=1"):
        assert harvest("top", option, code=1).stderr.startswith("harvest: harvest-data: no data")
    assert list(harvest.folder.iterdir()) == []


def test_snapshot_after_a_run(harvest: Any, tree: Path) -> None:
    """As JSON: every stage without lag, with a rate; the root with the number of its URLs; no host. Otherwise as a table."""
    harvest("gather", tree, "--quiet")
    found = harvest.lines("top")
    stages = [stage.name for stage in topology_of(load({"data": folder(harvest)}, None, {})).stages]
    assert [(one["stage"], one["lag"], one["rate"]) for one in found[:-1]] == [(name, 0, 0.0) for name in stages]
    root = {"root": f"file://{tree}/", "paused": False, "known": 5, "waiting": 0, "done": 5, "failed": 0, "refused": 0}
    assert found[-1] == root
    shown = harvest("top").stdout.splitlines()
    assert shown[0].split() == ["records/s", "to", "read", "stage"]
    assert shown[-1].split() == ["5", "0", "5", "0", "0", f"file://{tree}/"]


def test_terminal_is_redrawn(harvest: Any, tree: Path) -> None:
    """On a terminal the tables are drawn again and again, without a rate at first."""
    harvest("gather", tree, "--quiet")
    command = [harvest.program[0], "-c", f"from streams.cli.commands import top; top.LIVE = 0; {harvest.program[2]}"]
    shown = on_terminal([*command, "top", "--count", "3"], harvest.folder).decode()
    assert shown.count("records/s") >= 3  # rich draws once more at the end
    assert "  -            0  frontier" in shown
    assert "0.0            0  frontier" in shown


@pytest.mark.parametrize("field", ["next_allowed", "opens", "rests"])
def test_host_that_is_held_has_the_time_of_its_next_request(harvest: Any, field: str) -> None:
    """Whether it asked for a wait, is outside of its hours or rests for its pause; the pause in force is that of overload too."""
    with Store(folder(harvest), {"crawl": 1}, runner=True) as store, store.transaction() as tx:
        Table(tx.rows("frontier", 0)).put_host(FIRST[:-1], HostState(slowed=8_000).but(**{field: NOW + 5_000}))
    with Store(folder(harvest), readonly=True) as store:
        (host,), _ = host_activity(store, 1.0, NOW)
    assert (host.pause, host.next) == (8.0, NOW + 5_000)


def test_hosts_have_pause_queue_requests_errors_and_the_next_time(harvest: Any) -> None:
    """Hosts with something to do are shown, busy ones first; idle hosts and folders of files are not."""
    written(harvest)
    with Store(folder(harvest), readonly=True) as store:
        found, notes = host_activity(store, 1.0, NOW)
    assert found == [
        HostActivity(FIRST[:-1], 5.0, 2, 1, 0, None),
        HostActivity(SECOND[:-1], 1.0, 0, 0, 3, NOW + 2_500),
    ]
    assert notes == []


def test_roots_have_their_urls_by_state(harvest: Any) -> None:
    """Known URLs are counted over all partitions; a URL of two roots counts for both; a paused root is named so."""
    written(harvest)
    with Store(folder(harvest), readonly=True) as store:
        assert root_activity(store) == (
            [
                RootActivity(FIRST, False, 10, 4, 1, 1, 1),
                RootActivity(SECOND, True, 1, 0, 1, 0, 0),
            ],
            [],
        )


@pytest.mark.parametrize(
    ("limit", "most", "note"),
    [
        ("HOSTS", 1, "hosts: only in part, there are many, or their queues are long"),
        ("QUEUED", 1, "hosts: only in part, there are many, or their queues are long"),
        ("SHOWN", 1, "hosts: 1 more"),
        ("ROOTS", 1, "roots: the first 1 only"),
        ("URLS", 4, "roots: waiting, done, failed and refused are those of 4 URLs"),
    ],
)
def test_scans_are_bounded_and_notes_say_so(
    harvest: Any, monkeypatch: pytest.MonkeyPatch, limit: str, most: int, note: str
) -> None:
    """No scan reads more rows than its limit; what is left out is a note, on standard error beside JSON."""
    written(harvest)
    monkeypatch.setattr(activity, limit, most)
    assert f"harvest: {note}" in harvest("top", "--json").stderr.splitlines()
    assert note in harvest("top").stdout.splitlines()


def test_reads_beside_a_runner(harvest: Any, tree: Path) -> None:
    """While a runner has an open transaction, what is committed is shown, and the lag of appended records."""
    harvest("gather", tree, "--quiet")
    event = CrawlEvent(kind="paused", host="x", time=1, url="x")
    with Store(folder(harvest), runner=True) as store, store.transaction() as tx:
        tx.append("crawl", 0, b"x", encode(event), 1)
        assert harvest.lines("top")[0]["lag"] == 0
    assert harvest.lines("top")[0]["lag"] == 1


def test_rates_are_records_read_between_two_readings(harvest: Any) -> None:
    """A rate is the records read since the reading before by the time between; ticks do not count, prefixes of groups neither."""
    log, times = LogDouble(), iter((0.0, 2.0, 2.0, 4.0))
    rates = StageRates(cast("LogAccess", log), topology_of(load({}, None, {})), lambda: next(times))
    log.found = [lag("ours.frontier", 10, 5), lag("ours.frontier", 10, 10, "crawl.ticks"), lag("ours.index.main", 3, 0)]
    assert rates.read() == ([StageActivity("frontier", 5, None), StageActivity("index.main", 0, None)], [])
    log.found = [lag("ours.frontier", 30, 5), lag("ours.frontier", 6, 6, partition=1), lag("ours.fetch", 4, 0)]
    assert rates.read() == ([StageActivity("frontier", 11, 10.0), StageActivity("fetch", 0, None)], [])
    assert rates.read()[0][0].rate is None
    log.found, log.damaged = [lag("frontier", 3, 3)], True
    assert rates.read() == ([StageActivity("frontier", 3, 0.0)], ["the lag of an index is not known: no index"])


def test_cluster_has_its_stages_and_a_note(harvest: Any) -> None:
    """On Kafka the stages are shown; that hosts and roots are not known there is a note."""
    log = LogDouble()
    log.found = [lag("fetch", 7, 2)]
    read = top._reader(load({"kafka.brokers": ("127.0.0.1:1",)}, None, {}), cast("LogAccess", log))
    assert read() == Activity((), (), [StageActivity("fetch", 2, None)], (top.UNKNOWN,))


def test_tables_fit_the_terminal_and_escape_names() -> None:
    """With a height, tables are cut and say by how much; names from outside are printable; JSON has all."""
    hosts = [HostActivity(f"http://{number}\x1b.example", 1.0, 2, 3, 4, NOW + 1_500) for number in range(50)]
    roots = [RootActivity(f"http://{number}.example/", number == 0, 1, 0, 1, 0, 0) for number in range(50)]
    found = Activity(hosts, roots, [StageActivity("frontier", 12_345, 6.78)], ("a\x1bnote",))
    lines = as_lines(found, NOW, 24)
    assert len(lines) <= 24
    assert lines[1] == f"{'6.8':>10} {'12,345':>12}  frontier"
    assert lines[4].endswith("http://0.example/ (paused)")
    assert lines[-1] == "a note"
    assert [line for line in lines if line.startswith("...")] == ["... 46 more", "... 40 more"]
    assert "    1.0        2         3      4      1.5  http://0 .example" in lines
    assert len(as_lines(found, NOW)) == 2 + 51 + 51 + 1 + 3
    assert [json.loads(json.dumps(one)) for one in as_objects(found)][-1]["next"] == NOW + 1_500
