"""Local mapping in the frontier: requests that name a local file, without pace and robots.txt."""

from __future__ import annotations

import pytest

from schemas.plan import NO_FOLDER, NOT_LOCAL
from schemas.records import FetchedObject, LocalMap, Plan, Rejected, Validators
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
