"""Requests that wait in no queue, of files and of mapped URLs: a redelivered event repeats them, since nothing else would."""

from __future__ import annotations

from collections.abc import Sequence

from processors.identity import url_digest
from schemas.records import CrawlEvent, FetchRequest, Link, Root, Span
from tests.processors.frontier.conftest import Partition, requests

FOLDER = "file:///tree/"


def listed(partition: Partition, run: str, names: Sequence[str]) -> list[FetchRequest]:
    """Return the requests that a listing of folders causes."""
    links = tuple(Link(url=url, kind="folder") for url in sorted(names, key=url_digest))
    span, root = Span(low=b"", high=b"\xff" * 16), Root(url=FOLDER, run=run)
    event = CrawlEvent(kind="discovered", host=FOLDER, time=partition.now, url=FOLDER, root=root, links=links, span=span)
    return requests(partition.give(event))


def test_start_of_a_run_is_repeated_whatever_was_found_since() -> None:
    """A run begins in parts; a folder found since, which comes first in their order, leaves no request of the part out."""
    partition = Partition(part=2)
    (page,) = requests(partition.seed(url=FOLDER, host=""))
    partition.answer(page)
    first, *others = sorted((f"{FOLDER}{number}/" for number in range(6)), key=url_digest)
    for each in listed(partition, "1", others):
        partition.answer(each)
    made = requests(partition.seed(url=FOLDER, run="2", host=""))
    at = partition.offset
    assert [each.url for each in made] == [FOLDER, others[0]]
    listed(partition, "2", [first, *others])
    again = requests(partition.seed(url=FOLDER, run="2", host="", offset=at))
    assert sorted(again, key=lambda each: each.url) == sorted(made, key=lambda each: each.url)
