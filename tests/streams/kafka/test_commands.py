"""Commands on the log give the same output on a real Kafka as on a data folder with the same records."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from processors.identity import oid
from schemas.codec import encode
from schemas.ports import Logged, Origin
from schemas.records import Complete, FetchedObject, Rejected, Removed, Summary
from sinks.gateway.ports import Rejection
from streams.cli.collection import collection_of
from streams.cli.commands.top import UNKNOWN as NOT_KNOWN
from streams.clock import now_ms
from streams.config.settings import load
from streams.kafka.client.cluster import Cluster
from streams.kafka.client.log import KafkaLog
from streams.kafka.client.status import UNKNOWN
from streams.logs import LogAccess, StoreLog
from streams.store import Store, partition
from streams.topology.flow import TopologySettings, topology
from streams.topology.routing import poisoned_letter
from tests.servers.fixtures import TIMEOUT
from tests.streams.kafka.conftest import Broker, Run

Both = Callable[..., list[str]]
URL = "http://example.org/a.zip"
OID = oid("test", URL)
SUMMARY = Summary(
    oid=OID, url=URL, object_url=URL, gatherer="test", version=3, time=2, type="Archive", attributes={"title": ("Käse",)}
)
REMOVED = Removed(oid="b" * 64, url="http://example.org/b", object_url="http://example.org/b", version=4, time=3, reason="gone")
JUNK = b"\xff junk"
AGES = "3000000000"
"""Seconds of retention: the records are of 1970, and a broker that has run for a while deletes what is older than `retention`."""


def records() -> list[Logged]:
    """The records written to both engines."""
    fetched = FetchedObject(url=URL, version=3, time=1, outcome="fetched", body=b"PK", size=2)
    rejected = Rejected(stage="essence", reason="encrypted", time=5, url=URL, path="x", version=3)
    complete = Complete(object_url=URL, version=3, time=1, attempt="a", count=1)
    no_record = poisoned_letter("catalog", ValueError("odd"), Origin("made", 0, 7), b"k", JUNK, 6)
    given = [
        ("objects", URL, 1_000, fetched),
        ("made", URL, 2_000, SUMMARY),
        ("made", URL, 2_000, complete),
        ("summaries", OID, 3_000, SUMMARY),
        ("summaries", REMOVED.oid, 4_000, REMOVED),
        ("rejected", URL, 5_000, rejected),
        ("rejected", "", 6_000, no_record),
    ]
    made = [Logged(topic, -1, -1, time, key.encode(), encode(record)) for topic, key, time, record in given]
    return [*made, Logged("summaries", -1, -1, 7_000, REMOVED.oid.encode(), None), Logged("summaries", -1, -1, 8_000, b"j", JUNK)]


@pytest.fixture
def both(harvest: Run, cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Both:
    """Runs a command on Kafka and on a data folder, and compares the outputs."""
    monkeypatch.setenv("HARVEST_RETENTION", AGES)
    harvest("topics", "apply")
    with KafkaLog(cluster, topology(TopologySettings())) as log:
        log.write(records())
    with StoreLog(Store(tmp_path / "data", {topic.name: 2 for topic in topology(TopologySettings()).topics})) as folder:
        folder.write(records())
    monkeypatch.setenv("HARVEST_GATHERER", "test")

    def run(*arguments: str, code: int = 0) -> list[str]:
        monkeypatch.setenv("HARVEST_KAFKA_BROKERS", cluster.brokers)
        on_kafka = harvest(*arguments, code=code)
        monkeypatch.delenv("HARVEST_KAFKA_BROKERS")
        embedded = harvest(*arguments, "--data", str(tmp_path / "data"), code=code)
        monkeypatch.setenv("HARVEST_KAFKA_BROKERS", cluster.brokers)
        # On Kafka, workers read appended records at once; a data folder applies them at its next run.
        notes = embedded.stderr.replace("harvest: the change is stored; the next run applies it\n", "")
        assert (on_kafka.stdout, on_kafka.stderr) == (embedded.stdout, notes)
        return on_kafka.stdout.splitlines()

    return run


CATS: Sequence[tuple[Sequence[str], int]] = (
    ((), 4),
    (("--partition", "1"), -1),
    (("--from", "1"), -1),
    (("--to", "1"), -1),
    (("--since", "1970-01-01T00:00:04"), 3),
    (("--since", "4000", "--before", "1970-01-01T00:00:07+00:00"), 1),
    (("--since", "1h"), 0),
    (("--key", OID), 1),
    (("--contains", "Käse"), 1),
    (("--type", "Removed"), 1),
    (("--limit", "2"), 2),
)


def test_cat_selects_same_records_on_both_engines(both: Both) -> None:
    """`cat` selects and prints the same records on both engines, by ranges of offsets and times, filters and limits."""
    for arguments, count in CATS:
        lines = both("cat", "summaries", *arguments)
        assert count in (len(lines), -1), arguments
        assert len(both("cat", "summaries", *arguments, "--json")) == len(lines)
    (line,) = map(json.loads, both("cat", "summaries", "--type", "Summary", "--json"))
    place = partition(OID.encode(), 2)
    assert (line["partition"], line["time"], line["key"]) == (place, 3_000, OID)
    assert line["value"]["attributes"] == {"title": ["Käse"]}
    (junk,) = both("cat", "summaries", "--key", "j")
    assert junk.endswith(f"not a Harvest record, {len(JUNK)} bytes")
    assert both("cat", "summaries", "--since", "yesterday", code=2) == []
    assert both("cat", "summaries", "--follow", "--before", "1h", code=2) == []
    assert both("cat", "summaries", "--partition", "2", code=1) == []
    assert both("cat", "nothing", code=1) == []


@pytest.mark.parametrize("engine", ["kafka", "embedded"])
def test_cat_follow_prints_appended_records(engine: str, harvest: Run, cluster: Cluster, tmp_path: Path, root: Path) -> None:
    """`cat --follow` prints the existing records, then appended ones as they arrive."""
    if engine == "kafka":
        harvest("topics", "apply")
    options = [] if engine == "kafka" else ["--data", str(tmp_path / "data")]
    made = {topic.name: 2 for topic in topology(TopologySettings()).topics}
    opened: AbstractContextManager[LogAccess] = (
        KafkaLog(cluster, topology(TopologySettings())) if engine == "kafka" else StoreLog(Store(tmp_path / "data", made))
    )
    with opened as log:
        log.write(records())
        program = [sys.executable, "-c", "from streams.cli import main; main()", "cat", "summaries", "--follow", "--json"]
        brokers = cluster.brokers if engine == "kafka" else ""
        environment = {"PYTHONPATH": str(root), "HARVEST_KAFKA_BROKERS": brokers, "HARVEST_KAFKA_PREFIX": cluster.prefix}
        with subprocess.Popen([*program, *options], stdout=subprocess.PIPE, cwd=tmp_path, env=environment, text=True) as process:
            assert process.stdout is not None
            before = [json.loads(process.stdout.readline()) for _ in range(4)]
            for number in range(3):
                log.append("summaries", [(b"%d" % number, REMOVED)])
                assert json.loads(process.stdout.readline())["key"] == str(number)
            process.kill()
    assert {line["key"] for line in before} == {OID, REMOVED.oid, "j"}


def test_why_prints_same_history_on_both_engines(both: Both) -> None:
    """`why` prints the same history of a URL, event by event."""
    told = [line.split("  ", 1)[1] for line in both("why", URL)]
    assert [line.split()[0] for line in told] == ["objects", "made", "made", "summaries"]
    assert [json.loads(line)["event"] for line in both("why", f"{URL}#x", "--json")][-1] == "rejected by essence"
    assert both("why", "http://example.org/nothing", code=1) == []


def test_rejections_are_listed_the_same_on_both_engines(both: Both) -> None:
    """`rejected list` and `rejected show` print the same current rejections with the same details."""
    assert both("rejected", "list") == ["catalog  made/0@7: error in catalog: ValueError", f"essence  {URL}#x: encrypted"]
    assert f"  from made/0@7, {len(JUNK)} bytes" in both("rejected", "show", "made/0@7")
    assert json.loads(both("rejected", "show", URL, "--json")[0])["path"] == "x"


def test_gateway_shows_the_same_rejections_and_history_on_both_engines(
    both: Both, harvest: Run, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gateway's status and histories are the same on both engines, but for what only a data folder knows."""
    harvest("roots", "add", "http://example.org/")
    on_kafka = collection_of(load(None))
    status = on_kafka.status()
    monkeypatch.delenv("HARVEST_KAFKA_BROKERS")
    embedded = collection_of(load({"data": tmp_path / "data"}))
    rejected = [Rejection("error in catalog: ValueError", 1, "made/0@7"), Rejection("encrypted", 1, f"{URL}#x")]
    assert sorted(status.rejections) == sorted(embedded.status().rejections) == sorted(rejected)
    assert [(root.url, root.state) for root in status.roots] == [("http://example.org/", "active")]
    assert (status.gatherer, status.run, status.more) == ("test", "", (UNKNOWN,))
    lags = {stage.name: stage.lag for stage in status.stages}
    assert (lags["essence"], lags["frontier"], list(lags)) == (1, 2, [stage.name for stage in embedded.status().stages])
    assert list(on_kafka.why(f"{URL}#x")) == list(embedded.why(f"{URL}#x")) != []


