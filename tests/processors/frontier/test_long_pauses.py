"""Pauses beyond the patience of the fetch edge: the frontier keeps the request until it fits, so none is in flight for long."""

from __future__ import annotations

import pytest

from processors.frontier.politeness import EDGE_START
from processors.frontier.rows import Table
from processors.frontier.stage import outstanding, restore
from processors.identity import frontier_key
from schemas.records import FetchRequest, Plan
from tests.processors.frontier.conftest import SITE, Partition, requests

HOST = frontier_key(SITE)
YEAR = 365 * 86_400_000
PATIENCE = 10_000


def handed_out(pause: int) -> int:
    """Time from an answer to the next request: of a pause that an edge keeps after its start, the end is left to the edge."""
    return pause - PATIENCE // 2 if pause <= EDGE_START else pause


def begun(partition: Partition, pause: int, stated: int = 0) -> FetchRequest:
    """The first request for a page of a site with a pause, which has links; `stated`: by the plan of its root."""
    partition.resolve(partition.seed(Plan(pause=stated or pause)))
    (page,) = requests(partition.tick(partition.now + handed_out(pause)))
    assert not requests(partition.link(page, f"{SITE}a", f"{SITE}b"))
    return page


def test_request_is_handed_out_when_its_wait_fits_into_patience(partition: Partition) -> None:
    """With a pause of 20 s and a patience of 10 s, the next request leaves the frontier 15 s after an answer, one at a time."""
    page = begun(partition, 20_000)
    assert not requests(partition.answer(page))
    assert not requests(partition.tick(partition.now + 14_999))
    (following,) = requests(partition.tick(partition.now + 1))
    assert following.pause == 20_000
    assert not requests(partition.answer(following, "failed", status=404))
    assert len(requests(partition.tick(partition.now + 15_000))) == 1


def test_rest_of_a_host_lasts_through_a_restart(partition: Partition) -> None:
    """A process that takes over the rows neither requests before the end of the pause nor forgets the queue."""
    page = begun(partition, 20_000)
    partition.answer(page)
    restore(partition.rows)
    assert not requests(partition.tick(partition.now + 14_999))
    assert Table(partition.rows).next_due() == partition.now + 1
    assert len(requests(partition.tick(partition.now + 1))) == 1


def test_robots_is_a_request_like_others(partition: Partition) -> None:
    """After the answer of robots.txt the first page waits as the second one does; before a new robots.txt the host rests too."""
    given = partition.seed(Plan(pause=20_000))
    assert not requests(partition.resolve(given))
    assert not requests(partition.tick(partition.now + 14_999))
    (page,) = requests(partition.tick(partition.now + 1))
    partition.answer(page)
    assert not requests(partition.seed(Plan(pause=20_000), run="2"))


def test_link_that_comes_while_a_host_rests_is_requested_in_time(partition: Partition) -> None:
    """A host whose queue was empty when its pause began wakes up for a link that is found meanwhile."""
    partition.resolve(partition.seed(Plan(pause=20_000)))
    (page,) = requests(partition.tick(partition.now + 15_000))
    partition.answer(page)
    assert not outstanding(partition.rows, partition.now + 60_000)
    assert not requests(partition.link(page, f"{SITE}a"))
    assert outstanding(partition.rows, partition.now + 60_000)
    assert [each.url for each in requests(partition.tick(partition.now + 15_000))] == [f"{SITE}a"]


@pytest.mark.parametrize(("pause", "counts"), [(20_000, 20_000), (600_000, 600_000), (YEAR, 3_600_000)])
def test_run_waits_for_pauses(partition: Partition, pause: int, counts: int) -> None:
    """A run waits for a host that rests, all of a pause over a minute; a stored plan with a pause of a year has one of an hour."""
    partition.answer(begun(partition, counts, pause))
    assert outstanding(partition.rows, partition.now + 60_000)
    assert not requests(partition.tick(partition.now + handed_out(counts) - 1))
    (following,) = requests(partition.tick(partition.now + 1))
    assert following.pause == counts


def test_robots_is_valid_for_the_request_after_it() -> None:
    """With a pause longer than the time for which robots.txt is valid, pages are requested all the same."""
    partition = Partition(robots_ttl=10_000)
    assert begun(partition, 600_000).kind == "object"


def test_long_wait_of_the_edge_keeps_the_queue(partition: Partition) -> None:
    """A request that the edge returns with a wait of a day stays in the queue of its host, which is held so long."""
    (page,) = requests(partition.resolve(partition.seed()))
    assert not requests(partition.answer(page, "deferred", wait=86_400_000))
    assert not outstanding(partition.rows, partition.now + 60_000)
    assert [each.url for each in requests(partition.tick(partition.now + 86_400_000))] in ([page.url], [f"{SITE}robots.txt"])


def test_second_root_of_a_run_waits_for_the_look_up_of_its_host(partition: Partition) -> None:
    """Roots on one host have it looked up once a run; a look-up that an earlier run left is dropped, since it may be lost."""
    first = partition.seed()
    assert not requests(partition.seed(url=f"{SITE}b"))
    assert len(requests(partition.resolve(first))) == 2
    partition = Partition()
    partition.seed()
    assert [each.kind for each in requests(partition.seed(url=f"{SITE}b", run="2"))] == ["resolve"]
    assert not requests(partition.seed(run="2"))


def test_run_waits_for_the_pause_of_another_root(partition: Partition) -> None:
    """A request that the edge returns for the long pause of its root lets its host rest: the run waits, and the queue stays."""
    begun_at_once = requests(partition.resolve(partition.seed()))
    partition.seed(Plan(pause=600_000), url=f"{SITE}slow")
    (slow,) = requests(partition.answer(begun_at_once[0]))
    assert not requests(partition.answer(slow, "deferred", wait=599_000))
    assert outstanding(partition.rows, partition.now + 60_000)
    assert not requests(partition.tick(partition.now + 598_999))
    assert [each.url for each in requests(partition.tick(partition.now + 1))] == [slow.url]
