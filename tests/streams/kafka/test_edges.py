"""Edges on a real Kafka: metadata of commits, recovery after a kill, and dead letters."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from confluent_kafka import TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from processors.identity import file_url, frontier_key
from schemas.codec import encode
from schemas.records import FetchedObject, FetchRequest, Rejected, Root
from streams.edges.base import SPAN
from streams.kafka.client.brokers import retry_coordinator
from streams.kafka.client.commits import LIMIT, decode_commit, encode_metadata
from streams.store import Offsets
from tests.servers.fixtures import TIMEOUT
from tests.streams.kafka.bury import bury
from tests.streams.kafka.conftest import Broker
from tests.streams.kafka.flows import HEADERS, JUNK, Flow
from tests.streams.kafka.station import Station

FILES = 30
SESSION = 120.0
"""Seconds of a worker's session: no pause of the machine ends it, and the work in flight remains its own."""
SMALL = 3_000
"""Maximum size (bytes) of a record in the topic `made` of these tests."""
REFUSED = """
import sys, msgspec
from streams.cli.common import explained
from streams.kafka.worker.worker import run_stage
from tests.streams.kafka.station import Station
try:
    run_stage(sys.argv[1], msgspec.json.decode(sys.argv[2], type=Station).settings())
except Exception as error:
    print(msgspec.json.encode(explained(error)).decode())
"""
"""Prints, as JSON, the user's message and the exit code for the error that ends a worker; null for a traceback."""


@given(st.integers(0, 1 << 40), st.frozensets(st.integers(1, SPAN)))
def test_commit_metadata_round_trip_within_limit(offset: int, above: frozenset[int]) -> None:
    """Commit metadata have all offsets finished above the committed one, up to the full read-ahead, within a broker's limit."""
    offsets = Offsets(offset, frozenset(offset + one for one in above))
    assert decode_commit(offset, encode_metadata(offsets)) == offsets
    assert len(encode_metadata(offsets)) <= LIMIT
    assert len(encode_metadata(Offsets(0, frozenset(range(1, SPAN + 1))))) <= LIMIT


def test_offsets_beyond_metadata_limit_are_left_out() -> None:
    """Finished offsets that do not fit in the metadata are left out, and processed again; lower ones are kept."""
    text = encode_metadata(Offsets(0, frozenset({1, 40_000})))
    assert len(text) <= LIMIT
    assert decode_commit(0, text) == Offsets(0, frozenset({1}))


@pytest.mark.parametrize("metadata", [None, "", "a stranger's", "1:%%%", "2:AAAA"])
def test_foreign_metadata_are_ignored(metadata: str | None) -> None:
    """Metadata of a foreign committer are ignored; only the offset counts."""
    assert decode_commit(7, metadata) == Offsets(7)


