"""The collector in the simulator, from many seeds: parts, their changes, damaged streams, crashes and repeats."""

from __future__ import annotations

import hashlib
import io
import random
from collections import Counter
from collections.abc import Sequence

import pytest

from processors.collector import CHANGED
from processors.essence.collected import LISTING, STREAM
from processors.essence.stage import EssenceSettings, essence
from processors.frontier.settings import FrontierSettings
from schemas.records import FetchedObject, FetchRequest, Record, Root, Summary, Validators
from schemas.soif import Template, dumps
from streams.fetch.answers import Answers, Stored
from streams.simulator import Simulator, rejections
from streams.topology.flow import TopologySettings, topology
from tests.processors.essence.collected_streams import LIST, Source
from tests.streams.topology.conftest import event
from tests.streams.topology.worlds import Seeded, summaries

PARTS = 3
NAMES = [f"{part}{letter}" for part in range(PARTS) for letter in "abcd"]


class Gateway:
    """The gateway of another Gatherer: its parts, by number, and what it answers."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.parts = [Source() for _ in range(PARTS)]
        self.faulty = True
        """Whether streams are cut, and summaries change while they are collected."""
        self.sent: Counter[int] = Counter()
        """Number of streams sent, by status."""

    @property
    def texts(self) -> dict[str, str]:
        """What the source has: texts by name."""
        return {name: text for part in self.parts for name, text in part.texts.items()}

    def disturb(self, changes: int) -> None:
        """Change, add and remove some summaries; now and then a part loses its marks."""
        for _ in range(changes):
            name = self.rng.choice(NAMES)
            self.parts[int(name[0])].put(name, self.rng.choice(["", f"text {self.rng.randrange(9)}"]))
        if self.rng.random() < 0.1:
            self.rng.choice(self.parts).renew()

    def fetch(self, request: FetchRequest, now: int) -> list[Record]:
        """Answer a request, as the fetch edge does."""
        answers = Answers(request, now)
        if request.kind == "resolve":
            return [event(request, now, "resolved", addresses=("127.0.0.1",), robots=b"")]
        if self.faulty and self.rng.random() < 0.3:
            self.disturb(2)
        if request.url == LIST:
            listing = dumps([Template("GATHERER"), *(Template("PART", str(number)) for number in range(PARTS))])
            return self._fetched(answers, "", listing, 200, LISTING)
        part = self.parts[int(request.url.removeprefix(LIST))]
        known = request.validators.etag if request.validators else ""
        if known == part.etag:
            return answers.unchanged(Validators(etag=known))
        status, body = part.answer(known)
        self.sent[status] += 1
        damaged = self.faulty and self.rng.random() < 0.2
        return self._fetched(answers, part.etag, body[:-40] if damaged else body, status, STREAM)

    @staticmethod
    def _fetched(answers: Answers, etag: str, body: bytes, status: int, media: str) -> list[Record]:
        stored = Stored(body, "", len(body), hashlib.md5(body).hexdigest(), hashlib.sha256(body).hexdigest())
        changes = status == CHANGED
        return answers.fetched(stored, Validators(etag=etag, size=len(body)), media, {}, status=status, changes=changes)


def summarize(obj: FetchedObject) -> Sequence[Record]:
    """Return what essence makes of an object."""
    return list(essence(obj, io.BytesIO(obj.body or b""), EssenceSettings(gatherer="us")))


def texts(found: Sequence[Summary]) -> dict[str, str]:
    """Return the texts of collected summaries by name."""
    return {one.location.rpartition("/")[2]: str(one.attributes["title"][0]) for one in found}


def collect(simulator: Simulator, seeded: Seeded, run: str, crashes: int = 0) -> None:
    """Collect everything that is new, to the end."""
    root = Root(url=LIST, run=run, host="http://source.example", depth=1)
    owner = simulator.owner("crawl", seeded(root, 0, owner=True))
    events = [seeded(root, simulator.now, owner=p == owner) for p in range(simulator.partitions)]
    simulator.broadcast("crawl", events.__getitem__)
    simulator.run(crashes=simulator.crashes + crashes)


@pytest.mark.parametrize("partitions", [1, 4])
@pytest.mark.parametrize("seed", range(24))
def test_collector_equals_the_source(seed: int, partitions: int, seeded: Seeded) -> None:
    """Whatever was cut, sent twice, or lost in crashes: after each run without a fault, database and Broker equal the source."""
    rng = random.Random(seed)
    gateway = Gateway(rng)
    rules = FrontierSettings(rules="r")
    simulator = Simulator(topology(TopologySettings(frontier=rules)), partitions, rng.randrange, gateway.fetch, summarize)
    gateway.disturb(12)
    for run in range(4):
        gateway.faulty = True
        collect(simulator, seeded, f"{run}-faulty", crashes=8)
        gateway.disturb(4)
        gateway.faulty = False
        collect(simulator, seeded, f"{run}-whole")
        assert texts(summaries(simulator)) == gateway.texts, run
    archive = [one for one in simulator.compacted("broker.main").values() if isinstance(one, Summary)]
    assert texts(archive) == gateway.texts
    assert gateway.sent[CHANGED]


def test_changes_alone_are_sent(seeded: Seeded) -> None:
    """Without faults each part is sent once as a whole, and then its changes alone; nothing is rejected."""
    rng = random.Random(5)
    gateway = Gateway(rng)
    gateway.faulty = False
    simulator = Simulator(topology(TopologySettings()), 1, rng.randrange, gateway.fetch, summarize)
    for name in NAMES:
        gateway.parts[int(name[0])].put(name, "text")
    collect(simulator, seeded, "0")
    assert gateway.sent == {200: PARTS}
    for run in range(1, 6):
        gateway.parts[1].put("1a", f"text {run}" if run % 2 else "")
        collect(simulator, seeded, str(run))
        assert texts(summaries(simulator)) == gateway.texts
    assert gateway.sent == {200: PARTS, 226: 5}
    assert rejections(simulator) == []
