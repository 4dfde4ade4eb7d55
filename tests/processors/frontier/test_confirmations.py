"""What is unchanged goes on once a while, for Brokers with a time-to-live of their own."""

from __future__ import annotations

from typing import Any

from processors.identity import frontier_key
from schemas.records import CrawlEvent, FetchedObject, FetchRequest, Link, Record, Span, Validators
from tests.processors.frontier.conftest import SITE, Partition, requests

EVERY = 1_800_000
FOLDER = "file:///d/"
FILE = "file:///d/a.txt"
WAS = Validators(size=3, mtime=7, ctime=7, inode=5)


def confirmations(given: list[Record]) -> list[FetchedObject]:
    """Return the confirmations among outputs."""
    return [each for each in given if isinstance(each, FetchedObject) and each.outcome == "unchanged"]


def fetched(partition: Partition) -> FetchRequest:
    """Have a page requested and fetched; return its request."""
    (asked,) = requests(partition.resolve(partition.seed()))
    assert not confirmations(partition.answer(asked, validators=Validators(etag="a")))
    return asked


def unchanged(partition: Partition, run: str, after: int) -> tuple[FetchRequest, list[Record], int]:
    """Begin a run and have the page found unchanged; return the request, the outputs, and the offset of the answer."""
    partition.now += after
    (asked,) = requests(partition.seed(run=run))
    given = partition.answer(asked, "unchanged", validators=Validators(etag="a"))
    return asked, given, partition.offset


def test_an_unchanged_page_is_confirmed_once_the_time_has_passed() -> None:
    """A confirmation goes on under the version of the request, not before the time since the last one that went on has passed."""
    partition = Partition(confirm=EVERY)
    fetched(partition)
    assert not confirmations(unchanged(partition, "2", EVERY - 1)[1])
    asked, given, _ = unchanged(partition, "3", 1)
    (sent,) = confirmations(given)
    assert (sent.url, sent.version, sent.time, sent.body) == (SITE, asked.version, partition.now, None)
    assert not confirmations(unchanged(partition, "4", EVERY - 1)[1])
    assert confirmations(unchanged(partition, "5", 1)[1])


def test_nothing_goes_on_without_the_setting() -> None:
    """Without a Broker's time-to-live, an unchanged page ends in the frontier."""
    partition = Partition()
    fetched(partition)
    assert not confirmations(unchanged(partition, "2", 100 * EVERY)[1])
    state = partition.state(SITE)
    assert state is not None
    assert (state.passed, state.passed_by) == (0, 0)


def test_a_redelivered_answer_confirms_again_with_its_time() -> None:
    """A redelivered answer sends the same confirmation."""
    partition = Partition(confirm=EVERY)
    fetched(partition)
    asked, given, offset = unchanged(partition, "2", EVERY)
    partition.now += 5
    again = partition.answer(asked, "unchanged", offset=offset, validators=Validators(etag="a"))
    assert confirmations(again) == confirmations(given) != []


def listed(partition: Partition, asked: FetchRequest, *, offset: int = 0, mtime: int = 7) -> list[Record]:
    """Have a folder be listed with its one file."""
    event = CrawlEvent(
        kind="discovered",
        host=frontier_key(FILE),
        time=partition.now,
        url=FOLDER,
        root=asked.root,
        depth=asked.depth,
        version=asked.version,
        links=(Link(url=FILE, kind="file", size=3, mtime=mtime, ctime=7, inode=5),),
        span=Span(low=b"", high=b"\xff" * 17),
        coverage="complete",
    )
    return partition.give(event, offset=offset)


def gathered(partition: Partition) -> None:
    """Gather a folder with one file."""
    root: dict[str, Any] = {"url": FOLDER, "host": ""}
    (asked,) = requests(partition.seed(**root))
    partition.answer(asked, listing=True, validators=Validators(md5="l"))
    (file,) = requests(listed(partition, asked))
    partition.answer(file, validators=WAS)


def test_an_unchanged_file_is_confirmed_by_its_listing() -> None:
    """A listing that is due is requested as a whole, and confirms the file that it shows unchanged, again if it is redelivered."""
    partition = Partition(confirm=EVERY)
    gathered(partition)
    partition.now += EVERY - 1
    (asked,) = requests(partition.seed(run="2", url=FOLDER, host=""))
    assert asked.validators is not None
    assert not confirmations(partition.answer(asked, "unchanged", listing=True, validators=Validators(md5="l")))
    partition.now += 1
    (asked,) = requests(partition.seed(run="3", url=FOLDER, host=""))
    assert asked.validators is None
    partition.answer(asked, listing=True, validators=Validators(md5="l"))
    given = listed(partition, asked)
    file = partition.state(FILE)
    assert file is not None
    assert [(one.url, one.version, one.time) for one in confirmations(given)] == [(FILE, file.version, partition.now)]
    assert confirmations(listed(partition, asked, offset=partition.offset)) == confirmations(given)
    assert not confirmations(listed(partition, asked))


def test_a_changed_file_is_requested_and_not_confirmed() -> None:
    """A listing confirms no file that it shows with another time."""
    partition = Partition(confirm=EVERY)
    gathered(partition)
    partition.now += EVERY
    (asked,) = requests(partition.seed(run="2", url=FOLDER, host=""))
    partition.answer(asked, listing=True, validators=Validators(md5="l"))
    given = listed(partition, asked, mtime=8)
    assert [one.url for one in requests(given)] == [FILE]
    assert not confirmations(given)
