"""Trimming and compaction of a data folder, and paused roots."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from processors.frontier.settings import FrontierSettings
from processors.frontier.stage import deadline, frontier
from processors.identity import frontier_key
from schemas.ports import Origin
from schemas.records import CrawlEvent, FetchRequest, Link, Record, Root, Tick, Validators
from streams.cli.wiring import embedded_settings
from streams.config.settings import load
from streams.embedded import Embedded, upkeep
from streams.simulator import MemoryRows

DAY = 86_400_000


def held(folder: Path) -> set[str]:
    """The names of the bodies in the blob store of a data folder."""
    return {path.name for path in (folder / "blobs").glob("??/*") if path.parent.name != "new"}


@pytest.fixture
def kept(harvest: Any, tree: Path, tmp_path: Path) -> Callable[[float], dict[str, int]]:
    """A function that runs the upkeep of a gathered tree, with a retention in seconds; it returns the records left by topic."""
    (tree / "large.txt").write_text("A whale of a file.\n" * 10_000)
    harvest("gather", tree, "--quiet")

    def look_after(retention: float) -> dict[str, int]:
        async def main() -> dict[str, int]:
            async with Embedded(tmp_path / "harvest-data", embedded_settings(load()), print) as runner:
                upkeep.upkeep(runner, retention)
                return {name: topic.records for name, topic in runner.store.stats().topics.items()}

        return asyncio.run(main())

    return look_after


def test_records_younger_than_the_retention_stay(kept: Callable[[float], dict[str, int]], tmp_path: Path) -> None:
    """Records younger than the retention stay, with their bodies."""
    left = kept(7 * 86_400)
    assert all(left[topic] for topic in ("crawl", "fetches", "objects", "made", "summaries"))
    assert len(held(tmp_path / "harvest-data")) == 1


def test_old_records_read_by_all_stages_are_removed(kept: Callable[[float], dict[str, int]], tmp_path: Path, harvest: Any) -> None:
    """Old records that all stages have read are removed with their bodies; compacted topics stay, and the next run works."""
    time.sleep(0.01)
    folder = tmp_path / "harvest-data"
    (body,) = (path for path in (folder / "blobs").glob("??/*") if path.parent.name != "new")
    old = time.time() - 2 * 3600
    os.utime(body, (old, old))
    left = kept(0)
    assert not any(left[topic] for topic in ("fetches", "objects", "made", "holders.main"))
    assert left["summaries"] == 4
    assert not held(folder)
    (table,) = harvest.lines("gather", tmp_path / "tree")
    assert table["nothing_changed"]
    assert len(harvest.lines("search", "*", "--copies")) == 4


def test_old_rejections_stay(kept: Callable[[float], dict[str, int]], tmp_path: Path, harvest: Any) -> None:
    """An old rejection of a file that is not fetched again stays."""
    (tmp_path / "tree" / "bad.gz").write_bytes(b"\x1f\x8b\x08\x00 this is no gzip")
    harvest("gather", tmp_path / "tree")
    time.sleep(0.01)
    kept(0)
    assert len(harvest.lines("rejected", "list")) == 1


def test_topic_is_compacted_after_growing_by_half(
    kept: Callable[[float], dict[str, int]], tmp_path: Path, harvest: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A topic is compacted once it has grown by half since its first measurement, down to the latest record of each key."""
    monkeypatch.setattr(upkeep, "GROWN", 1)
    left = [kept(7 * 86_400)["broker.main"]]
    for number in range(4):
        (tmp_path / "tree" / "large.txt").write_text(f"A whale of a file, {number}.\n" * 10_000)
        harvest("gather", tmp_path / "tree", "--quiet")
        left.append(kept(7 * 86_400)["broker.main"])
    assert left[0] > 4
    assert left[1] == left[0] + 1
    assert 4 in left


def test_paused_roots_are_not_refreshed() -> None:
    """A tick postpones URLs that only paused roots need; they are fetched again if resumed or needed by another root."""
    rows, root = MemoryRows(), Root(url="file:///a/", run="1", refresh=1)
    host, number = frontier_key(root.url), iter(range(1_000))

    def give(record: CrawlEvent | Tick, *, paused: tuple[str, ...] = (root.url,)) -> list[Record]:
        topic = "frontier.ticks" if isinstance(record, Tick) else "crawl"
        return list(frontier(rows, record, Origin(topic, 0, next(number)), FrontierSettings(paused=paused)))

    link = Link(url=root.url, kind="folder")
    (request,) = give(CrawlEvent(kind="seeded", host=host, time=1, url=root.url, root=root, links=(link,)))
    assert isinstance(request, FetchRequest)
    done = CrawlEvent(
        kind="fetched", host=host, time=2, url=root.url, version=request.version, root=root, listing=True, validators=Validators()
    )
    assert not give(done)
    assert not give(Tick(time=DAY))
    assert (deadline(rows) or 0) > DAY
    (again,) = give(Tick(time=2 * DAY), paused=())
    assert isinstance(again, FetchRequest)
    assert again.url == root.url


def test_root_paused_by_event_is_fetched_only_on_request() -> None:
    """A root paused by an event is not refreshed by ticks, only fetched when requested, until an event resumes it."""
    rows, root, other = MemoryRows(), Root(url="file:///a/", run="1", refresh=1), Root(url="file:///b/", run="1", refresh=1)
    number = iter(range(1_000))

    def give(record: CrawlEvent | Tick) -> list[str]:
        topic = "frontier.ticks" if isinstance(record, Tick) else "crawl"
        given = frontier(rows, record, Origin(topic, 0, next(number)), FrontierSettings())
        asked = [one for one in given if isinstance(one, FetchRequest)]
        for one in asked:
            fetched = CrawlEvent(kind="fetched", host=one.host, time=one.time, url=one.url, version=one.version, root=one.root)
            assert not give(msgspec.structs.replace(fetched, listing=True, validators=Validators()))
        return [one.url for one in asked]

    def said(kind: str, of: Root, time: int) -> list[str]:
        links = (Link(url=of.url, kind="folder"),) if kind == "seeded" else ()
        host = frontier_key(of.url)
        return give(CrawlEvent(kind=kind, host=host, time=time, url=of.url, root=of, links=links))  # type: ignore[arg-type]

    assert said("seeded", root, 1) + said("seeded", other, 1) == [root.url, other.url]
    assert said("paused", root, 2) + said("paused", root, 3) == []
    assert give(Tick(time=DAY)) == [other.url]
    assert said("seeded", msgspec.structs.replace(root, run="2"), DAY + 1) == [root.url]
    assert give(Tick(time=2 * DAY)) == [other.url]
    assert said("resumed", root, 2 * DAY + 1) == []
    assert sorted(give(Tick(time=3 * DAY))) == [root.url, other.url]
    said("paused", root, 3 * DAY + 1)
    said("unseeded", msgspec.structs.replace(root, run="3"), 3 * DAY + 2)
    assert said("seeded", msgspec.structs.replace(root, run="4"), 3 * DAY + 3) == [root.url]
    assert sorted(give(Tick(time=4 * DAY))) == [root.url, other.url]