def test_top_shows_stages_on_kafka(both: Both, harvest: Run) -> None:
    """`top` shows the lag and the rate of each stage of the cluster; that hosts and roots are not known there is a note."""
    shown = harvest("top", "--json")
    found = {one["stage"]: (one["lag"], one["rate"]) for one in map(json.loads, shown.stdout.splitlines())}
    assert list(found) == [stage.name for stage in topology(TopologySettings()).stages]
    assert (found["essence"], found["catalog"], found["fetch"]) == ((1, 0.0), (2, 0.0), (0, 0.0))
    assert shown.stderr == f"harvest: {NOT_KNOWN}\n"


def test_retry_appends_original_bytes_to_original_partition(both: Both, harvest: Run, broker: Broker, cluster: Cluster) -> None:
    """`rejected retry` appends the original bytes to their partition and ends the rejection; objects are found in the log."""
    both("rejected", "retry", "made/0@7")
    assert broker.read(cluster.topic("made"), 2)[-1 if not partition(URL.encode(), 2) else 0] == (b"k", JUNK)
    (line,) = both("cat", "made", "--key", "k")
    assert line.startswith("made/0@")
    assert both("rejected", "list") == [f"essence  {URL}#x: encrypted"]
    both("rejected", "retry", "--all")
    assert both("rejected", "list") == []
    assert [line.split()[1] for line in both("cat", "objects")] == ["FetchedObject", "FetchedObject"]
    assert "tried again" in harvest("why", f"{URL}#x").stdout
    assert both("rejected", "retry", URL, code=1) == []
    assert both("rejected", "retry", code=2) == []


