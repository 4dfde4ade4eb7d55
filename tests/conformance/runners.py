"""The two runners, as one interface: the same commands are given to both, and what became of them is read from each.

The embedded one gathers where it is told to, and its index is tantivy. The other one is `harvest worker`, with stages as processes
on Kafka and an index on OpenSearch: it is started once, and has come to its end when nothing moves any more.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from typer.testing import CliRunner

from processors.broker.definition import MAIN, Broker
from schemas.codec import decode
from schemas.ports import BrokerIndex
from schemas.records import Record
from sinks.index.opensearch.index import OpenSearchIndex
from sinks.index.tantivy.index import TantivyIndex
from streams.cli.app import app
from streams.store import Store
from streams.store.data_folder import index_folder
from streams.topology.flow import TopologySettings, topology
from tests.conformance.ground import Order
from tests.servers.fixtures import Topics
from tests.streams.kafka.conftest import Broker as Server
from tests.streams.kafka.flows import Flow

PARTITIONS = 4
PAGES = Broker("pages", "type:HTML OR type:Mail")
"""A second Broker, with a filter."""
DRAWN = topology(TopologySettings(brokers=(Broker(), PAGES)))
SETTINGS = {
    "GATHERER": "example",
    "CHILDREN": "1",
    "FETCH_PAUSE": "0",
    "FETCH_ALLOW": "127.0.0.0/8",
    "FETCH_MAX_FILE": "4000000",
    "FRONTIER_BACKOFF": "50",
    "ESSENCE_FILES": "true",
    "ESSENCE_FULL_TEXT": "100000",
    "BROKERS_PAGES_QUERY": PAGES.query,
}
"""What both are told; nobody waits for his turn at a server."""


class Runner(Protocol):
    """What a flow is played on."""

    gather: Sequence[str]
    """The command that has it visit roots."""
    tells: bool
    """Whether that command tells, by its exit code, that a root has failed."""
    environment: Mapping[str, str]

    def rest(self) -> None:
        """Until all is done that it was told to."""
        ...

    def records(self, topic: str) -> Sequence[tuple[bytes, Record]]:
        """All records of a topic, with their keys, in order."""
        ...

    def index(self, broker: str = MAIN) -> BrokerIndex:
        """The index of a Broker, to read."""
        ...

    def close(self) -> None:
        """End it."""
        ...


def tell(runner: Runner, words: Sequence[str], settings: Mapping[str, str] = {}, *, code: int = 0) -> str:
    """Give a command; gives what it says."""
    plain: dict[str, str | None] = {name: None for name in os.environ if name.startswith("HARVEST_")}
    told = {f"HARVEST_{name}": value for name, value in {**SETTINGS, **runner.environment, **settings}.items()}
    result = CliRunner(env=plain | told).invoke(app, list(words))
    assert result.exit_code == code, (words, result.output, result.exception)
    return result.stdout


def obey(runner: Runner, order: Order) -> None:
    """Give the command of an order, in the words of that runner."""
    words = (*runner.gather, *order.words, *order.roots) if order.roots else order.words
    tell(runner, words, dict(order.settings), code=int(order.fails and runner.tells))


class EmbeddedRunner:
    """A data folder, in this process."""

    gather: Sequence[str] = ("gather", "--quiet")
    tells = True

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment: Mapping[str, str] = {"DATA": str(folder), "PARTITIONS": str(PARTITIONS)}

    def rest(self) -> None:
        """Each command has waited for its end."""

    def records(self, topic: str) -> list[tuple[bytes, Record]]:
        """Those of the store."""
        with Store(self.folder, readonly=True) as store:
            return list(_stored(store, topic))

    def index(self, broker: str = MAIN) -> BrokerIndex:
        """That of the folder."""
        return TantivyIndex(index_folder(self.folder, broker), writable=False)

    def close(self) -> None:
        """Nobody runs."""


def _stored(store: Store, topic: str) -> Iterator[tuple[bytes, Record]]:
    for partition, end in enumerate(store.ends(topic)):
        for logged in store.read(topic, partition, 0, end):
            if logged.value is not None:
                yield logged.key, decode(logged.value)


class KafkaRunner:
    """`harvest worker` on servers that others use as well: topics and indexes have names of its own."""

    gather: Sequence[str] = ("roots", "add")
    tells = False

    def __init__(self, kafka: str, opensearch: str, root: Path, folder: Path) -> None:
        self.topics = Topics(kafka)
        stages = [stage.name for stage in DRAWN.stages]
        self.flow = Flow(Server(kafka, self.topics), root, folder, PARTITIONS, {}, stages, drawn=DRAWN)
        self.opensearch = opensearch
        self.environment: Mapping[str, str] = {
            "DATA": str(folder / "data"),
            "KAFKA_BROKERS": kafka,
            "KAFKA_PREFIX": self.flow.prefix,
            "INDEX_URL": opensearch,
            "INDEX_NAME": self.topics.prefix,
        }
        told = {f"HARVEST_{name}": value for name, value in {**SETTINGS, **self.environment}.items()}
        self.flow.workers["all"] = self.flow.run("-m", "streams.cli", "worker", **told)

    def rest(self) -> None:
        """Until nothing moves any more."""
        self.flow.rest()

    def records(self, topic: str) -> list[tuple[bytes, Record]]:
        """Those that were read while it was waited for."""
        return self.flow.records[topic]

    def index(self, broker: str = MAIN) -> BrokerIndex:
        """That behind the alias; all of it is found."""
        index = OpenSearchIndex(self.opensearch, f"{self.topics.prefix}-{broker}", writable=False)
        index.refresh()
        return index

    def stop(self) -> int:
        """Have the workers leave in order; gives the exit code."""
        workers = self.flow.workers.pop("all")
        workers.send_signal(signal.SIGTERM)
        return workers.wait()

    def close(self) -> None:
        """End all, and delete what it has made."""
        from opensearchpy import OpenSearch

        self.flow.close()
        self.topics.close()
        with OpenSearch(self.opensearch) as client:
            client.indices.delete(index=f"{self.topics.prefix}*", ignore_unavailable=True)
