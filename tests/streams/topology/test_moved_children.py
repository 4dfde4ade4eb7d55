"""Pages that move from one listing to another in the simulator, as deleted pages shift others between the parts of a sitemap."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from tests.streams.topology.listed_worlds import Site, check_rows
from tests.streams.topology.test_network_listings import HOST, INDEX, LIMITS, MAP1, MAP2, expected
from tests.streams.topology.worlds import Seeded, check, gather

if TYPE_CHECKING:
    from tests.streams.topology.conftest import World


@pytest.mark.parametrize("credit", [1, 4])
@pytest.mark.parametrize("seed", range(4))
def test_page_that_moves_to_another_listing_is_not_requested(seed: int, credit: int, world: World, seeded: Seeded) -> None:
    """Deleted pages shift others between the parts of a sitemap: equal marks still save the requests, in either direction."""
    rng = random.Random(seed)
    site = Site(world)
    for number in range(100):
        site.page(f"{HOST}/p{number:02}")
    urls = sorted(site.versions)
    site.lists = {INDEX: [MAP1, MAP2], MAP1: urls[:50], MAP2: urls[50:]}
    site.write_lists()
    simulator = site.simulator(1, rng, lastmod="trust", credit=credit)
    gather(simulator, "r1", seeded, roots=(INDEX,), anywhere=True, **LIMITS)
    for run, gone, middle in (("r2", urls[:20], 70), ("r3", urls[-20:], 40)):
        for url in gone:
            world.pages.pop(url)
        kept = [url for url in urls if url in world.pages]
        site.page(kept[3])
        site.lists.update({MAP1: [url for url in kept if url < urls[middle]], MAP2: [url for url in kept if url >= urls[middle]]})
        site.write_lists()
        site.asked.clear()
        gather(simulator, run, seeded, roots=(INDEX,), anywhere=True, **LIMITS)
        assert set(gone) | {kept[3]} <= set(site.asked)
        # Once the last listings are answered, and before their children are known, the queue gives some.
        assert len((set(site.asked) & set(kept)) - {kept[3]}) <= 2 * credit
        check_rows(simulator)
        check(simulator, expected(site, simulator))
