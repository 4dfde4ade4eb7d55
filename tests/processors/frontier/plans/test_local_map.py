"""Local mapping in the frontier: requests that name a local file, without pace and robots.txt."""

from __future__ import annotations

from typing import Any

import pytest

from processors.frontier.plans.options import PlanTable
from schemas.plan import NO_FOLDER, NOT_LOCAL
from schemas.records import FetchedObject, LocalMap, Plan, Record, Rejected, Tick, Validators
from tests.processors.frontier.conftest import SITE, Partition, requests

MAP = (LocalMap(url=f"{SITE}docs/", folder="file:///srv/docs/"),)


@pytest.mark.parametrize("url", [f"{SITE}docs/", f"{SITE}docs/a.html"])
def test_mapped_root_is_requested_at_once(partition: Partition, url: str) -> None:
    """A mapped URL is requested without robots.txt, and names its file and folder; so are links below it."""
    (page,) = requests(partition.seed(Plan(map=MAP), url=url))
    assert (page.url, page.kind, page.within) == (url, "object", "file:///srv/docs/")
    assert page.local == url.replace(f"{SITE}docs/", "file:///srv/docs/")
    links = [f"{SITE}docs/{number}.html" for number in range(20)]
    found = requests(partition.link(page, *links))
    assert [each.url for each in found] == links
    assert all(each.local for each in found)


def test_other_pages_of_the_server_are_paced(partition: Partition) -> None:
    """A link that is not mapped waits for robots.txt."""
    (page,) = requests(partition.seed(Plan(map=MAP), url=f"{SITE}docs/"))
    (other,) = requests(partition.resolve(partition.link(page, f"{SITE}x")))
    assert (other.url, other.local) == (f"{SITE}x", "")


def test_missing_file_is_gone(partition: Partition) -> None:
    """Without `missing`, a file that the folder does not have is gone."""
    (page,) = requests(partition.seed(Plan(map=MAP), url=f"{SITE}docs/"))
    (found,) = requests(partition.link(page, f"{SITE}docs/x"))
    (gone,) = partition.answer(found, "gone", reason=NOT_LOCAL)
    assert isinstance(gone, FetchedObject)
    assert gone.outcome == "gone"


def test_missing_file_is_requested_from_its_server(partition: Partition) -> None:
    """With `missing = "fetch"` it is requested from the server, by its rules; the next run looks in the folder first."""
    (page,) = requests(partition.seed(Plan(map=MAP, missing="fetch"), url=f"{SITE}docs/"))
    partition.answer(page)
    (found,) = requests(partition.link(page, f"{SITE}docs/x"))
    (asked,) = requests(partition.resolve(partition.answer(found, "gone", reason=NOT_LOCAL)))
    assert (asked.url, asked.local, asked.address) == (f"{SITE}docs/x", "", "192.0.2.1")
    assert asked.version > found.version
    partition.answer(asked, validators=Validators(etag="1"))
    again = {each.url: each for each in requests(partition.seed(run="2", url=f"{SITE}docs/"))}
    assert again[f"{SITE}docs/x"].local
    assert again[f"{SITE}docs/x"].validators == Validators(etag="1")


def test_missing_folder_removes_nothing(partition: Partition) -> None:
    """A page whose mapped folder is missing stays; with `missing = "fetch"` it is requested from the server."""
    (page,) = requests(partition.seed(Plan(map=MAP), url=f"{SITE}docs/"))
    (found,) = requests(partition.link(page, f"{SITE}docs/x"))
    (letter,) = partition.answer(found, "failed", reason=NO_FOLDER)
    assert isinstance(letter, Rejected)
    assert letter.reason == NO_FOLDER
    (page,) = requests(partition.seed(Plan(map=MAP, missing="fetch"), run="2", url=f"{SITE}docs/"))[:1]
    (asked,) = requests(partition.resolve(partition.answer(page, "failed", reason=NO_FOLDER)))
    assert (asked.url, asked.local) == (page.url, "")


def test_redelivered_events_repeat_their_requests(partition: Partition) -> None:
    """The events that caused a local request, and one to the server after it, cause the same again when they are redelivered."""
    plan = Plan(map=MAP, missing="fetch")
    first = partition.seed(plan, url=f"{SITE}docs/")
    assert partition.seed(plan, url=f"{SITE}docs/", offset=1) == first
    (page,) = requests(first)
    partition.answer(page)
    links = [f"{SITE}docs/x", f"{SITE}y"]
    found = partition.link(page, *links)
    assert partition.link(page, *links, offset=partition.offset) == found
    (local,) = (each for each in requests(found) if each.local)
    partition.resolve([each for each in requests(found) if not each.local])
    asked = partition.answer(local, "gone", reason=NOT_LOCAL)
    assert [each.local for each in requests(asked)] == [""]
    assert partition.answer(local, "gone", reason=NOT_LOCAL, offset=partition.offset) == asked


def asked_of_server(given: list[Record]) -> list[str]:
    """The URLs of pages that outputs request from the server."""
    return [each.url for each in requests(given) if each.kind == "object" and not each.local]


def test_redelivered_tick_does_not_request_formerly_mapped_url_at_once(partition: Partition) -> None:
    """A tick that is redelivered after a change of plan has a formerly mapped page wait for robots.txt, and for its turn."""
    (page,) = requests(partition.seed(Plan(map=MAP), url=f"{SITE}docs/"))
    partition.answer(page)
    (again,) = requests(partition.tick(partition.now + 100 * 86_400_000))
    assert again.local
    # As a crash in the middle of the event that changes the plan leaves it.
    PlanTable(partition.rows).put(f"{SITE}docs/", Plan())
    given = partition.give(Tick(time=partition.now), offset=partition.offset, topic="frontier.ticks")
    assert asked_of_server(given) == []
    (asked,) = requests(partition.resolve(given))
    assert (asked.url, asked.address, asked.local) == (page.url, "192.0.2.1", "")
    assert asked.version > again.version
    assert not requests(partition.answer(again))


def test_redelivered_answer_has_formerly_mapped_url_queued(partition: Partition) -> None:
    """An answer that had caused a local request, redelivered after a change of plan, has the page requested from its server."""
    (page,) = requests(partition.seed(Plan(map=MAP), url=f"{SITE}docs/"))
    partition.seed(Plan(map=MAP), run="2", url=f"{SITE}docs/", depth=3)
    (again,) = requests(partition.answer(page))
    assert again.local
    PlanTable(partition.rows).put(f"{SITE}docs/", Plan())
    given = partition.answer(page, offset=partition.offset)
    assert asked_of_server(given) == []
    assert asked_of_server(partition.resolve(given)) == [page.url]


@pytest.mark.parametrize("answer", [{"kind": "gone", "reason": NOT_LOCAL}, {"kind": "fetched", "validators": Validators(md5="1")}])
def test_answer_from_former_folder_is_not_that_of_the_server(partition: Partition, answer: dict[str, Any]) -> None:
    """A page that is in flight to its local folder when a run without the mapping begins is requested from its server."""
    (page,) = requests(partition.seed(Plan(map=MAP), url=f"{SITE}docs/"))
    given = partition.seed(Plan(), run="2", url=f"{SITE}docs/")
    assert [each.kind for each in requests(given)] == ["resolve"]
    assert partition.answer(page, **answer) == []
    assert asked_of_server(partition.resolve(given)) == [page.url]
