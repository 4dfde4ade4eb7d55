"""Brokers whose sources, definitions and views change at random, from one seed; and what must hold of each at rest."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import closing, suppress
from itertools import pairwise
from pathlib import Path
from typing import cast

from msgspec.structs import replace

from processors.broker.definition import Broker
from processors.broker.entry import PREFIX, load
from processors.broker.tagging import TAGS, _tagged
from processors.broker.views import ViewError, created, latest, queries, removed, tags, tree
from processors.query import parse
from processors.query.forms import Analyzer
from schemas.codec import decode
from schemas.records import Removed, Summary, View
from sinks.index.tantivy.index import TantivyIndex
from streams.simulator import Simulator
from streams.topology.flow import REGISTER
from tests.streams.topology.broker_worlds import FAR, Gathered, Held, archive, check_roles, expected, published, rest, simulator

Brokers = tuple[Broker, ...]

SOURCES = ("broker:brief", "broker:whales")
VARIANTS: tuple[Brokers, ...] = (
    (Broker("whales", "whale"), Broker("whales", "whale squid"), Broker("whales", "whale OR squid"), Broker("whales")),
    (Broker("brief", ttl=600), Broker("brief", ttl=1_200), Broker("brief"), Broker("brief", "-kelp", ttl=600)),
    (
        Broker("both", "squid OR whale", sources=(*SOURCES, FAR)),
        Broker("both", "squid", sources=SOURCES),
        Broker("both", sources=SOURCES[::-1]),
        Broker("both", languages=("de",), sources=SOURCES),
    ),
)
"""Definitions of each Broker, the first at the start: a filtered one, one of a short time-to-live, one over these two."""
AT_FIRST: Brokers = tuple(variants[0] for variants in VARIANTS)
PATHS = ("sea", "sea/large", "sea/large/old", "sea/large/old/white", "far", "far/deep")
QUERIES = ("whale", "squid", "whaling", "whale OR squid", "-kelp", "in:http://far.test/", "kelp")


class Sea:
    """A simulator of the three Brokers, what is gathered, and the definitions as they are now."""

    def __init__(self, seed: int, partitions: int, brokers: Brokers = AT_FIRST) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.brokers = brokers
        self.sim = simulator(brokers, seed, partitions)
        self.gathered = Gathered(self.sim, self.rng)
        self.seen = 0
        """Time of the last definition of a view."""
        for one in brokers:
            self.fill(one.name)

    def live(self, changes: int, crashes: int = 1, *, redefining: bool = False) -> None:
        """Make some changes, with some moves of the simulator after each, and at most `crashes` crashes in them."""
        for _ in range(changes):
            self.change(redefining=redefining)
            self.sim.step(self.rng.randrange(12), crashes=self.sim.crashes + crashes)

    def settle(self, crashes: int = 60) -> None:
        """Run to rest, and again with all views defined anew: then most of what is left to do is on ticks, as are the crashes."""
        rest(self.sim, crashes=8)
        for one in self.brokers:
            self.fill(one.name)
        rest(self.sim, crashes=crashes)

    def change(self, *, redefining: bool) -> None:
        """Change what is gathered, a view, perhaps a definition, or let time pass; or register gets a tick, held or not."""
        kind = self.rng.randrange(14 if redefining else 13)
        if kind < 7:
            self.gathered.change()
        elif kind < 10:
            self.change_view(self.rng.choice(self.brokers).name)
        elif kind < 12:
            task = self.rng.choice([task for task in self.sim.tasks if task.stage.name.startswith(REGISTER)])
            self.sim.tick(task, held=self.rng.random() < 0.5)
        elif kind < 13:
            self.sim.now += self.rng.choice((100_000, 200_000, 700_000))
        else:
            self.redefine(tuple(map(self.rng.choice, VARIANTS)))

    def change_view(self, broker: str) -> None:
        """Make, change or remove a view as the commands do it; one of two writers at once may leave a view without its parent."""
        self.seen += 1
        path, known = self.rng.choice(PATHS), self.views(broker)
        with suppress(ViewError):
            if self.rng.random() < 0.3:
                made = View(path=path, time=self.seen, removed=True) if self.rng.random() < 0.3 else removed(known, path, self.seen)
            else:
                made = created(known, path, self.rng.choice(QUERIES), self.seen)
            self.sim.broadcast(f"views.{broker}", lambda _: made)

    def fill(self, broker: str) -> None:
        """Make all views of a Broker, four deep."""
        for path in PATHS:
            self.seen += 1
            view = View(path=path, query=self.rng.choice(QUERIES), time=self.seen)
            self.sim.broadcast(f"views.{broker}", lambda _, view=view: view)  # type: ignore[misc]

    def redefine(self, brokers: Brokers) -> None:
        """Go on with other definitions."""
        self.brokers = brokers
        self.sim.redefine(simulator(brokers, self.seed, 1).topology)

    def views(self, broker: str) -> dict[str, View]:
        """The views of a Broker that hold, by key."""
        return latest(cast("View", one) for _, one in self.sim.records(f"views.{broker}"))

    def expected(self) -> dict[str, Held]:
        """What each Broker must hold, with tags: by the predicates of its definition and of its views."""
        found = expected(self.brokers, self.gathered.held, self.sim.now)
        for defined in self.brokers:
            rules = tree(self.views(defined.name), defined.languages)
            found[defined.name] = {oid: replace(one, views=tags(rules, one)) for oid, one in found[defined.name].items()}
        return found


def check_sea(sea: Sea, folder: Path | None = None) -> None:
    """Check each Broker at rest: held = accepted = published with the tags of the present views = answered by an index."""
    due = sea.expected()
    for defined in sea.brokers:
        name = defined.name
        assert published(sea.sim, name) == due[name], name
        assert held_rows(sea.sim, name) == {oid: one.views for oid, one in due[name].items()}, name
        check_roles(sea.sim, name)
        check_counters(sea.sim, name)
        if folder is not None:
            check_index(sea, defined, due[name], folder / name)


def held_rows(sim: Simulator, broker: str) -> dict[str, tuple[str, ...]]:
    """What the rows of register say: the tags of each summary held, by OID."""
    found = {}
    for rows in sim.rows(f"register.{broker}"):
        for key, _ in rows.scan(PREFIX):
            if load(rows, key).summary:
                tagged = rows.get(TAGS + key[len(PREFIX) :])
                found[key[len(PREFIX) :].decode()] = _tagged(tagged).views if tagged is not None else ()
    return found


def check_counters(sim: Simulator, broker: str) -> None:
    """Check that the publish counters of each OID rise."""
    told: dict[str, list[int]] = {}
    for _, one in sim.records(f"broker.{broker}"):
        made = cast("Summary | Removed", one)
        told.setdefault(made.oid, []).append(made.published)
    assert all(a < b for counters in told.values() for a, b in pairwise(counters)), broker


def check_index(sea: Sea, defined: Broker, due: Held, folder: Path) -> None:
    """Check what an index answers about the Broker and each of its views, that took the archive in batches, some of them twice."""
    made = [cast("Summary | Removed", one) for _, one in sea.sim.records(f"broker.{defined.name}")]
    views = sea.views(defined.name)
    known = queries(views)
    with closing(TantivyIndex(folder, heap=15_000_000, analyzer=Analyzer(defined.languages))) as index:
        for start in range(0, len(made), 50):
            index.add(made[max(0, start - 20) : start + 50])
        index.commit({0: len(made)})
        assert set(index.scroll(parse("*"))) == set(due), defined.name
        for key, query in known.items():
            assert query == parse(f'view:"{key}"', known), key
            assert set(index.scroll(query)) == {oid for oid, one in due.items() if views[key].path in one.views}, key


def check_expiry(sim: Simulator, broker: str, ttl: int) -> None:
    """Check that no summary was expired by a tick before which a confirmation in time was in the log."""
    for part in sim.log[f"broker.{broker}"]:
        for logged in part:
            gone = decode(logged.value or b"")
            if isinstance(gone, Removed) and gone.reason == "expired":
                last = max(_confirmations(sim, gone.oid, gone.time), default=0)
                assert last + ttl * 1000 <= gone.time, gone.oid


def _confirmations(sim: Simulator, oid: str, before: int) -> list[int]:
    """The times of the summaries of an OID that were in the log before a time."""
    logged = [one for part in sim.log["summaries"] for one in part if one.key == oid.encode() and one.time < before]
    return [one.time for each in logged if isinstance(one := decode(each.value or b""), Summary)]


def net_changes(sim: Simulator, broker: str, do: Callable[[], None]) -> tuple[set[str], set[str]]:
    """Do something and run to rest; return the OIDs that were published meanwhile, and those whose record is another one."""
    before, ends = archive(sim, broker), [len(part) for part in sim.log[f"broker.{broker}"]]
    do()
    rest(sim)
    after = archive(sim, broker)
    told = {one.key.decode() for part, end in zip(sim.log[f"broker.{broker}"], ends, strict=True) for one in part[end:]}
    plain = {oid: replace(one, published=0) for oid, one in before.items()}
    return told, {oid for oid, one in after.items() if plain.get(oid) != replace(one, published=0)}