class Silent:
    """A server that accepts connections and does not answer until `answers` is set."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.asked = threading.Semaphore(0)
        self.times = 0
        self.answers = False
        self._kept: list[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.socket.getsockname()[1]}"

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            self.times += 1
            self._kept.append(client)
            if self.answers:
                client.recv(65_536)
                client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\nslow")
            self.asked.release()


@pytest.fixture
def silent() -> Iterator[Silent]:
    """A server that keeps its clients waiting."""
    server = Silent()
    yield server
    server.socket.close()


class Edges(Flow):
    """Edges as `harvest worker` runs them."""

    def start(self, stage: str, cut: str = ":0") -> None:
        """Start the worker of a stage."""
        self.cuts[stage] = cut
        encode_metadata = Station(self.broker.address, self.prefix, str(self.folder / "data"), session=SESSION)
        self.workers[stage] = self.run("-m", "tests.streams.kafka.station", stage, msgspec.json.encode(encode_metadata).decode())


@pytest.fixture
def flow(broker: Broker, root: Path, tmp_path: Path) -> Iterator[Flow]:
    """Topics of one partition; `made` takes only small records."""
    flow = Edges(broker, root, tmp_path, 1, {}, ["fetch", "essence"], {"made": {"max.message.bytes": str(SMALL)}})
    yield flow
    flow.close()


def request(url: str, version: int) -> FetchRequest:
    """A request to fetch a URL."""
    address = "127.0.0.1" if url.startswith("http") else ""
    return FetchRequest(url=url, host=frontier_key(url), version=version, time=1, root=Root(url=url, run="r"), address=address)


def committed(flow: Flow, stage: str, topic: str) -> Offsets:
    """The offsets that a stage has committed, with those of the metadata."""
    client = flow.broker.client(f"{flow.prefix}{stage}")
    try:
        (found,) = retry_coordinator(lambda: client.committed([TopicPartition(flow.prefix + topic, 0)], timeout=TIMEOUT))
        return decode_commit(max(0, found.offset), found.metadata)
    finally:
        client.close()


def test_killed_fetcher_repeats_only_requests_in_flight(flow: Flow, silent: Silent, tmp_path: Path) -> None:
    """Requests finished behind a slow one are committed in the metadata: after SIGKILL only the slow one is made again."""
    flow.send("fetches", request(f"{silent.url}/slow", 1))
    urls = [file_url(str(tmp_path / f"{number}.txt").encode()) for number in range(FILES)]
    for number, url in enumerate(urls):
        (tmp_path / f"{number}.txt").write_text(f"text {number}")
        flow.send("fetches", request(url, number + 2))
    flow.start("fetch")
    worker = flow.workers["fetch"]
    silent.asked.acquire()
    while committed(flow, "fetch", "fetches") != Offsets(0, frozenset(range(1, FILES + 1))):
        assert worker.poll() is None
    silent.answers = True
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    bury(flow.broker, f"{flow.prefix}fetch")
    flow.start("fetch")
    flow.stages = ["fetch"]
    flow.rest()
    assert silent.times == 2
    objects = [record for _, record in flow.records["objects"] if isinstance(record, FetchedObject)]
    assert sorted(record.url for record in objects) == sorted([f"{silent.url}/slow", *urls])
    assert committed(flow, "fetch", "fetches") == Offsets(FILES + 1)


def test_aborted_requests_are_not_fetched_and_markers_leave_no_lag(flow: Flow, tmp_path: Path) -> None:
    """A request of an aborted transaction is not fetched, and transaction markers leave no lag, even at the end of the log."""
    (tmp_path / "a.txt").write_text("text")
    there = request(file_url(str(tmp_path / "a.txt").encode()), 1)
    for wanted, keep in ((there, True), (request(file_url(b"/nowhere"), 2), False)):
        with flow.broker.transaction(keep=keep) as producer:
            producer.produce(f"{flow.prefix}fetches", encode(wanted), wanted.host.encode())
    flow.start("fetch")
    while committed(flow, "fetch", "fetches") != Offsets(4):
        assert flow.workers["fetch"].poll() is None
    flow.stages = ["fetch"]
    flow.rest()
    assert [record.url for _, record in flow.records["objects"] if isinstance(record, FetchedObject)] == [there.url]


def test_unprocessable_record_becomes_dead_letter(flow: Flow, tmp_path: Path) -> None:
    """An undecodable record, and an object with too large an output, become dead letters with bytes, headers and origin."""
    text = " ".join(f"word{number}" for number in range(500)).encode()
    fetched = FetchedObject(url="file:///", version=1, time=1, outcome="fetched", md5="0", sha256="0")
    large = msgspec.structs.replace(fetched, url="file:///large.txt", body=text, size=len(text))
    flow.junk("fetches")
    flow.junk("objects")
    flow.broker.append(flow.prefix + "objects", [(b"large", encode(large))], 0, HEADERS)
    flow.start("fetch")
    flow.start("essence")
    flow.rest()
    flow.send("objects", msgspec.structs.replace(fetched, url="file:///small.txt", body=b"few words", size=9))
    flow.rest()
    assert flow.letters() == {
        (topic, 0, stage, JUNK, tuple(HEADERS)) for topic, stage in (("fetches", "fetch"), ("objects", "essence"))
    }
    (at,) = [n for n, (_, r) in enumerate(flow.records["rejected"]) if isinstance(r, Rejected) and r.key == b"large"]
    letter = flow.records["rejected"][at][1]
    assert isinstance(letter, Rejected)
    assert (letter.stage, letter.reason, letter.url) == ("essence", "too large for the log", large.url)
    assert (letter.topic, letter.partition, letter.offset, letter.value) == ("objects", 0, 1, encode(large))
    assert flow.headers["rejected"][at] == HEADERS
    assert {key for key, _ in flow.records["made"]} >= {b"file:///small.txt"}


@pytest.mark.parametrize("stage", ["fetch", "essence"])
def test_refused_session_timeout_ends_edge_with_one_line(flow: Flow, tmp_path: Path, stage: str) -> None:
    """An edge whose session timeout the broker refuses ends with a message of one line and exit code 1."""
    encode_metadata = Station(flow.broker.address, flow.prefix, str(tmp_path / "data"), session=0.5)
    assert flow.run("-c", REFUSED, stage, msgspec.json.encode(encode_metadata).decode()).wait() == 0
    line, code = msgspec.json.decode((tmp_path / "workers.out").read_bytes(), type=tuple[str, int])
    assert line.startswith(f"{flow.broker.address}: ")
    assert "session timeout" in line
    assert code == 1
