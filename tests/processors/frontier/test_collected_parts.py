"""Parts of another Gatherer's database that are not found: each has many summaries, and one refresh must not remove them."""

from __future__ import annotations

import pytest

from schemas.records import FetchedObject, FetchRequest, Record
from tests.processors.frontier.conftest import SITE, Partition, requests

LISTING = f"{SITE}gatherer/soif/"
PARTS = [f"{LISTING}{number}" for number in range(16)]


def collect(partition: Partition, run: str, missing: str = "", accept: int = 0) -> list[Record]:
    """Return the outputs of the answers of a run, in which one URL is not found; the first run finds all."""
    given = partition.seed(run=run, url=LISTING, depth=1, accept=accept)
    waiting = requests(partition.resolve(given) if run == "1" else given)
    outputs: list[Record] = []
    while waiting:
        request = waiting.pop(0)
        answered = answer(partition, request, missing)
        outputs += answered
        waiting += requests(answered)
    return outputs


def answer(partition: Partition, request: FetchRequest, missing: str) -> list[Record]:
    """Return the outputs of an answer, and of the links of the listing."""
    if request.url == missing:
        return partition.answer(request, "gone", reason="status 404")
    found = partition.answer(request)
    return found + partition.link(request, *PARTS) if request.url == LISTING else found


def removed(given: list[Record]) -> set[str]:
    """Return the URLs that are removed."""
    return {each.url for each in given if isinstance(each, FetchedObject) and each.outcome == "gone"}


@pytest.mark.parametrize("missing", [LISTING, PARTS[3]])
def test_part_that_is_not_found_is_held(partition: Partition, missing: str) -> None:
    """A status 404 in the place of a part, or of the listing, removes nothing, and is shown as a removal in doubt."""
    collect(partition, "1")
    assert removed(collect(partition, "2", missing)) == set()
    row = partition.state(missing)
    assert row is not None
    assert row.held
    collect(partition, "3")
    row = partition.state(missing)
    assert row is not None
    assert not row.held
    assert row.state == "ok"


def test_part_that_is_not_found_is_removed_if_removals_are_accepted(partition: Partition) -> None:
    """A run that accepts removals removes what a part had."""
    collect(partition, "1")
    assert removed(collect(partition, "2", PARTS[3], accept=partition.now)) == {PARTS[3]}
