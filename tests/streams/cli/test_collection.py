"""The Gatherer's side of the gateway: status, histories, findings, bytes; from a data folder, and from a log as on a cluster."""

from __future__ import annotations

import io
import shutil
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from processors.frontier.rows import Table
from processors.frontier.state import HostState, UrlState
from processors.identity import url_digest
from schemas.codec import encode
from schemas.records import Rejected, Summary
from sinks.gateway import ports
from sinks.gateway.ports import CollectionError, Host, ObjectError, Rejection, Status
from streams.cli import checks, collection
from streams.cli.collection import Cached, GathererCollection, collection_of
from streams.config.settings import Settings, load
from streams.config.topology import topology_of
from streams.embedded import runs
from streams.embedded import status as folder
from streams.kafka.client.status import UNKNOWN, cluster_status
from streams.logs import StoreLog
from streams.operations import status as operations
from streams.operations.dead_letters import standing
from streams.store import Store
from tests.streams.cli.definitions import define

SUMMARY = Summary(oid="0" * 64, url="file:///a", object_url="file:///a", gatherer="here", version=1, time=1, type="Text")


class Clock:
    """A clock that moves only when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def status_of(harvest: Any, **flags: Any) -> Status:
    """Return the status of the test's data folder."""
    return collection_of(settings_of(harvest, **flags)).status()


def settings_of(harvest: Any, **flags: Any) -> Settings:
    """Return the settings for the test's data folder."""
    return load({"data": harvest.folder / "harvest-data", **flags}, None, {})


def reject(harvest: Any, letters: Sequence[Rejected]) -> None:
    """Append dead letters to the data folder."""
    with Store(harvest.folder / "harvest-data") as store, store.transaction() as tx:
        for one in letters:
            tx.append("rejected", 0, one.url.encode(), encode(one), one.time)


def letter(number: int, reason: str) -> Rejected:
    """Return a dead letter of an object of its own, with bytes."""
    url = f"file:///lost/{number}"
    return Rejected(stage="essence", reason=reason, time=number, url=url, version=1, topic="objects", value=b"x" * 100)


def test_broker_of_some_summaries_serves_no_stream_of_all(harvest: Any, tree: Path) -> None:
    """The stream has what such a Broker leaves out, so that its gateway refuses it; that of the main one serves it."""
    harvest("gather", tree, "--quiet")
    define("public", "query = 'type:html'")
    found = settings_of(harvest)
    for broker, served in (("main", True), ("public", False)):
        gateway = collection_of(found, broker)
        if served:
            gateway.feed().close()
        else:
            with pytest.raises(ObjectError, match="only some summaries") as caught:
                gateway.feed()
            assert caught.value.status == 403
        gateway.close()


def test_missing_data_folder_gives_an_empty_status(harvest: Any) -> None:
    """Without a data folder the status is empty, with a note; no event is known; nothing is created."""
    found = collection_of(settings_of(harvest))
    (note,) = found.status().more
    assert note.endswith("harvest-data: no data folder yet (harvest gather ROOT makes it)")
    assert found.status()[:6] == ("", "", (), (), (), ())
    assert found.why("file:///a") == ()
    assert list(harvest.folder.iterdir()) == []


def test_status_after_a_run(harvest: Any, tree: Path) -> None:
    """After a run the status names the Gatherer, the end of the run, its root, and every stage without lag."""
    harvest("gather", tree, "--quiet", "--gatherer", "here")
    found = status_of(harvest)
    assert (found.gatherer, found.hosts, found.rejections, found.more) == ("here", [], [], ())
    assert found.run.startswith("the last run, over 1 root, begun 2")
    assert found.run.endswith(" UTC, is complete")
    assert [tuple(root) for root in found.roots] == [(f"file://{tree}/", "active", "")]
    stages = [stage.name for stage in topology_of(settings_of(harvest)).stages]
    assert [tuple(stage) for stage in found.stages] == [(name, 0) for name in stages]


