"""Registrations through the whole topology, despite crashes: the registry holds who has renewed in time, and nothing is dialled."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from processors.broker.definition import Broker
from processors.essence.stage import EssenceSettings, essence
from processors.frontier.settings import FrontierSettings
from processors.identity import oid
from processors.registry.template import Registration
from schemas.records import FetchedObject, FetchRequest, Record, Removed, Summary
from streams.operations.registrations import registration_event
from streams.simulator import Simulator, rejections
from streams.topology.flow import TopologySettings, topology
from tests.processors.registry.samples import server, withdrawal

REGISTRY = Broker(name="registry", query="type:Server")
SETTINGS = EssenceSettings(gatherer="g")
HOUR = 3_600_000


def summarize(obj: FetchedObject) -> Sequence[Record]:
    """Return the records of Essence."""
    return list(essence(obj, None, SETTINGS))


def dial(request: FetchRequest, now: int) -> Sequence[Record]:
    """Fail: nothing is fetched here."""
    raise AssertionError(f"{request.url} is requested")


def simulated(partitions: int, chance: random.Random) -> Simulator:
    """Return a simulator of a registry beside the Broker of everything."""
    flow = topology(TopologySettings(FrontierSettings(confirm=HOUR), (Broker(), REGISTRY)))
    return Simulator(flow, partitions, chance.randrange, dial, summarize)


def send(simulator: Simulator, registration: Registration) -> None:
    """Have a registration arrive."""
    simulator.send("crawl", registration_event(registration, simulator.now))


def held(simulator: Simulator, broker: str) -> dict[str, Summary]:
    """Return what a Broker holds, by OID."""
    found = simulator.compacted(f"broker.{broker}").values()
    return {each.oid: each for each in found if isinstance(each, Summary)}


@pytest.mark.parametrize("partitions", [1, 4])
@pytest.mark.parametrize("seed", range(24))
def test_registry_holds_who_has_renewed_in_time(seed: int, partitions: int) -> None:
    """Servers register, renew, change, withdraw and go silent: after each round the registry has those that live, as they are."""
    chance = random.Random(seed)
    simulator = simulated(partitions, chance)
    alive: dict[str, tuple[int, Registration]] = {}
    for _ in range(6):
        for number in chance.sample(range(8), 4):
            ttl = chance.choice((3_600, 7_200, 36_000))
            one = server(number, time_to_live=ttl, title=f"Title {chance.randrange(3)}")
            if chance.random() < 0.25:
                send(simulator, withdrawal(one))
                alive.pop(one.object_url, None)
            else:
                send(simulator, one)
                alive[one.object_url] = (simulator.now + ttl * 1000, one)
        simulator.run(crashes=simulator.crashes + 8)
        simulator.now += chance.randrange(2 * HOUR)
        simulator.run(crashes=simulator.crashes + 4)
        alive = {url: (due, one) for url, (due, one) in alive.items() if due > simulator.now}
        for broker in ("main", "registry"):
            found = held(simulator, broker)
            assert {each.object_url for each in found.values()} == set(alive)
            for each in found.values():
                one = alive[each.object_url][1]
                assert (each.location, each.ttl) == (one.url, one.ttl)
                assert each.attributes["title"] == (one.template().values("title")[0].decode(),)
    assert not rejections(simulator)


def test_expired_and_withdrawn_servers_have_their_reasons() -> None:
    """Who goes silent is removed as expired, who withdraws as gone; one registered under two names is two until then."""
    simulator = simulated(2, random.Random(1))
    one, other = server(1), server(1, name="other")
    send(simulator, one)
    send(simulator, other)
    simulator.run()
    assert len(held(simulator, "registry")) == 2
    send(simulator, withdrawal(other))
    simulator.run()
    simulator.now += HOUR
    simulator.run()
    removed = [record for _, record in simulator.records("broker.registry") if isinstance(record, Removed)]
    assert {(record.object_url, record.reason) for record in removed} == {(one.object_url, "expired"), (other.object_url, "gone")}
    assert not simulator.records("fetches")


def test_unreadable_registration_removes_nothing() -> None:
    """A registration that Essence cannot read, of a later version for example, is rejected, and what is held stays."""
    simulator = simulated(1, random.Random(2))
    event = registration_event(server(1), simulator.now)
    simulator.send("crawl", event)
    simulator.run()
    simulator.send("crawl", event.__class__(**{n: getattr(event, n) for n in event.__struct_fields__} | {"body": b"@SERVER"}))
    simulator.run()
    assert set(held(simulator, "registry")) == {oid("g", server(1).object_url)}
    (letter,) = rejections(simulator)
    assert letter.reason.startswith("not a registration: not SOIF")
