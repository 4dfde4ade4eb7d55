"""A larger stream: copies of the summaries of a data folder under OIDs of their own, and a gateway that serves it.

`python -m tests.bench.gatherer.copies FEED PORT` serves a feed without a data folder.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from msgspec.structs import replace

from processors.identity import oid
from schemas.ports import BrokerIndex
from schemas.records import Summary
from sinks.feed.feed import Feed
from sinks.gateway.options import GatewayOptions
from sinks.gateway.server import serve
from streams.clock import now_ms
from streams.store import Store
from tests.bench.gatherer.web_servers import ROOT, STREAM, Server, listens
from tests.bench.outcomes import records
from tests.servers.process import free_port, running
from tests.sinks.gateway.doubles import CollectionDouble


def copy(data: Path, path: Path, times: int) -> int:
    """Make a feed with each summary of a data folder so many times; return the number of its summaries."""
    with Store(data, readonly=True) as store:
        found = [one for one in records(store, "summaries") if isinstance(one, Summary)]
    path.parent.mkdir()
    with closing(Feed(path, "copies", clock=now_ms)) as feed:
        for number in range(times):
            feed.apply([replace(one, oid=oid("copies", f"{number} {one.oid}")) for one in found], {})
    return times * len(found)


@contextmanager
def large_gateway(feed: Path) -> Iterator[Server]:
    """Serve a feed. Raises ServerError."""
    port = free_port()
    command = [sys.executable, "-m", "tests.bench.gatherer.copies", str(feed), str(port)]
    with running(command, feed.parent, lambda: listens(port), environment={"PYTHONPATH": str(ROOT)}) as pid:
        yield Server(port, pid, STREAM)


def main(feed: str, port: str) -> None:
    """Serve a feed until stopped."""
    collection = CollectionDouble()
    collection.feed_path = Path(feed)

    def no_index() -> BrokerIndex:
        raise FileNotFoundError

    serve(GatewayOptions(port=int(port), rate=0), no_index, collection, lambda _: None)


if __name__ == "__main__":
    main(*sys.argv[1:3])