def test_status_of_a_run_that_is_going_on(harvest: Any, tree: Path) -> None:
    """A run is going on while its process holds the lock of the data folder; without the lock it was interrupted."""
    harvest("gather", tree, "--quiet")
    path = harvest.folder / "harvest-data"
    with Store(path, runner=True) as store:
        assert status_of(harvest).run.startswith("the pipeline is running (process ")
        last = runs.last(store)
        assert last is not None
        with store.transaction() as tx:
            runs._note(tx, runs.Run(last.id, last.roots * 2))
        assert ", is going on (process " in status_of(harvest).run
        assert "a run over 2 roots, begun " in status_of(harvest).run
    assert status_of(harvest).run.endswith(", was interrupted: harvest gather goes on with it")


def test_states_of_roots(harvest: Any, tree: Path, tmp_path: Path) -> None:
    """A root that cannot be read has its reason, a paused root is paused; those that need attention come first."""
    other, lost = tmp_path / "zoo", tmp_path / "lost"
    for each in (other, lost):
        each.mkdir()
        (each / "a.txt").write_text("text")
    harvest("gather", tree, other, lost, "--quiet")
    harvest("roots", "pause", other)
    shutil.rmtree(lost)
    harvest("gather", lost, "--quiet", code=1)
    found = status_of(harvest)
    assert [(root.url, root.state) for root in found.roots] == [
        (f"file://{lost}/", "in doubt"),
        (f"file://{other}/", "paused"),
        (f"file://{tree}/", "active"),
    ]
    assert found.roots[0].detail.startswith("removal in doubt: ")


def test_failed_site_has_its_reason(harvest: Any) -> None:
    """A root on the web that was refused has the reason of the refusal."""
    harvest("gather", "http://127.0.0.1:1/", "--quiet", code=1)
    (root,) = status_of(harvest).roots
    assert (root.url, root.state) == ("http://127.0.0.1:1/", "failed")
    assert "fetch.allow" in root.detail


