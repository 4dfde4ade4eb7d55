"""Brokers over Brokers of other machines, as the National Internet Document Repository of 1994 was made: each equals its sources.

A Gatherer of a site has one Broker. Another machine has NIDR-SW and NIDR-Doc, by bulk queries from it, and NIDR over both; and
reports of its own. A third one has the technical reports of both.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from streams.store import AbsentError
from tests.faults.gatherers import DONE, FAILED, KILLED, Gatherer, Seen
from tests.faults.sites import Site, site

ROUNDS = int(os.environ.get("NIDR_ROUNDS", "4"))
DAY = 86_400
NAMES = [f"{kind}{number}.{kind}" for kind in ("c", "html") for number in range(8)]
POINTS = (
    "turn.frontier",
    "turn.catalog",
    "turn.register.nidr",
    "turn.register.nidr-sw",
    "log.commit",
    "log.committed",
    "essence.deliver",
    "feed.apply",
    "feed.applied",
)
"""Points at which a run of the second machine is killed."""


class Nidr:
    """The site and the three machines."""

    def __init__(self, origin: Site, machines: list[Gatherer], seed: int) -> None:
        self.origin = origin
        self.first, self.nidr, self.reports = machines
        self.rng = random.Random(seed)
        self.kills = self.seen = 0
        main = f"{self.first.url}brokers/main/soif"
        self.first.define("main", "stream = true\n")
        self.nidr.define("nidr-sw", f"from = ['{main}?q=type:C']\n")
        self.nidr.define("nidr-doc", f"from = ['{main}?q=type:HTML']\nttl = '3d'\n")
        self.nidr.define("nidr", "from = ['broker:nidr-sw', 'broker:nidr-doc']\nstream = true\n")
        self.nidr.define("reports", "query = 'report AND NOT foreign-gatherer:*'\nstream = true\n")
        other = f"{self.nidr.url}brokers"
        self.reports.define("reports", f"from = ['{other}/nidr?q=report', '{other}/reports/soif']\nttl = '1d'\n")

    def disturb(self) -> None:
        """Add, change and remove pages of the site, and files of the second machine."""
        for name in self.rng.sample(NAMES, 6):
            if self.rng.random() < 0.4:
                self.origin.pages.pop(name, None)
            else:
                self.origin.pages[name] = text(name, self.rng)
        for number in self.rng.sample(range(4), 2):
            self.nidr.write(f"own{number}.txt", text("own.txt", self.rng))

    def round(self, number: int) -> None:
        """Gather the site, then collect, with a kill."""
        gathered = self.first.run("gather", self.origin.url)
        assert gathered.code == DONE, gathered
        asked = len(self.origin.requests)
        kind = number % 3
        if kind == 1:
            self.first.serve(cut=self.rng.randrange(1, 20))
            assert self.nidr.start("gather", str(self.nidr.tree)).wait().code in (DONE, FAILED)
            self.kills += self.first.kill()
        self.first.keep_serving()
        if kind == 0:
            code = (
                self.nidr.start("gather", str(self.nidr.tree), fault=f"{self.rng.choice(POINTS)}:{number % 5 + 1}:kill").wait().code
            )
            assert code in (DONE, KILLED)
            self.kills += code == KILLED
        # The tree by its name, then all that is known: the roots that Brokers name are begun by the first.
        for words in (("gather", str(self.nidr.tree)), ("gather",)):
            ended = self.nidr.run(*words)
            assert ended.code == DONE, ended
        self.nidr.keep_serving()
        if kind == 2:
            code = self.reports.start("gather").killed_after(self.rng.uniform(0.5, 2.0)).code
            assert code in (DONE, KILLED)
            self.kills += code == KILLED
        ended = self.reports.run("gather")
        assert ended.code == DONE, ended
        assert len(self.origin.requests) == asked, self.origin.requests[asked:]

    def equal(self) -> None:
        """Assert that each Broker has what its sources have."""
        pages = by_place(self.first.broker("main"))
        assert {place.removeprefix(self.origin.url) for place in pages} - {""} == {*self.origin.pages}
        software = {place: one for place, one in pages.items() if one.type == "C"}
        documents = living({place: one for place, one in pages.items() if one.type == "HTML"}, 3 * DAY)
        assert by_place(self.nidr.broker("nidr-sw")) == software
        assert by_place(self.nidr.broker("nidr-doc")) == documents
        nidr, own = by_place(self.nidr.broker("nidr")), by_place(self.nidr.broker("reports"))
        assert nidr == software | documents
        assert software
        assert documents
        assert own
        wanted = {place: one for place, one in nidr.items() if "report" in str(one.attributes)}
        assert by_place(self.reports.broker("reports")) == living(wanted | own, DAY)
        self.seen += len(wanted)

    def silence(self, number: int) -> None:
        """Let two days pass in which the second machine is silent: what the third one has from it expires, also through a kill.

        What the second one has from the first stays: it is confirmed each time, and lives for three days.
        """
        self.nidr.kill()
        for machine in (self.first, self.nidr, self.reports):
            machine.later(2 * DAY)
        code = self.reports.start("gather", fault=f"turn.register.reports:{number + 1}:kill").wait().code
        assert code in (DONE, FAILED, KILLED)
        self.kills += code == KILLED
        ended = self.reports.run("gather")
        assert ended.code in (DONE, FAILED), ended
        assert self.reports.broker("reports") == {}
        assert by_place(self.nidr.broker("nidr-doc"))


def text(name: str, rng: random.Random) -> str:
    """Return the content of a page."""
    words = f"{rng.choice(['a report', 'a manual'])} {rng.randrange(1_000_000)}"
    if name.endswith(".c"):
        return f"/* {words} */\n#include <stdio.h>\nint main(void) {{ return 0; }}\n"
    return f"<title>{words}</title><p>Text of {words}." if name.endswith(".html") else f"A report about {words}.\n"


def by_place(found: dict[str, Seen]) -> dict[str, Seen]:
    """Return summaries by where their objects are; each must be there once."""
    placed = {one.location: one for one in found.values()}
    assert len(placed) == len(found), "a summary is there twice"
    return placed


def living(found: dict[str, Seen], ttl: int) -> dict[str, Seen]:
    """Return summaries as a Broker states them that has a time-to-live of its own."""
    return {place: one._replace(lifetimes=(min(ttl, one.lifetimes[0]), one.lifetimes[1])) for place, one in found.items()}


@pytest.fixture
def nidr(tmp_path: Path) -> Iterator[Nidr]:
    """The site and three machines."""
    with (
        site() as origin,
        Gatherer(tmp_path, "first") as first,
        Gatherer(tmp_path, "nidr", PARTITIONS="2") as second,
        Gatherer(tmp_path, "reports") as third,
    ):
        yield Nidr(origin, [first, second, third], seed=1)


@pytest.mark.slow(80)
@pytest.mark.timeout(900)
def test_brokers_equal_their_sources(nidr: Nidr) -> None:
    """After each round of additions, changes, removals and expiry each Broker has what its sources have, whatever was killed.

    Nothing but the Gatherer of the site requests anything there.
    """
    nidr.origin.pages.update({name: text(name, nidr.rng) for name in NAMES[::2]})
    nidr.nidr.write("own.txt", "A report of our own.\n")
    for number in range(ROUNDS):
        nidr.round(number)
        nidr.equal()
        if number % 2:
            nidr.silence(number)
        nidr.disturb()
    assert nidr.kills >= 1
    assert nidr.seen, "no report was among what NIDR has"


@pytest.mark.slow(10)
@pytest.mark.timeout(300)
def test_service_follows_the_sources_of_its_brokers(tmp_path: Path) -> None:
    """`harvest run` collects what a Broker of it is made from, again and again; both services keep their streams up to date."""
    often = {"ROOTS_REFRESH": "1", "ROOTS_REFRESH_MIN": "1"}
    with Gatherer(tmp_path, "source", **often) as source, Gatherer(tmp_path, "us", **often) as us:
        source.define("texts", "query = 'type:RawText'\nstream = true\n")
        us.define("theirs", f"from = ['{source.url}brokers/texts']\nstream = true\n")
        source.write("a.txt", "The first.\n")
        assert source.run("gather", str(source.tree)).code == DONE
        source.work()
        source.until(lambda: answers(source, "texts"))
        us.work()
        us.until(lambda: held(us, "theirs") == by_place(source.broker("texts")))
        source.write("b.txt", "The second.\n")
        source.remove("a.txt")
        us.until(lambda: [place[-5:] for place in held(us, "theirs")] == ["b.txt"])


def held(gatherer: Gatherer, broker: str) -> dict[str, Seen]:
    """Return what a Broker has, by place; nothing while there is no data folder yet."""
    try:
        return by_place(gatherer.broker(broker))
    except AbsentError:
        return {}


def answers(gatherer: Gatherer, broker: str) -> bool:
    """Return whether a gateway sends the stream of a Broker."""
    try:
        return bool(gatherer.mark(f"brokers/{broker}"))
    except OSError:
        return False


@pytest.mark.slow(30)
@pytest.mark.timeout(300)
def test_ring_of_brokers_comes_to_rest(tmp_path: Path) -> None:
    """Three Brokers that are made from each other in a ring have the summaries of all once, then nothing changes."""
    with Gatherer(tmp_path, "a") as a, Gatherer(tmp_path, "b") as b, Gatherer(tmp_path, "c") as c:
        ring = (a, b, c)
        for one, before in ((b, a), (c, b), (a, c)):
            one.define("ring", f"from = ['{before.url}brokers/ring/soif', 'broker:own']\nstream = true\n")
            one.define("own", "query = 'NOT foreign-gatherer:*'\n")
            for number in range(2):
                one.write(f"{one.name}-{number}.txt", f"Number {number} of {one.name}.\n")
        rest(ring)
        names = {f"{one.name}-{number}.txt" for one in ring for number in range(2)}
        assert [places(one) for one in ring] == [names] * 3
        a.remove("a-1.txt")
        b.write("b-1.txt", "Another number.\n")
        rest(ring)
        assert [places(one) for one in ring] == [names - {"a-1.txt"}] * 3
        assert len({next(seen.digests for seen in one.broker("ring").values() if "b-1" in seen.location) for one in ring}) == 1


def places(gatherer: Gatherer) -> set[str]:
    """Return the names of the files that the ring's Broker has summaries of."""
    return {place.rsplit("/", 1)[-1] for place in by_place(gatherer.broker("ring"))}


def rest(ring: tuple[Gatherer, ...]) -> None:
    """Let all gather until no mark changes over a round."""
    marks: list[list[str]] = [[]]
    for _ in range(7):
        for one in ring:
            one.run("gather", str(one.tree))
            one.run("gather")
            one.keep_serving()
        marks.append([one.mark("brokers/ring") for one in ring])
        if marks[-1] == marks[-2]:
            return
    raise AssertionError(f"no rest: {marks}")
