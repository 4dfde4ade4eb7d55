"""Gatherers that collect from each other: each has a tree, a data folder, and a gateway on a port of its own."""

from __future__ import annotations

import os
import signal
import time
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, Self

from processors.essence.collected import FOREIGN_GATHERER, FOREIGN_OID, VIA
from schemas.records import Summary
from streams.clock import now_ms
from streams.store import Store
from streams.topology.flow import SUMMARIES, archive
from tests.faults.check import latest
from tests.faults.harness import Command, Ended, harvest_here
from tests.servers.process import STEP, TRIES, free_port

OWN = frozenset((FOREIGN_OID, FOREIGN_GATHERER, VIA))
"""Attributes that a collector adds."""
DONE, FAILED, KILLED = 0, 1, -signal.SIGKILL
CUT = """
import os, signal
from sinks.gateway import gatherer
whole, streams = gatherer.merged, iter(range(1, 1_000_000))
def merged(pieces):
    last = next(streams) == {last}
    for piece in whole(pieces):
        yield piece[: len(piece) // 2] if last else piece
        if last:
            os.kill(os.getpid(), signal.SIGKILL)
gatherer.merged = merged
"""
"""Kills a gateway in the middle of the stream with the number `last`."""
AHEAD = "from streams.clock import now_ms\nnow_ms._wall += {ns}\n"
"""Sets the clock of a process ahead."""


class Seen(NamedTuple):
    """What a Gatherer and its collector have in common of a summary."""

    location: str
    type: str
    content_type: str
    size: int
    digests: tuple[str, str]
    lifetimes: tuple[int, int]
    attributes: Mapping[str, tuple[str | bytes, ...]]


def seen(one: Summary) -> Seen:
    """Return a summary without what is the collector's own."""
    attributes = {name: values for name, values in one.attributes.items() if name not in OWN}
    digests, lifetimes = (one.md5, one.sha256), (one.ttl, one.refresh)
    return Seen(one.location or one.url, one.type, one.content_type, one.size, digests, lifetimes, attributes)


class Gatherer:
    """A Gatherer; it is stopped by `kill`, or by the end of a `with`."""

    def __init__(self, folder: Path, name: str, **settings: str) -> None:
        """Make the folders of a Gatherer below a folder; `settings`: beside those of the harness."""
        self.name = name
        self.tree, self.data = folder / name / "tree", folder / name / "data"
        self.tree.mkdir(parents=True)
        self.port = free_port()
        self._settings = {"GATHERER": name, "FETCH_PAUSE": "0", "FETCH_ALLOW": "127.0.0.0/8", "SERVE_RATE": "0"}
        self._settings |= {"FRONTIER_BACKOFF": "100", **settings}
        self._running: Command | None = None
        self._ahead_ns = 0

    def later(self, seconds: int) -> None:
        """Let time pass for all that is started from now on."""
        self._ahead_ns += seconds * 10**9

    @property
    def url(self) -> str:
        """URL of the gateway."""
        return f"http://127.0.0.1:{self.port}/"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    # ---- runs ----------------------------------------------------------------------------------------------------

    def run(self, *words: str) -> Ended:
        """Run a command on the data folder to its end, without faults."""
        before = now_ms._wall
        now_ms._wall += self._ahead_ns
        try:
            return harvest_here(*words, "--data", self.data, "--quiet", **self._settings)
        finally:
            now_ms._wall = before

    def start(self, *words: str, fault: str = "") -> Command:
        """Start a command on the data folder as a process of its own."""
        return Command([*words, "--data", str(self.data), "--quiet"], fault, AHEAD.format(ns=self._ahead_ns), **self._settings)

    def gather(self) -> None:
        """Gather the tree, and collect again what is collected, without faults."""
        ended = self.run("gather") if self.data.exists() else self.run("gather", str(self.tree))
        assert ended.code == DONE, ended

    def collect(self, *sources: Gatherer) -> None:
        """Collect from others, without faults; the service asks them again each second."""
        ended = self.run("collect", *(one.url for one in sources), "--every", "1s")
        assert ended.code == DONE, ended

    # ---- the gateway ---------------------------------------------------------------------------------------------

    def serve(self, cut: int = 0) -> None:
        """Start the gateway, in place of what runs; return once it answers. `cut`: number of the stream that kills it; 0: none."""
        self.kill()
        first = AHEAD.format(ns=self._ahead_ns) + (CUT.format(last=cut) if cut else "")
        self._running = Command(["serve", "--data", str(self.data), "--port", str(self.port)], first=first, **self._settings)
        assert self._running.process.stderr is not None
        lines = []
        for line in self._running.process.stderr:
            lines.append(line)
            if "search at" in line:
                return
        raise AssertionError(f"the gateway of {self.name} does not start: {''.join(lines)}")

    def keep_serving(self) -> None:
        """Start the gateway unless it runs; return once it answers. It reads what the data folder has by then with each request."""
        if self._running is None or self._running.process.poll() is not None:
            self.serve()

    def kill(self) -> bool:
        """Kill the gateway or the service, if one runs; return whether it was killed before."""
        running, self._running = self._running, None
        if running is None:
            return False
        before = running.process.poll() == KILLED
        running.process.kill()
        running.wait()
        return before

    def mark(self, what: str = "gatherer") -> str:
        """Return the mark of the last change, as the gateway states it; `what`: the Gatherer's database, or `brokers/NAME`."""
        with urllib.request.urlopen(f"{self.url}{what}/soif/", timeout=60) as answer:
            return str(answer.headers["ETag"])

    # ---- the service ---------------------------------------------------------------------------------------------

    def work(self) -> None:
        """Start the service, with its gateway, in place of what runs."""
        self.kill()
        self._running = self.start("run", "--serve", "--port", str(self.port))

    def until(self, wanted: Callable[[], object]) -> None:
        """Wait until the data folder is as wanted. Raises AssertionError if the service ends, or it takes too long."""
        for _ in range(TRIES):
            if wanted():
                return
            assert self._running is not None
            assert self._running.process.poll() is None, self._running.wait()
            time.sleep(STEP)
        raise AssertionError(f"{self.name} is not as it should be")

    # ---- content -------------------------------------------------------------------------------------------------

    def define(self, broker: str, text: str) -> None:
        """Write the definition of a Broker."""
        folder = self.data / "brokers"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{broker}.toml").write_text(text)

    def write(self, name: str, text: str) -> None:
        """Write a file of the tree."""
        (self.tree / name).write_text(text)

    def remove(self, name: str) -> None:
        """Remove a file of the tree."""
        os.unlink(self.tree / name)

    def summaries(self) -> list[Summary]:
        """Return the summaries of the data folder."""
        with Store(self.data, readonly=True) as store:
            return list(latest(store, SUMMARIES.name, "version").values())

    def broker(self, name: str) -> dict[str, Seen]:
        """Return what a Broker's archive has, by OID."""
        with Store(self.data, readonly=True) as store:
            return {one.oid: seen(one) for one in latest(store, archive(name).name, "published").values()}

    def own(self) -> dict[str, Seen]:
        """Return the summaries by OID, as they are sent to a collector."""
        return {one.oid: seen(one) for one in self.summaries()}

    def collected(self) -> dict[str, Seen]:
        """Return the collected summaries by their foreign OID; each must be there once."""
        found = [(str(one.attributes[FOREIGN_OID][0]), seen(one)) for one in self.summaries() if FOREIGN_OID in one.attributes]
        assert len(found) == len(dict(found)), "a summary was collected twice"
        return dict(found)
