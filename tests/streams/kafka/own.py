"""Servers of a single test, which it may stop and restart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from tests.servers import kafka, object_store, opensearch
from tests.servers.object_store import ObjectStore
from tests.servers.operators_cluster import OperatorsCluster, over
from tests.servers.process import free_port, tried
from tests.streams.kafka import secured


class Own:
    """A server that keeps its address and data across restarts."""

    def __init__(self, start: Callable[[], AbstractContextManager[str]]) -> None:
        self._start = start
        self._running = ExitStack()
        self.address = tried(start, self._running)

    def restart(self) -> None:
        """Stop the server in order, and start it again."""
        self.close()
        assert self._running.enter_context(self._start()) == self.address

    def close(self) -> None:
        """Stop the server."""
        self._running.close()


@contextmanager
def broker_of_its_own() -> Iterator[Own]:
    """A broker with its files in a temporary folder."""
    with TemporaryDirectory(prefix="harvest-own-") as name, ExitStack() as running:
        broker = Own(partial(kafka.from_jars, Path(name)))
        running.callback(broker.close)
        yield broker


class Servers(NamedTuple):
    """The servers of a run."""

    kafka: Own
    search: Own
    objects: Own | None = None
    """The S3 server, if bodies are there."""
    cluster: OperatorsCluster | None = None
    """The same servers with TLS and logins."""


@contextmanager
def servers(*, operators: bool = False) -> Iterator[Servers]:
    """A broker and an OpenSearch node with their files in a temporary folder; with `operators`, a cluster as operators have it."""
    # Not below pytest's own folder: the user that the node runs as cannot enter it.
    with TemporaryDirectory(prefix="harvest-own-") as name, ExitStack() as running:
        folder = Path(name)
        for part in (folder, folder / "kafka", folder / "opensearch", folder / "objects"):
            part.mkdir(exist_ok=True)
            part.chmod(0o755)

        def own(start: Callable[[], AbstractContextManager[str]]) -> Own:
            server = Own(start)
            running.callback(server.close)
            return server

        node = own(partial(opensearch.from_jars, folder / "opensearch", free_port()))
        if not operators:
            yield Servers(own(partial(kafka.from_jars, folder / "kafka")), node)
            return
        authority, start = secured.prepared(folder / "kafka")
        broker, objects = own(start), own(partial(object_store.from_build, folder / "objects"))
        reached = secured.Secured.at(broker.address, authority)
        cluster = running.enter_context(over(folder, reached, node.address, ObjectStore.decode(objects.address)))
        yield Servers(broker, node, objects, cluster)
