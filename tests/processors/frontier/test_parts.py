"""Parts of another Gatherer's database: when they are requested as a whole, and when their changes alone."""

from __future__ import annotations

import pytest

from processors.collector import CHANGED
from processors.frontier.settings import FrontierSettings
from schemas.records import OTHER_BASE, UNUSED, CrawlEvent, FetchRequest, Root, Validators
from tests.processors.frontier.conftest import Partition, requests

LIST = "http://source.test/gatherer/soif/"
PART = f"{LIST}3"


WHOLE = FrontierSettings().whole_every


def mark(number: int) -> Validators:
    """Return the validators of a part at a mark."""
    return Validators(etag=f'"e-{number}"', md5="", size=9)


def run_again(partition: Partition, number: int) -> FetchRequest:
    """Return the request for the part in a further run, in which the listing has not changed."""
    given = partition.seed(url=LIST, run=str(number))
    if any(each.kind == "resolve" for each in requests(given)):
        given = partition.resolve(given)
    return next(each for each in requests(given) if each.url == PART)


def unused(part: FetchRequest) -> CrawlEvent:
    """Return the event for a stream that was not used."""
    return CrawlEvent(
        kind="failed", host=part.host, time=1, url=part.url, version=part.version, root=part.root, depth=1, reason=UNUSED
    )


@pytest.fixture
def part(partition: Partition) -> FetchRequest:
    """The first request for a part."""
    (listing,) = requests(partition.resolve(partition.seed(url=LIST)))
    partition.answer(listing, validators=mark(0))
    (found,) = requests(partition.link(listing, PART))
    return found


def test_changes_are_requested_after_the_whole(partition: Partition, part: FetchRequest) -> None:
    """The first request is unconditional; later ones have the validators of the last answer, whole or changes."""
    assert part.validators is None
    partition.answer(part, validators=mark(1))
    second = run_again(partition, 2)
    assert second.validators == mark(1)
    partition.answer(second, validators=mark(2), status=CHANGED)
    assert run_again(partition, 3).validators == mark(2)


def test_whole_is_requested_every_four_weeks(partition: Partition, part: FetchRequest) -> None:
    """Changes do not put it off, and after it changes are requested again."""
    partition.answer(part, validators=mark(1))
    partition.now += WHOLE // 2
    partition.answer(run_again(partition, 2), validators=mark(2), status=CHANGED)
    partition.now += WHOLE // 2 + 1
    whole = run_again(partition, 3)
    assert whole.validators is None
    partition.answer(whole, validators=mark(3))
    assert run_again(partition, 4).validators == mark(3)


def test_changes_without_a_whole_are_not_trusted(partition: Partition, part: FetchRequest) -> None:
    """Where no whole answer is known, as in a row of an earlier version, the next request is unconditional."""
    partition.answer(part, validators=mark(1), status=CHANGED)
    assert run_again(partition, 2).validators is None


@pytest.mark.parametrize("early", [False, True])
def test_unused_stream_is_requested_as_a_whole(partition: Partition, part: FetchRequest, early: bool) -> None:
    """The mark of changes that became no summaries is not sent again, in whatever order both events arrive."""
    partition.answer(part, validators=mark(1))
    second = run_again(partition, 2)
    if early:
        partition.give(unused(second))
        (third,) = requests(partition.answer(second, validators=mark(2), status=CHANGED))
    else:
        partition.answer(second, validators=mark(2), status=CHANGED)
        partition.give(unused(second))
        third = run_again(partition, 3)
    assert third.validators is None
    partition.answer(third, validators=mark(3))
    assert run_again(partition, 4).validators == mark(3)


def test_unused_stream_while_the_next_is_in_flight(partition: Partition, part: FetchRequest) -> None:
    """Changes that follow unused ones do not replace them: the whole is requested once they are answered."""
    partition.answer(part, validators=mark(1))
    second = run_again(partition, 2)
    partition.answer(second, validators=mark(2), status=CHANGED)
    third = run_again(partition, 3)
    assert third.validators == mark(2)
    partition.give(unused(second))
    (fourth,) = requests(partition.answer(third, validators=mark(3), status=CHANGED))
    assert fourth.validators is None


def test_changes_of_another_base_are_requested_as_a_whole(partition: Partition, part: FetchRequest) -> None:
    """The next try is unconditional, in this run or, after the last try, in the next one."""
    partition.answer(part, validators=mark(1))
    second = run_again(partition, 2)
    partition.answer(second, "failed", reason=OTHER_BASE, retryable=True)
    (third,) = requests(partition.tick(partition.now + 60_000))
    assert (third.url, third.validators) == (PART, None)


def test_two_answers_to_one_request(partition: Partition, part: FetchRequest) -> None:
    """A second answer that differs makes the next request unconditional: the order of both streams elsewhere is unknown."""
    partition.answer(part, validators=mark(1))
    second = run_again(partition, 2)
    partition.answer(second, validators=mark(2), status=CHANGED)
    partition.answer(second, validators=mark(2), status=CHANGED, offset=partition.offset)
    third = run_again(partition, 3)
    assert third.validators == mark(2)
    partition.answer(third, validators=mark(3), status=CHANGED)
    partition.answer(third, validators=mark(4), status=CHANGED)
    assert run_again(partition, 4).validators is None


def test_part_that_was_fetched_for_another_root(partition: Partition, part: FetchRequest) -> None:
    """What a root that is no listing of parts fetched became a document: changes of it are not requested."""
    partition.answer(part, validators=mark(1))
    second = run_again(partition, 2)
    other = CrawlEvent(
        kind="fetched",
        host=second.host,
        time=partition.now,
        url=PART,
        version=second.version,
        root=Root(url="http://source.test/", run="2"),
        validators=mark(2),
    )
    partition.give(other)
    assert run_again(partition, 3).validators is None
