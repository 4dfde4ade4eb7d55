"""Brokers on a running cluster: one that is added reads everything, and one whose query changes becomes what it would have been."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from processors.broker.definition import Broker as Defined
from processors.broker.reading import KEY, Reading
from processors.identity import oid
from processors.query import parse
from schemas.codec import decode, encode
from schemas.records import Record, Removed, Summary
from sinks.index.opensearch.index import OpenSearchIndex
from streams.topology.flow import TopologySettings, topology
from tests.servers.fixtures import Topics
from tests.streams.kafka.conftest import Broker
from tests.streams.kafka.deployment import Deployment
from tests.streams.kafka.flows import newest, said

PARTITIONS = 2
OBJECTS = 1_500
"""More than a batch of register in each partition."""
NAME = "late"
STAGES = [f"{stage}.{NAME}" for stage in ("register", "dedup", "index")]
TYPES = ("HTML", "PDF", "Mail")


def summary(number: int) -> Summary:
    """The summary of one of the objects; every tenth has the content of another one."""
    url = f"http://example.org/{number}"
    return Summary(
        oid=oid("example", url),
        url=url,
        object_url=url,
        gatherer="example",
        version=1_000 + number,
        time=1_000 + number,
        type=TYPES[number % 3],
        size=9,
        sha256=f"{number - 3 if number % 10 == 3 else number:064x}",
        attributes={"title": (f"whale {number}" if number % 4 else f"thistle {number}",)},
    )


SUMMARIES = [summary(number) for number in range(OBJECTS)]


class Added(Deployment):
    """Workers of one Broker over a topic of summaries; only `main` was defined when the topics were made."""

    def __init__(self, broker: Broker, opensearch: str, index: str, folder: Path) -> None:
        self.broker, self.prefix, self.alias, self.opensearch = broker, f"{broker.topics.prefix}-", f"{index}-{NAME}", opensearch
        addresses = {"KAFKA_BROKERS": broker.address, "KAFKA_PREFIX": self.prefix, "INDEX_URL": opensearch, "INDEX_NAME": index}
        super().__init__(folder, STAGES, {"WORKER_STALL": "60", **addresses})

    def define(self, query: str) -> Defined:
        """Define the Broker."""
        folder = self.data.with_name("brokers")
        folder.mkdir(exist_ok=True)
        (folder / f"{NAME}.toml").write_text(f'query = "{query}"\n', "utf-8")
        self.settings = {**self.settings, "BROKERS": str(folder)}
        return Defined(NAME, query)

    def children(self) -> dict[str, int]:
        """The processes of the stages, by name."""
        assert self.worker is not None
        found = dict[str, int]()
        for pid in Path(f"/proc/{self.worker.pid}/task/{self.worker.pid}/children").read_text("ascii").split():
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
            found |= {stage: int(pid) for stage in STAGES if stage in words}
        return found

    def archived(self) -> list[tuple[bytes, Record]]:
        """The records of the archive."""
        found = self.broker.read(f"{self.prefix}broker.{NAME}", PARTITIONS)
        return [(key, decode(value)) for key, value in found if value is not None]

    def at_rest(self, defined: Defined) -> bool:
        """Whether everything is read and committed, and the rows are of the definition."""
        drawn = topology(TopologySettings(brokers=(Defined(), defined)))
        changelog = f"{self.prefix}{STAGES[0]}-rows-changelog"
        for at in range(PARTITIONS):
            row = dict(self.broker.read(changelog, at + 1, at)).get(KEY)
            if row is None or (made := msgspec.msgpack.decode(row, type=Reading)).fingerprint != defined.fingerprint or made.busy:
                return False
        places = [(stage, topic.name) for stage in STAGES for topic in drawn.stage(stage).inputs]
        # Twice: what a stage writes after it was asked is still to be read by one that was asked before.
        return not any(self.broker.lag(self.prefix + stage, self.prefix + topic, PARTITIONS) for stage, topic in 2 * places)

    def check(self, defined: Defined) -> Counter[bytes]:
        """Compare archive and index with the query, OID by OID; return how often each OID was published."""
        accepts = defined.filter()
        assert accepts is not None
        wanted = {one.oid: one for one in SUMMARIES if accepts(one)}
        records = self.archived()
        held = {key.decode(): said(one) for key, one in newest(records).items() if isinstance(one, Summary)}
        assert held.keys() == wanted.keys()
        assert {name: one.url for name, one in held.items()} == {name: one.url for name, one in wanted.items()}
        families = {
            number for number in range(3, OBJECTS, 10) if {SUMMARIES[number].oid, SUMMARIES[number - 3].oid} <= wanted.keys()
        }
        assert sum(bool(one.copy_of) for one in held.values()) == len(families)
        with closing(OpenSearchIndex(self.opensearch, self.alias, writable=False)) as index:
            index.refresh()
            assert set(index.scroll(parse("*"))) == wanted.keys()
        return Counter(key for key, _ in records)


@pytest.fixture
def added(broker: Broker, opensearch: str, index: str, topics: Topics, tmp_path: Path) -> Iterator[Added]:
    """A cluster with summaries, and without the Broker."""
    added = Added(broker, opensearch, index, tmp_path)
    added.run(["topics", "apply"])
    broker.append(f"{added.prefix}summaries", [(one.oid.encode(), encode(one)) for one in SUMMARIES])
    yield added
    if added.worker is not None:
        added.worker.kill()
        added.worker.wait()


@pytest.mark.slow(60)
@pytest.mark.timeout(600)
def test_added_and_changed_broker_is_as_one_that_was_always_so(added: Added) -> None:
    """A Broker added to a running cluster holds and finds, OID by OID, what it accepts, though register is killed in mid-stream.

    With another query, which accepts fewer summaries, and some that were not accepted before, it becomes what a Broker with that
    query would have been, and publishes only what has changed.
    """
    first = added.define("type:HTML OR type:PDF")
    added.run(["topics", "apply"])
    added.start()
    added.wait(lambda: len(added.archived()) > 0)
    os.kill(added.children()[STAGES[0]], signal.SIGKILL)
    added.wait(lambda: added.at_rest(first))
    before = added.check(first)
    added.stop()
    second = added.define("(type:HTML OR type:Mail) whale")
    added.start()
    added.wait(lambda: added.at_rest(second))
    after = added.check(second)
    added.stop()
    old, new = first.filter(), second.filter()
    assert old is not None
    assert new is not None
    stays = {one.oid.encode() for number, one in enumerate(SUMMARIES) if old(one) and new(one) and number % 10 not in (0, 3)}
    assert stays
    assert {after[key] - before[key] for key in stays} == {0}
    gone = {key for key, one in newest(added.archived()).items() if isinstance(one, Removed)}
    assert gone == {one.oid.encode() for one in SUMMARIES if old(one) and not new(one)}
