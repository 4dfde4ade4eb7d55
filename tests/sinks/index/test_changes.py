"""Selection of the changes to apply from a batch of records."""

from __future__ import annotations

import pytest

from schemas.codec import encode
from schemas.ports import Logged
from schemas.records import Record, Removed, Summary
from streams.operations.index_changes import newest_changes


def summary(title: str, published: int) -> Summary:
    """Return a summary of one fixed object."""
    said = {"title": (title,)}
    return Summary(
        oid="o", url="u", object_url="u", gatherer="g", version=1, time=1, type="T", published=published, attributes=said
    )


GONE = Removed(oid="o", url="u", object_url="u", version=2, time=2, reason="gone", published=7)
NEW, OLD, SAME = summary("new", 6), summary("old", 5), summary("same", 6)


def batch(records: list[Record | None]) -> list[Logged]:
    """Return a batch; None stands for an undecodable record."""
    values = [b"junk" if record is None else encode(record) for record in records]
    return [Logged("broker.main", 0, offset, 1, b"o", value) for offset, value in enumerate(values)]


@pytest.mark.parametrize(
    ("records", "applied"),
    [([OLD, NEW], NEW), ([NEW, OLD], NEW), ([NEW, SAME, OLD], SAME), ([GONE, NEW], GONE), ([NEW, None, OLD], NEW)],
)
def test_highest_publish_counter_of_batch_wins(records: list[Record | None], applied: Record) -> None:
    """A batch has the effect of its records one by one: the highest publish counter wins, the last among equals."""
    changes, letters = newest_changes(batch(records), 1)
    assert changes == [applied]
    assert len(letters) == records.count(None)