def test_later_success_ends_rejection(both: Both, cluster: Cluster, tmp_path: Path) -> None:
    """A later success ends a rejection: the rows of the stages have it, which are read from the changelog on Kafka."""
    row = (b"o|" + URL.encode(), (4).to_bytes(8, "big"))
    number = partition(URL.encode(), 2)
    with Store(tmp_path / "data") as store, store.transaction() as tx:
        tx.rows("catalog", number).put(*row)
    with KafkaLog(cluster, topology(TopologySettings())) as log:
        log.producer.produce(cluster.changelog("catalog"), row[1], row[0], number)
        assert log.producer.flush(TIMEOUT) == 0
    assert both("rejected", "list") == ["catalog  made/0@7: error in catalog: ValueError"]


def test_export_and_import_keep_values_times_and_order(
    harvest: Run, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Export and import, from a data folder to Kafka and back, keep values, tombstones and times of each key in order."""
    monkeypatch.setenv("HARVEST_RETENTION", AGES)
    harvest("topics", "apply")
    values = [encode(SUMMARY), None, JUNK, encode(REMOVED)]
    with StoreLog(Store(tmp_path / "a", {topic.name: 3 for topic in topology(TopologySettings()).topics})) as folder:
        folder.write(Logged("summaries", -1, -1, 9_000 - n, b"k%d" % (n % 7), values[n % 4]) for n in range(1_500))
        folder.write([Logged("frontier.ticks", 2, -1, 5, b"", JUNK)])
    for topic in ("summaries", "frontier.ticks"):
        monkeypatch.setenv("HARVEST_KAFKA_BROKERS", "")
        harvest("export", topic, "a.avro", "--data", "a")
        monkeypatch.setenv("HARVEST_KAFKA_BROKERS", cluster.brokers)
        assert f"of {topic} appended" in harvest("import", "a.avro").stderr
        assert "already; --append" in harvest("import", "a.avro", code=1).stderr
        harvest("export", topic, "b.avro")
        monkeypatch.setenv("HARVEST_KAFKA_BROKERS", "")
        harvest("import", "b.avro", "--data", "b")
    with (
        StoreLog(Store(tmp_path / "a")) as before,
        StoreLog(Store(tmp_path / "b")) as after,
        KafkaLog(cluster, topology(TopologySettings())) as kafka,
    ):
        assert held(before) == held(kafka) == held(after)
        assert [logged.time for logged in kafka.read("frontier.ticks", 0, 0, 9)] == [5]


def test_worker_refuses_other_gatherer_name(harvest: Run, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker of frontier or essence, whose OIDs or versions depend on the gatherer's name, refuses one that no summary has."""
    harvest("topics", "apply")
    with KafkaLog(cluster, topology(TopologySettings())) as log:
        assert log.gatherers() == set()
        ended = Complete(object_url=URL, version=3, time=2, attempt="a", count=1)
        # Of today: Kafka deletes at any moment what is older than the retention.
        log.write([Logged("made", -1, -1, now_ms(), URL.encode(), value) for value in (encode(SUMMARY), encode(ended), JUNK)])
        assert log.gatherers() == {"test"}
    monkeypatch.setenv("HARVEST_GATHERER", "other")
    for stages in (), ("essence",), ("frontier",), ("catalog", "frontier"):
        said = harvest("worker", *stages, code=1).stderr
        assert said == "harvest: the summaries on Kafka are of the gatherer test, not other; every OID is made of that name\n"


def held(log: LogAccess) -> dict[bytes, list[tuple[int, bytes | None]]]:
    """Times and values of each key in `summaries`, in order."""
    found: dict[bytes, list[tuple[int, bytes | None]]] = {}
    for number in range(log.topics()["summaries"]):
        for logged in log.read("summaries", number, 0, 10_000):
            found.setdefault(logged.key, []).append((logged.time, logged.value))
    return found


def test_roots_pause_and_resume_reach_every_partition(harvest: Run) -> None:
    """`roots pause` and `roots resume` write an event to every partition; a URL that is no root is refused."""
    harvest("topics", "apply")
    urls = ["http://example.org/", "http://example.net/"]
    harvest("roots", "add", *urls)

    def states() -> list[str]:
        return [json.loads(line)["state"] for line in harvest("roots", "list", "--json").stdout.splitlines()]

    assert states() == ["active", "active"]
    harvest("roots", "pause", urls[0])
    assert states() == ["active", "paused"]
    told = [json.loads(line) for line in harvest("cat", "crawl", "--json").stdout.splitlines()]
    paused = [(one["partition"], one["value"]["url"]) for one in told if one["value"]["kind"] == "paused"]
    assert paused == [(0, urls[0]), (1, urls[0])]
    assert harvest("roots", "add", urls[0]).stderr == f"harvest: {urls[0]}: is paused still (harvest roots resume ROOT)\n"
    assert "not a root" in harvest("roots", "pause", "http://example.com/", code=1).stderr
    harvest("roots", "resume", urls[0])
    assert states() == ["active", "active"]
    limits = f"harvest: {urls[1]}: its limits were depth 10, 10,000 URLs, and are depth 3, 10,000 URLs now (--depth, --max-urls)\n"
    assert harvest("roots", "add", urls[1], "--depth", "3").stderr == limits
    harvest("roots", "pause", *urls)
    harvest("roots", "remove", urls[0])
    assert states() == ["paused"]
    harvest("roots", "add", urls[0])
    assert states() == ["paused", "active"]


def test_sources_of_brokers_become_roots_once(harvest: Run) -> None:
    """`broker collect` adds the URLs that Brokers are made from as roots, once, and names what no Broker is made from any more."""
    harvest("topics", "apply")
    listing = "http://example.org/brokers/cs/soif/?q=type%3APDF"
    harvest("broker", "create", "papers", "--from", "http://example.org/brokers/cs?q=type:PDF")
    harvest("topics", "apply")
    assert harvest("broker", "collect").stderr == f"harvest: {listing}: the workers collect it\n"
    assert harvest("broker", "collect").stderr == ""
    (found,) = [json.loads(line) for line in harvest("roots", "list", "--json").stdout.splitlines()]
    assert (found["url"], found["depth"]) == (listing, 1)
    harvest("broker", "remove", "papers")
    assert "no source of a Broker" in harvest("broker", "collect").stderr
