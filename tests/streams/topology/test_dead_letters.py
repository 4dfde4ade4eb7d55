"""Dead letters and their retry, on the log of a data folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from schemas.ports import Logged
from schemas.records import FetchedObject, Rejected
from streams.logs import StoreLog
from streams.operations.dead_letters import RETRIED, resolved_offsets, retry, standing
from streams.store import Store

URL = "http://h/a"


class FastLog(StoreLog):
    """A log whose readers answer a record that is put back before `write` returns."""

    def __init__(self, store: Store, answer: Callable[[], None]) -> None:
        super().__init__(store)
        self._answer = answer

    def write(self, records: Iterable[Logged], *, raw: bool = False) -> None:
        written = list(records)
        super().write(written, raw=raw)
        if written[0].topic == "objects":
            self._answer()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store with the topics that a retry reads and writes."""
    with Store(tmp_path, {"objects": 2, "rejected": 2, "crawl": 2, "made": 2}, runner=True) as made:
        yield made


def reject(store: Store, reason: str) -> None:
    """Append a dead letter of one origin, with the bytes that were rejected."""
    letter = Rejected(
        stage="essence", reason=reason, url=URL, version=1, time=1, topic="objects", partition=0, offset=0, key=b"k", value=b"v"
    )
    store.append("rejected", [(URL.encode(), letter)])


def test_retry_that_fails_at_once_is_not_hidden(store: Store) -> None:
    """A dead letter of a retry stays, though it was written before the retry was recorded; the next retry ends it."""
    reject(store, "first")
    (one,) = standing(StoreLog(store))
    assert retry(FastLog(store, lambda: reject(store, "again")), one)
    (one,) = standing(StoreLog(store))
    assert one.reason == "again"
    assert retry(StoreLog(store), one)
    assert standing(StoreLog(store)) == []


def test_retry_that_fails_at_once_survives_upkeep(store: Store) -> None:
    """What a failed retry left unresolved is not resolved for upkeep either."""
    reject(store, "first")
    (one,) = standing(StoreLog(store))
    retry(FastLog(store, lambda: reject(store, "again")), one)
    *_, spent = _drained(store)
    assert sorted(offset for offsets in spent.values() for offset in offsets) == [0, 2]


def test_a_confirmation_is_not_put_back_for_the_object(store: Store) -> None:
    """An object whose record was trimmed cannot be tried again, though its confirmation of the same version is still there."""
    store.append("objects", [(URL.encode(), FetchedObject(url=URL, version=1, time=2, outcome="unchanged"))])
    store.append("rejected", [(URL.encode(), Rejected(stage="essence", reason="crashed", url=URL, version=1, time=1))])
    (one,) = standing(StoreLog(store))
    assert not retry(StoreLog(store), one)
    assert standing(StoreLog(store)) == [one]


def test_retry_of_an_earlier_version_of_the_program_ends_all_before(store: Store) -> None:
    """A retry that was recorded without an offset ends every dead letter before it."""
    reject(store, "first")
    said = Rejected(stage="essence", reason=RETRIED, url=URL, version=1, time=1)
    store.append("rejected", [(URL.encode(), said)])
    assert standing(StoreLog(store)) == []


def _drained(store: Store) -> list[dict[int, list[int]]]:
    """The result of `resolved_offsets` with all dead letters old."""
    steps = resolved_offsets(StoreLog(store), 1 << 60)
    while True:
        try:
            next(steps)
        except StopIteration as ended:
            return [ended.value]
