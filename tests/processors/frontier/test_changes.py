"""Changes on this machine that a watcher reports: what is known is requested alone, and none is lost to a request in flight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from processors.identity import frontier_key, url_digest
from schemas.records import CrawlEvent, FetchedObject, FetchRequest, Link, LinkKind, Record, Root, Span, Validators
from tests.processors.frontier.conftest import Partition, requests

FOLDER = "file:///tree/"
FILE = f"{FOLDER}a.txt"
DAY = 86_400_000
SEEN = Validators(md5="1", size=1, mtime=5, inode=7, ctime=5)


def changed(partition: Partition, *urls: str, offset: int = 0) -> list[FetchRequest]:
    """Report changes of objects of one folder, and return the requests that this causes."""
    links = tuple(Link(url=url, kind="file") for url in urls)
    event = CrawlEvent(kind="changed", host=frontier_key(urls[0]), time=partition.now, links=links)
    return requests(partition.give(event, offset=offset))


def listing(partition: Partition, urls: Sequence[str], kind: LinkKind = "file", **data: Any) -> list[Record]:
    """Report a listing of the folder with these children."""
    links = tuple(Link(url=url, kind=kind, **data) for url in sorted(urls, key=url_digest))
    span, root = Span(low=b"", high=b"\xff" * 16), Root(url=FOLDER, run="1", depth=-1, urls=0)
    return partition.give(
        CrawlEvent(kind="discovered", host=FOLDER, time=partition.now, url=FOLDER, root=root, links=links, span=span)
    )


def gathered(partition: Partition, *urls: str) -> None:
    """Gather a folder with these files."""
    (folder,) = requests(partition.seed(url=FOLDER, host="", depth=-1, urls=0))
    partition.answer(folder, listing=True, validators=SEEN)
    for each in requests(listing(partition, urls, size=1, mtime=5, inode=7, ctime=5)):
        partition.answer(each, validators=SEEN)


def test_changed_file_is_requested_alone(partition: Partition) -> None:
    """Of a gathered folder the changed file is requested, with the validators of its last answer, and nothing else."""
    gathered(partition, FILE, f"{FOLDER}b.txt")
    (request,) = changed(partition, FILE)
    assert (request.url, request.validators) == (FILE, SEEN)


def test_unknown_path_causes_no_request(partition: Partition) -> None:
    """A path that no listing has admitted is left to the listing of its folder, so that selection and limits hold."""
    gathered(partition, FILE)
    assert changed(partition, f"{FOLDER}new.txt") == []


def test_changed_folder_is_listed(partition: Partition) -> None:
    """A changed folder is requested, and its subfolders are not."""
    gathered(partition, FILE)
    (sub,) = requests(listing(partition, [f"{FOLDER}sub/"], "folder"))
    partition.answer(sub, listing=True, validators=SEEN)
    assert [each.url for each in changed(partition, FOLDER)] == [FOLDER]
    assert requests(listing(partition, [f"{FOLDER}sub/"], "folder")) == []


@pytest.mark.parametrize("outcome", ["fetched", "unchanged", "gone", "failed"])
def test_change_during_a_request_is_requested_after_it(partition: Partition, outcome: str) -> None:
    """What changes while a request is in flight is requested once more after the answer, whatever that is; then no more."""
    gathered(partition, FILE)
    (first,) = changed(partition, FILE)
    assert changed(partition, FILE) == changed(partition, FILE) == []
    (again,) = requests(partition.answer(first, outcome, reason="no such file", validators=SEEN))
    assert (again.url, again.version > first.version) == (FILE, True)
    assert requests(partition.answer(again, "unchanged", validators=SEEN)) == []


def test_run_during_a_request_repeats_it_after_the_answer(partition: Partition) -> None:
    """A file or folder that is being read when another run of its root begins is read once more, since it may have changed."""
    gathered(partition, FILE)
    changed(partition, FOLDER)
    (first,) = changed(partition, FILE)
    assert requests(partition.seed(url=FOLDER, host="", depth=-1, urls=0, run="2")) == []
    (again,) = requests(partition.answer(first, validators=SEEN))
    assert (again.url, requests(partition.answer(again, "unchanged", validators=SEEN))) == (FILE, [])


def test_redelivered_change_repeats_its_request(partition: Partition) -> None:
    """A change that is delivered again gives the same request again, and so does an answer that caused one."""
    gathered(partition, FILE)
    made = changed(partition, FILE)
    assert changed(partition, FILE, offset=partition.offset) == made
    assert changed(partition, FILE) == []
    later = partition.answer(made[0], "failed", reason="I/O error", retryable=True)
    assert requests(later)
    assert partition.answer(made[0], "failed", reason="I/O error", retryable=True, offset=partition.offset) == later


def test_change_below_paused_roots_is_not_requested() -> None:
    """What only paused roots ask for is not visited when it changes."""
    partition = Partition(paused=(FOLDER,))
    gathered(partition, FILE)
    assert changed(partition, FILE) == []


def test_listing_that_states_a_later_change_repeats_a_request(partition: Partition) -> None:
    """A child in flight whose listing states a change after its request is requested again; one with an earlier change is not."""
    gathered(partition, FILE)
    (first,) = changed(partition, FILE)
    assert requests(listing(partition, [FILE], size=2, mtime=9, inode=7, ctime=9)) == []
    assert requests(partition.answer(first, validators=SEEN)) == []
    (second,) = changed(partition, FILE)
    listing(partition, [FILE], size=3, mtime=9, inode=7, ctime=(second.version + 10) * 1_000_000)
    assert [each.url for each in requests(partition.answer(second, validators=SEEN))] == [FILE]


def test_missing_child_that_is_listed_again_is_requested(partition: Partition) -> None:
    """A file that its request found missing, and that a later listing of the same run has, is requested."""
    gathered(partition, FILE)
    (request,) = changed(partition, FILE)
    partition.answer(request, "gone", reason="no such file or folder")
    assert [each.url for each in requests(listing(partition, [FILE], size=1, mtime=5, inode=8, ctime=5))] == [FILE]


def test_root_that_is_gone_and_comes_back_is_requested(partition: Partition) -> None:
    """A root that was removed as missing is requested when it comes back."""
    file = "file:///tree/alone.txt"
    (request,) = requests(partition.seed(url=file, host="", depth=-1, urls=0, accept=DAY))
    partition.answer(request, "gone", reason="no such file or folder")
    assert [each.url for each in changed(partition, file)] == [file]


def test_losses_of_other_days_do_not_add_up(partition: Partition) -> None:
    """A third of a root may vanish each day of a service, which has one run; two thirds on one day are held."""
    names = [f"{FOLDER}{number:02}.txt" for number in range(60)]
    gathered(partition, *names)
    assert len(removals(listing(partition, names[20:], size=1, mtime=5, inode=7, ctime=5))) == 20
    partition.now += DAY + 1
    assert len(removals(listing(partition, names[39:], size=1, mtime=5, inode=7, ctime=5))) == 19
    assert removals(listing(partition, names[58:], size=1, mtime=5, inode=7, ctime=5)) == []


def removals(given: list[Record]) -> list[FetchedObject]:
    """Return the removals among outputs."""
    return [each for each in given if isinstance(each, FetchedObject) and each.outcome == "gone"]
