"""The two runners behind one interface: both get the same commands, and the resulting state is read from each.

The embedded one gathers with each command, and its index is Tantivy. The other one is three `harvest worker`, with stages as
processes, on a cluster as operators have it: Kafka with TLS, a login and ACLs, OpenSearch behind TLS and a login, bodies in object
storage, and no folder that the workers share. It is started once for all modules: its processes take longer to start than most
flows take. It is at rest when no more records are written.
"""

from __future__ import annotations

import os
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Protocol

from typer.testing import CliRunner

from processors.broker.definition import MAIN
from processors.query.forms import DEFAULT_LANGUAGES
from schemas.codec import decode
from schemas.ports import BrokerIndex
from schemas.records import Record
from sinks.feed.reader import FeedReader
from sinks.index.opensearch.index import OpenSearchIndex
from sinks.index.tantivy.index import TantivyIndex
from streams.brokers import read_definitions
from streams.cli.app import app
from streams.operations.feed import feed_file
from streams.store import Store
from streams.store.data_folder import index_folder
from streams.topology.flow import TopologySettings, topology
from tests.conformance.ground import Order
from tests.servers.fixtures import Topics
from tests.servers.operators_cluster import OperatorsCluster
from tests.servers.process import free_port
from tests.streams.kafka.conftest import Broker as Server
from tests.streams.kafka.flows import Flow
from tests.streams.kafka.secured import allow

PARTITIONS = 4
DEFINED = Path(__file__).with_name("brokers")
"""Definitions of Brokers: one with a filter, and one over that, with another filter, which is kept as a stream."""
BROKERS = {broker.name: broker for broker in read_definitions(DEFINED, DEFAULT_LANGUAGES).brokers}
OTHERS = tuple(name for name in BROKERS if name != MAIN)
STREAMED = tuple(name for name, broker in BROKERS.items() if broker.stream)
DRAWN = topology(TopologySettings(brokers=tuple(BROKERS.values())))
STAGES = [stage.name for stage in DRAWN.stages]
SETTINGS = {
    "GATHERER": "example",
    "CHILDREN": "1",
    "FETCH_PAUSE": "0",
    "FETCH_ALLOW": "127.0.0.0/8",
    "FETCH_MAX_FILE": "4000000",
    "FRONTIER_BACKOFF": "50",
    # What a root has is estimated from one partition, so that a doubt would depend on the paths of the test.
    "FRONTIER_DOUBT": "false",
    "ESSENCE_FILES": "true",
    "ESSENCE_FULL_TEXT": "100000",
    "BROKERS": str(DEFINED),
}
"""Settings of both runners; there is no pause between requests to a server."""


class Runner(Protocol):
    """The interface of a runner."""

    gather: Sequence[str]
    """The command that visits roots."""
    tells: bool
    """Whether the exit code of that command reports a failed root."""
    environment: Mapping[str, str]

    def rest(self) -> None:
        """Wait until all commands are processed."""
        ...

    def records(self, topic: str) -> Sequence[tuple[bytes, Record]]:
        """All records of a topic, with their keys, in order."""
        ...

    def index(self, broker: str = MAIN) -> BrokerIndex:
        """The index of a Broker, opened for reading."""
        ...

    def stream(self, broker: str) -> FeedReader:
        """The stream of a Broker, opened for reading."""
        ...


def tell(runner: Runner, words: Sequence[str], settings: Mapping[str, str] = {}, *, code: int = 0) -> str:
    """Run a command, and return its standard output."""
    plain: dict[str, str | None] = {name: None for name in os.environ if name.startswith("HARVEST_")}
    environment = {f"HARVEST_{name}": value for name, value in {**SETTINGS, **runner.environment, **settings}.items()}
    result = CliRunner(env=plain | environment).invoke(app, list(words))
    assert result.exit_code == code, (words, result.output, result.exception)
    return result.stdout


def obey(runner: Runner, order: Order) -> None:
    """Run the command of an order in the form of this runner."""
    words = (*runner.gather, *order.words, *order.roots) if order.roots else order.words
    tell(runner, words, dict(order.settings), code=int(order.fails and runner.tells))


def _answer(url: str) -> str:
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        with error:
            return error.read().decode()


class EmbeddedRunner:
    """A data folder, used in this process."""

    gather: Sequence[str] = ("gather", "--quiet")
    tells = True

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment: Mapping[str, str] = {"DATA": str(folder), "PARTITIONS": str(PARTITIONS)}

    def rest(self) -> None:
        """Do nothing: each command waits for its end."""

    def records(self, topic: str) -> list[tuple[bytes, Record]]:
        """The records in the store."""
        with Store(self.folder, readonly=True) as store:
            return list(_stored(store, topic))

    def index(self, broker: str = MAIN) -> BrokerIndex:
        """The index in the folder."""
        return TantivyIndex(index_folder(self.folder, broker), writable=False)

    def stream(self, broker: str) -> FeedReader:
        """The stream in the folder."""
        return FeedReader(feed_file(self.folder, broker))


