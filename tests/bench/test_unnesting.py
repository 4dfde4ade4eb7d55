from __future__ import annotations

import os
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from processors.essence import walk
from schemas.records import Summary
from tests.bench import corpora, huge, nested, steps, summaries
from tests.bench.memory import Sampled


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Thirty small files, ten of them compressed."""
    return corpora.synthetic(tmp_path / "files", 30)


def test_all_contenders_read_the_same_bytes(files: Path, tmp_path: Path) -> None:
    """libarchive, the readers and the walk read every member, nested ones included, with the same bytes."""
    packed = nested.pack(corpora.found([files]), tmp_path / "nested.tar.gz")
    assert (packed.files, packed.compressed) == (30, 10)
    found = {one.name: one.read(packed.path) for one in nested.CONTENDERS}
    assert len(set(found.values())) == 1, found
    assert found["walk"].members == packed.files + 1
    assert found["walk"].size > packed.size


def test_generated_archive_is_a_valid_tar_gz(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The generated archive is one valid tar.gz with members of both sizes, far smaller than its content."""
    monkeypatch.setattr(huge, "EACH", 2)
    made = huge.make(tmp_path / "made.tar.gz", huge.LARGE + 3 * huge.SMALL)
    with tarfile.open(made.path) as archive:
        sizes = [len(body.read()) for one in archive if (body := archive.extractfile(one))]
    assert sizes == [huge.SMALL, huge.SMALL, huge.LARGE, huge.SMALL]
    assert (made.members, made.size) == (4, sum(sizes))
    assert made.packed == made.path.stat().st_size < made.size / 20


def test_anonymous_files_count_once_as_memory() -> None:
    """Peak memory includes anonymous files, each once, however many descriptors it has."""
    held = os.memfd_create("held")
    again = os.dup(held)
    try:
        before = huge.anonymous(os.getpid())
        os.write(held, bytes(8 << 20))
        assert huge.anonymous(os.getpid()) - before == 8 << 20
        with Sampled(os.getpid(), lambda _: 1 << 40) as sampled:
            while not sampled.peak:
                time.sleep(0.01)
        assert sampled.peak > 1 << 40
    finally:
        os.close(held)
        os.close(again)


def test_nested_steps_count_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a step calls another one, only the inner clock runs; the time of a consumer of members does not count as unnesting."""
    now = [0]
    monkeypatch.setattr(time, "process_time_ns", lambda: now[0])

    def work(units: int) -> None:
        now[0] += units

    clocks = steps.Clocks()
    inner = clocks.function("unnest", lambda: work(3))

    def outer() -> None:
        work(10)
        inner()
        work(20)

    clocks.function("summarize", outer)()

    def members() -> Iterator[int]:
        for number in range(2):
            work(100)
            yield number

    for _ in clocks.iterator("unnest", members)():
        work(1_000)
    clocks.enter(steps.OUTSIDE)
    spent = {"summarize": 30, "unnest": 203, "recognize": 0, "select": 0, steps.OUTSIDE: 2_000, steps.REST: 0}
    assert clocks.spent == spent


def test_clocks_do_not_change_results(files: Path) -> None:
    """The result is the same with clocks and without; afterwards the processors are unchanged."""
    before = dict(vars(walk))
    with_clocks, without = steps.split([os.fsencode(files)]), steps.split([os.fsencode(files)], plainly=True)
    assert (with_clocks.files, with_clocks.size, with_clocks.summaries) == (30, without.size, without.summaries)
    assert all(with_clocks.steps[step] > 0 for step in steps.STEPS)
    assert not any(without.steps[step] for step in steps.STEPS)
    assert vars(walk) == before


def test_containers_are_left_out_of_the_ratio(tmp_path: Path) -> None:
    """Links, containers and entries of a list are left out of the ratio; a compressed file counts with its uncompressed size."""
    page = corpora.synthetic(tmp_path / "files", 2) / "part-0" / "1.1.gz"

    def summary(kind: str, **attributes: tuple[str, ...]) -> Summary:
        url = f"file://{page}"
        return Summary(
            oid="0" * 64, url=url, object_url=url, gatherer="bench", version=1, time=1, type=kind, size=7, attributes=attributes
        )

    others = [summary("SymbolicLink"), summary("Tar", **{"member-count": ("2",)}), summary("BibTeX", source=("file:///list",))]
    found = summaries.by_type([*others, summary("ManPage", encoding=("gzip",)), summary("ManPage")])
    assert set(found) == {"ManPage"}
    assert found["ManPage"].files == 2
    assert found["ManPage"].source > page.stat().st_size + 7