def test_sites_with_queues_requests_and_errors(harvest: Any, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sites have queues, requests in flight and errors; all local folders together are one; long lists are cut with a note."""
    harvest("gather", tree, "--quiet")
    with Store(harvest.folder / "harvest-data", runner=True) as store, store.transaction() as tx:
        rows = Table(tx.rows("frontier", 0))
        for url in ("http://a.example/1", "http://a.example/2", "http://b.example/1", "file:///x/1", "file:///y/1"):
            host = url[: url.rindex("/") + 1] if url.startswith("file") else url.rpartition("/")[0]
            rows.enqueue(host, url_digest(url), UrlState(url, "page", 0, ()))
        rows.put_host("http://b.example", HostState(flying=(b"1" * 16, b"2" * 16), failures=3))
        rows.put_host("http://c.example", HostState(failures=1))
        rows.put_host("file:///x/", HostState(flying=(b"3" * 16,), failures=1))
        rows.put_host("http://idle.example", HostState(delay=5))
    found = status_of(harvest)
    assert found.more == ()
    assert found.hosts == [
        Host("", 2, 1, ""),
        Host("http://a.example", 2, 0, ""),
        Host("http://b.example", 1, 2, "failed 3 times in a row"),
        Host("http://c.example", 0, 0, "the last request failed"),
    ]
    monkeypatch.setattr(folder, "SHOWN", 2)
    monkeypatch.setattr(folder, "QUEUED", 2)
    found = status_of(harvest)
    assert [host.name for host in found.hosts] == ["", "http://a.example"]
    assert found.more == ("queues: only in part, they are long", "sites: 2 more")


def test_rejections_by_reason(harvest: Any, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rejections are counted by reason, the most frequent first, each with its latest example; older ones are left out."""
    harvest("gather", tree, "--quiet")
    reject(harvest, [letter(1, "rare"), letter(2, "truncated"), letter(3, "truncated"), letter(3, "truncated")])
    assert status_of(harvest).rejections == [
        Rejection("truncated", 2, "file:///lost/3"),
        Rejection("rare", 1, "file:///lost/1"),
    ]
    monkeypatch.setattr(operations, "NEWEST", 2)
    found = status_of(harvest)
    assert found.rejections == [Rejection("truncated", 1, "file:///lost/3")]
    assert found.more == ("rejections: of the newest 2 records",)


def test_newest_rejections_leave_out_their_bytes(harvest: Any, tree: Path) -> None:
    """The newest rejections are those of `rejected list`, without the bytes that they hold."""
    harvest("gather", tree, "--quiet")
    reject(harvest, [letter(number, "no") for number in range(5)])
    with StoreLog(Store(harvest.folder / "harvest-data", readonly=True)) as log:
        assert [one.value for one in standing(log, 100)] == [None] * 5
        assert [one.url for one in standing(log, 100)] == [one.url for one in standing(log)]
        assert [one.url for one in standing(log, 2)] == ["file:///lost/3", "file:///lost/4"]


def test_status_beside_a_writer(harvest: Any, tree: Path) -> None:
    """A status is read while a runner has an open transaction, and shows what is committed."""
    harvest("gather", tree, "--quiet")
    with Store(harvest.folder / "harvest-data", runner=True) as store, store.transaction() as tx:
        tx.append("crawl", 0, b"key", b"no record", 1)
        found = status_of(harvest)
    assert {stage.lag for stage in found.stages} == {0}
    assert status_of(harvest).stages[0].lag == 1


def test_damaged_data_folder_is_a_note(harvest: Any) -> None:
    """A file that is no store gives an empty status with the reason; histories raise a CollectionError."""
    path = harvest.folder / "harvest-data"
    path.mkdir()
    (path / "store.sqlite").write_bytes(b"no store at all" * 1_000)
    found = collection_of(settings_of(harvest))
    assert found.status().roots == ()
    assert "store.sqlite" in found.status().more[0]
    with pytest.raises(CollectionError, match=r"store\.sqlite"):
        found.why("file:///a")


def test_missing_and_damaged_index_is_a_note(harvest: Any, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its index the stages are shown all the same; a damaged one is a note, and the other stages remain."""
    harvest("gather", tree, "--quiet")
    index = harvest.folder / "harvest-data" / "index" / "main"
    shutil.rmtree(index)
    assert status_of(harvest).stages[-1].lag > 0
    index.write_bytes(b"")
    found = status_of(harvest)
    assert "frontier" in [stage.name for stage in found.stages]


def test_histories_of_urls_paths_and_members(harvest: Any, tree: Path) -> None:
    """A URL, a path, and a folder without its slash have their events; what is no name has none."""
    harvest("gather", tree, "--quiet")
    found = collection_of(settings_of(harvest))
    by_url = found.why(f"file://{tree}/page.html")
    assert isinstance(by_url[0], ports.Event)
    assert [event.event for event in by_url if event.topic == "broker.main"] == ["summary of type HTML"]
    assert list(found.why(str(tree / "page.html"))) == list(by_url)
    assert found.why(f"file://{tree}/notes")
    for nothing in ("", "file:///none", "wais://x/", "http://[", "a\0b", "\ud800", "x" * 100_000):
        assert not found.why(nothing), nothing


def test_findings_are_those_of_doctor_and_cached(harvest: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The findings are the checks of `harvest doctor`, made once in a while."""
    made = []

    def checked(found: Settings) -> list[checks.Check]:
        made.append(found.data)
        return [checks.Check("python", True, "3"), checks.Check("disk space", False, "0 bytes")]

    monkeypatch.setattr(collection, "checks", checked)
    found = collection_of(settings_of(harvest))
    assert list(found.findings()) == [ports.Finding("python", True, "3"), ports.Finding("disk space", False, "0 bytes")]
    assert list(found.findings())
    assert len(made) == 1


class BodiesDouble:
    """Gives the URL as the bytes of an object."""

    closed = False

    def open(self, summary: Summary) -> tuple[BinaryIO, int]:
        return io.BytesIO(summary.url.encode()), len(summary.url)

    def close(self) -> None:
        self.closed = True


def test_bytes_are_served_only_if_asked_for(harvest: Any) -> None:
    """Without access to bytes a body is refused with 403; with it, it is opened there, and closed with the collection."""
    with pytest.raises(ObjectError, match=r"objects are not served here \(serve\.objects\)") as error:
        collection_of(settings_of(harvest)).body(SUMMARY)
    assert error.value.status == 403
    bodies = BodiesDouble()
    found = GathererCollection(settings_of(harvest), bodies)
    stream, size = found.body(SUMMARY)
    assert (stream.read(), size) == (b"file:///a", 9)
    found.close()
    assert bodies.closed


def test_rate_of_answers(harvest: Any, tree: Path) -> None:
    """The run's sentence ends with the rate of answers since the status was last read, if there were any."""
    harvest("gather", tree, "--quiet")
    clock = Clock()
    found = GathererCollection(settings_of(harvest), clock=clock)
    assert "answers" not in found.status().run
    with Store(harvest.folder / "harvest-data") as store, store.transaction() as tx:
        for _ in range(15):
            tx.append("objects", 0, b"key", b"", 1)
    clock.now = 10.0
    assert found.status().run.endswith("; 1.5 answers a second")
    clock.now = 20.0
    assert "answers" not in found.status().run


def test_cached_value_lasts_as_long_as_it_was_expensive() -> None:
    """A value is returned again for its time, or for ten times what it took, and errors are not kept."""
    clock, costs, made = Clock(), [1.0, 0.0, None, 0.0], list[float]()

    def compute() -> int:
        cost = costs[len(made)]
        made.append(clock.now)
        if cost is None:
            raise RuntimeError
        clock.now += cost
        return len(made)

    cached = Cached(compute, 2.0, clock)
    assert cached.get() == 1
    clock.now = 10.9
    assert cached.get() == 1
    clock.now = 11.1
    assert cached.get() == 2
    clock.now = 13.0
    assert cached.get() == 2
    clock.now = 13.2
    with pytest.raises(RuntimeError):
        cached.get()
    assert cached.get() == 4


def test_others_get_the_older_value_while_one_computes() -> None:
    """While a thread computes the value anew, other threads get the older one at once; at the start they wait for the first."""
    begun, go_on, clock, made = threading.Event(), threading.Event(), Clock(), list[int]()

    def compute() -> int:
        made.append(len(made))
        if len(made) == 2:
            begun.set()
            assert go_on.wait(60)
        return len(made)

    cached = Cached(compute, 2.0, clock)
    assert cached.get() == 1
    clock.now = 5.0
    slow = threading.Thread(target=cached.get)
    slow.start()
    assert begun.wait(60)
    assert [cached.get() for _ in range(3)] == [1, 1, 1]
    go_on.set()
    slow.join()
    assert (cached.get(), len(made)) == (2, 2)


def test_status_of_a_cluster(harvest: Any, tree: Path) -> None:
    """From the topics alone: roots, stages and rejections, and a note on what the workers alone know."""
    harvest("gather", tree, "--quiet")
    harvest("roots", "add", f"file://{tree}/notes/")
    reject(harvest, [letter(1, "truncated")])
    with StoreLog(Store(harvest.folder / "harvest-data", readonly=True)) as log:
        found = cluster_status(log, topology_of(settings_of(harvest)), "here")
    assert (found.gatherer, found.run, found.hosts) == ("here", "", ())
    assert [(root.url, root.state) for root in found.roots] == [(f"file://{tree}/", "active"), (f"file://{tree}/notes/", "active")]
    assert found.rejections == [Rejection("truncated", 1, "file:///lost/1")]
    assert found.stages[0] == ports.Stage("frontier", 1)
    assert found.more == (UNKNOWN,)


def test_cluster_that_does_not_answer_is_a_note(harvest: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a broker the status is empty, with the reason; histories raise a CollectionError."""
    from streams.kafka.client.cluster import ClusterError

    def refusing(*_: Any, **__: Any) -> Any:
        raise ClusterError("nowhere:9092: no broker of Kafka answers")

    monkeypatch.setattr(collection, "open_log", refusing)
    monkeypatch.setattr("streams.cli.common.open_log", refusing)
    found = collection_of(settings_of(harvest, **{"kafka.brokers": ("nowhere:9092",)}))
    assert found.status() == Status("", "", (), (), (), (), ("nowhere:9092: no broker of Kafka answers",))
    with pytest.raises(CollectionError, match="no broker of Kafka answers"):
        found.why("file:///a")


def test_threads_share_a_collection(harvest: Any, tree: Path) -> None:
    """Several threads ask one collection at once, and each gets an answer."""
    harvest("gather", tree, "--quiet")
    found, answers = collection_of(settings_of(harvest)), list[tuple[int, int]]()

    def ask() -> None:
        answers.append((len(found.status().roots), len(found.why(f"file://{tree}/page.html"))))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 8
    assert len(set(answers)) == 1