def _stored(store: Store, topic: str) -> Iterator[tuple[bytes, Record]]:
    for partition, end in enumerate(store.ends(topic)):
        for logged in store.read(topic, partition, 0, end):
            if logged.value is not None:
                yield logged.key, decode(logged.value)


WORKERS: Mapping[str, Sequence[str]] = {
    "first": [name for name in STAGES if name not in ("essence", "catalog")],
    "second": ["essence", "catalog", *(f"{stage}.{MAIN}" for stage in ("register", "dedup"))],
    "third": ["fetch", "essence"],
}
"""The stages of each worker: some run twice, and what fetches a body need not be where it is parsed."""


class KafkaRunner:
    """`harvest worker` on a cluster as operators have it, with its own prefix for topics and indexes."""

    gather: Sequence[str] = ("roots", "add")
    tells = False

    def __init__(self, cluster: OperatorsCluster, opensearch: str, root: Path, folder: Path) -> None:
        """`opensearch`: the address of the server behind the proxy, for the test itself."""
        self.cluster = cluster
        self.opensearch = opensearch
        self.topics = Topics(cluster.kafka.open)
        self.flow = Flow(Server(cluster.kafka.open, self.topics), root, folder, PARTITIONS, {}, STAGES, drawn=DRAWN)
        allow(cluster.kafka.open, self.flow.prefix, DRAWN)
        config = folder / "harvest.toml"
        config.write_text(cluster.toml(self.flow.prefix, self.topics.prefix), "utf-8")
        self.environment: Mapping[str, str] = {"CONFIG": str(config), "DATA": str(folder / "commands")}
        self.ports = free_port(sum(map(len, WORKERS.values())))
        """The first of the ports of probes and metrics, one for each stage of each worker."""
        self.start()

    def start(self) -> None:
        """Start the workers, unless they are running."""
        port = self.ports
        for name, stages in WORKERS.items() if not self.flow.workers else ():
            # Nobody is killed here: a long session keeps workers on a machine that is busy with other things.
            own = {"DATA": str(self.flow.folder / name), "WORKER_PORT": str(port), "WORKER_SESSION": "45"}
            environment = {f"HARVEST_{key}": value for key, value in {**SETTINGS, **self.environment, **own}.items()}
            self.flow.workers[name] = self.flow.run("-m", "streams.cli", "worker", *stages, **environment)
            port += len(stages)

    def rest(self) -> None:
        """Wait until no more records are written."""
        self.flow.rest()

    def records(self, topic: str) -> list[tuple[bytes, Record]]:
        """The records that were read during the wait."""
        return self.flow.records[topic]

    def index(self, broker: str = MAIN) -> BrokerIndex:
        """The index behind the alias, refreshed so that all documents are found."""
        index = OpenSearchIndex(self.opensearch, f"{self.topics.prefix}-{broker}", writable=False)
        index.refresh()
        return index

    def stream(self, broker: str) -> FeedReader:
        """The stream in the folder of the worker that keeps it."""
        return FeedReader(feed_file(self.flow.folder / "first", broker))

    def ready(self, stage: str) -> str:
        """The answers of /readyz of all workers of a stage."""
        ports = [self.ports + number for number, name in enumerate(chain(*WORKERS.values())) if name == stage]
        return "".join(_answer(f"http://127.0.0.1:{port}/readyz") for port in ports)

    def metrics(self) -> list[str]:
        """The metrics of all stages of all workers."""
        count = sum(map(len, WORKERS.values()))
        return [_answer(f"http://127.0.0.1:{port}/metrics") for port in range(self.ports, self.ports + count)]

    def stop(self) -> int:
        """Stop the workers by SIGTERM; return the highest exit code."""
        for worker in self.flow.workers.values():
            worker.send_signal(signal.SIGTERM)
        codes = [worker.wait() for worker in self.flow.workers.values()]
        self.flow.workers.clear()
        return max(map(abs, codes))

    def close(self) -> None:
        """Stop everything, and delete its topics and indexes."""
        from opensearchpy import OpenSearch

        self.flow.close()
        self.topics.close()
        with OpenSearch(self.opensearch) as client:
            client.indices.delete(index=f"{self.topics.prefix}*", ignore_unavailable=True)
