"""Servers of a single test, which it may stop and restart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.servers import kafka, opensearch
from tests.servers.process import free_port, tried


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


@contextmanager
def servers() -> Iterator[tuple[Own, Own]]:
    """A broker and an OpenSearch node with their files in a temporary folder."""
    # Not below pytest's own folder: the user that the node runs as cannot enter it.
    with TemporaryDirectory(prefix="harvest-own-") as name, ExitStack() as running:
        folder, port = Path(name), free_port()
        for part in (folder, folder / "kafka", folder / "opensearch"):
            part.mkdir(exist_ok=True)
            part.chmod(0o755)
        broker = Own(partial(kafka.from_jars, folder / "kafka"))
        running.callback(broker.close)
        node = Own(partial(opensearch.from_jars, folder / "opensearch", port))
        running.callback(node.close)
        yield broker, node
