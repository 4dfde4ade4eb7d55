from __future__ import annotations

import asyncio
import dataclasses
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from processors.essence.stage import EssenceSettings
from processors.identity import file_url
from schemas.codec import decode, encode
from schemas.ports import Origin, Rows
from schemas.records import Complete, FetchedObject, Record, Rejected, Root, Summary
from streams.edges import work
from streams.embedded import Embedded, EmbeddedSettings, runs
from streams.fetch import FetchSettings
from streams.sandbox.task import Clock
from streams.sandbox.values import Crashed, Done, Outcome
from streams.store import Store
from tests.faults.check import check
from tests.faults.corpus import Corpus
from tests.faults.harness import GATHERER, MAX_FILE
from tests.faults.oracle import Oracle

GARBAGE = b"\xc3\x01 this is no record"


def gathered(data: Path, root: bytes, partitions: int, spoil: Callable[[Embedded], None]) -> list[str]:
    """Run once in this process, after `spoil`; return the logged lines."""
    logged: list[str] = []

    async def main() -> None:
        settings = EmbeddedSettings(
            partitions=partitions, essence=EssenceSettings(gatherer=GATHERER), fetch=FetchSettings(max_file=MAX_FILE)
        )
        async with Embedded(data, settings, logged.append) as runner:
            spoil(runner)
            begun = runs.begin(runner, [Root(url=file_url(root, folder=True), run="", depth=-1, urls=0)])
            await runner.run()
            runs.finish(runner, begun.run)

    asyncio.run(main())
    return logged


def letters(data: Path) -> list[Rejected]:
    """The dead letters that have a position in the log."""
    with Store(data, readonly=True) as store:
        everything = [r for p in range(store.topics()["rejected"]) for r in store.read("rejected", p, 0, 100_000)]
    found = [cast("Rejected", decode(r.value or b"")) for r in everything]
    return sorted((r for r in found if r.topic), key=lambda r: (r.topic, r.partition, r.offset))


@pytest.mark.slow
@pytest.mark.parametrize("partitions", [1, 4])
def test_damaged_record_becomes_a_dead_letter(tmp_path: Path, corpus: Corpus, oracle: Oracle, partitions: int) -> None:
    """A damaged record, or one on the wrong topic, becomes a dead letter with its bytes; nothing else is lost."""
    topics = ("annotations", "broker.main", "copies.main", "crawl", "fetches", "holders.main", "made", "objects")
    misplaced = encode(Complete(object_url="file:///x", version=1, time=1, attempt="", count=0))

    def spoil(runner: Embedded) -> None:
        with runner.store.transaction() as tx:
            for partition in range(partitions):
                for topic in topics:
                    tx.append(topic, partition, b"key", GARBAGE, 1)
                tx.append("crawl", partition, b"key", misplaced, 1)

    logged = gathered(tmp_path / "data", corpus.root, partitions, spoil)
    found = letters(tmp_path / "data")
    expected = [(t, p, 0, GARBAGE) for t in topics for p in range(partitions)] + [
        ("crawl", p, 1, misplaced) for p in range(partitions)
    ]
    assert [(r.topic, r.partition, r.offset, r.value) for r in found] == sorted(expected)
    assert all(r.key == b"key" and 0 < len(r.reason) <= 200 for r in found)
    assert logged
    check(tmp_path / "data", oracle)


@pytest.mark.slow
@pytest.mark.parametrize("partitions", [1, 4])
def test_record_of_a_raising_stage_becomes_a_dead_letter(tmp_path: Path, corpus: Corpus, oracle: Oracle, partitions: int) -> None:
    """If a stage raises, its changes for the record are undone, the record becomes a dead letter, and others are processed."""
    victim = file_url(os.path.join(corpus.root, b"large3.txt"))

    def spoil(runner: Embedded) -> None:
        for task in runner.turns.tasks:
            if task.stage.name == "catalog":
                task.stage = dataclasses.replace(task.stage, process=_raising(task.stage.process, victim))

    logged = gathered(tmp_path / "data", corpus.root, partitions, spoil)
    (letter,) = letters(tmp_path / "data")
    assert (letter.stage, letter.topic, letter.reason) == ("catalog", "made", "error in catalog: ZeroDivisionError")
    assert cast("Summary", decode(letter.value or b"")).url == victim
    assert "ZeroDivisionError" in logged[0]
    del oracle.objects[victim]
    check(tmp_path / "data", oracle)


def _raising(process: Callable[..., Iterator[Record]], victim: str) -> Callable[..., Iterator[Record]]:
    def raising(rows: Rows, record: Any, origin: Origin) -> Iterator[Record]:
        yield from process(rows, record, origin)
        if isinstance(record, Summary) and record.url == victim:
            rows.put(b"m|half", b"done")
            raise ZeroDivisionError("a bug")

    return raising


@pytest.mark.slow
def test_object_without_its_body_becomes_a_dead_letter(tmp_path: Path, corpus: Corpus, oracle: Oracle) -> None:
    """An object whose body is missing from the blob store becomes a dead letter, and the run continues."""
    lost = FetchedObject(url="file:///lost", version=1, time=1, outcome="fetched", blob="0" * 64, size=70_000)

    def spoil(runner: Embedded) -> None:
        runner.append({"objects": [(None, lost)]})

    gathered(tmp_path / "data", corpus.root, 1, spoil)
    (letter,) = letters(tmp_path / "data")
    assert (letter.topic, letter.offset) == ("objects", 0)
    assert decode(letter.value or b"") == lost
    assert (letter.url, letter.version, letter.reason) == (lost.url, 1, "its body is not in the blob store")
    oracle.refused.add(lost.url)
    check(tmp_path / "data", oracle)


def nonsense(on_frame: Callable[[bytes], None]) -> Outcome:
    """A child with overwritten memory: it sends invalid frames."""
    on_frame(b"\x09 nonsense")
    return Done()


def silence(on_frame: Callable[[bytes], None]) -> Outcome:
    """A child that ends normally without frames."""
    return Done()


def death(on_frame: Callable[[bytes], None]) -> Outcome:
    """A child that crashes, whatever it is asked to skip."""
    return Crashed(9, 0, "")


@pytest.mark.slow
@pytest.mark.parametrize("child", [nonsense, silence, death])
def test_object_that_fails_every_child_becomes_a_dead_letter(
    tmp_path: Path,
    corpus: Corpus,
    oracle: Oracle,
    child: Callable[[Callable[[bytes], None]], Outcome],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An object at which every child fails, even unopened, ends as a dead letter; all others are unaffected."""
    victim = file_url(os.path.join(corpus.root, b"large3.txt"))
    # Each object in a request of its own, so that a failing request affects no other object.
    monkeypatch.setattr(work, "ALONE", 0)

    def spoil(runner: Embedded) -> None:
        sound = runner.essence._pool.run

        async def run(request: bytes, body: int | None, on_frame: Callable[[bytes], None], clock: Clock | None = None) -> Outcome:
            return child(on_frame) if victim.encode() in request else await sound(request, body, on_frame, clock)

        runner.essence._pool.run = run  # type: ignore[method-assign,assignment]

    gathered(tmp_path / "data", corpus.root, 1, spoil)
    (letter,) = letters(tmp_path / "data")
    assert (letter.stage, letter.topic) == ("essence", "objects")
    assert cast("FetchedObject", decode(letter.value or b"")).url == letter.url == victim
    del oracle.objects[victim]
    oracle.refused.add(victim)
    check(tmp_path / "data", oracle)
