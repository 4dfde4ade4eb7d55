"""Counting of a Broker's words from its archive, and the statistics of other gateways that are kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from processors.broker.definition import Broker
from processors.query import parse
from schemas.records import Removed, Summary
from streams.config.settings import load
from streams.fetch.settings import FetchSettings
from streams.logs import StoreLog
from streams.routing import counting
from streams.routing.counting import count_words
from streams.routing.local import LocalBrokers
from streams.routing.remote import ELSEWHERE
from streams.routing.search import Options, routed_search
from streams.store import Store
from tests.sinks.gateway.doubles import summary
from tests.streams.routing.gateways import Good, served


def removed(each: Summary) -> Removed:
    """Return the removal of a summary."""
    return Removed(oid=each.oid, url=each.url, object_url=each.object_url, version=3, time=3, reason="gone", published=3)


@pytest.mark.parametrize("chunk", [1, 3, 7, 500])
def test_words_of_the_newest_version_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    """Older versions and removed summaries do not count, whatever is read at once and however many partitions there are."""
    monkeypatch.setattr(counting, "CHUNK", chunk)
    first = [summary(f"http://h/{at}", partial_text=f"old w{at}x") for at in range(20)]
    later = [replace(each, published=2, attributes={"partial-text": ("new",)}) for each in first[::2]]
    gone = [removed(each) for each in first[::4]]
    with StoreLog(Store(tmp_path, {"broker.main": 3})) as log:
        for records in (first, later, gone):
            log.append("broker.main", [(each.oid.encode(), each) for each in records])
        found = count_words(log, Broker())
    assert (found.statistics.summaries, sum(found.ends)) == (15, 35)
    assert (found.statistics.frequencies["old"], found.statistics.frequencies["new"]) == (10, 5)
    assert [found.statistics.frequency([f"w{at}x"]) for at in (0, 1, 2)] == [0, 1, 0]


class Marked(Good):
    """A gateway that states the mark of its statistics, and counts how often they are asked for."""

    mark, statistics_asked = "one", 0

    def listed(self) -> bytes | Iterator[bytes]:
        return f'{{"brokers": [{{"name": "{self.name}", "mark": "{self.mark}"}}]}}'.encode()

    def statistics(self) -> bytes | Iterator[bytes]:
        self.statistics_asked += 1
        return super().statistics()


def test_statistics_of_a_gateway_are_asked_for_once_for_each_mark(tmp_path: Path) -> None:
    """Statistics with a known mark are not requested again; damaged ones of the data folder are."""
    gateway = Marked("sea", [summary("http://h/1", title="whale")])
    with served(gateway) as url, StoreLog(Store(tmp_path, {"broker.main": 1})) as log:
        local = LocalBrokers(load({"data": str(tmp_path)}, environ={}), lambda: log, [])
        options = Options((url,), deadline=30.0, fetch=FetchSettings(allow=("127.0.0.0/8",)), data=tmp_path)

        def asked() -> int:
            assert routed_search(local, options, parse("whale"), 1).least == 1
            return gateway.statistics_asked

        assert [asked(), asked()] == [1, 1]
        gateway.mark = "two"
        assert [asked(), asked()] == [2, 2]
        for path in (tmp_path / ELSEWHERE).iterdir():
            path.write_bytes(b"damaged")
        assert asked() == 3
