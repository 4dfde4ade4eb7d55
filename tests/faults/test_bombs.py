from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import threading
import time
from pathlib import Path

import pytest

from processors.identity import file_url
from schemas.records import Summary
from tests.faults.bombs import bombs, deep, leading_out, tarred
from tests.faults.check import Held
from tests.faults.corpus import Corpus
from tests.faults.harness import MAX_FILE, Run, gather
from tests.faults.oracle import Oracle

PEAK = re.compile(rb"VmHWM:\s+(\d+) kB")


class Watch(threading.Thread):
    """Measures the peak memory of any process of a run, in bytes."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        self.run_ = run
        self.peak = 0

    def run(self) -> None:
        while self.run_.process.poll() is None:
            for pid in (self.run_.process.pid, *self.run_.children()):
                try:
                    found = PEAK.search(Path(f"/proc/{pid}/status").read_bytes())
                except OSError:
                    continue
                self.peak = max(self.peak, int(found[1]) * 1024 if found else 0)
            threading.Event().wait(0.05)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """An empty tree."""
    (tmp_path / "tree").mkdir()
    return tmp_path / "tree"


def kept(held: Held, path: Path) -> dict[str, Summary]:
    """The summaries of an object by member path."""
    return {s.path: s for s in held.summaries.values() if s.object_url == file_url(os.fsencode(path))}


def used(folder: Path) -> int:
    """Total size of the files in a folder, in bytes."""
    return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())


@pytest.mark.slow
@pytest.mark.parametrize("partitions", [1, 4])
def test_bombs_are_rejected_at_low_cost(tmp_path: Path, tree: Path, partitions: int) -> None:
    """Every kind of bomb is rejected with its reason, costs neither memory nor disk, and does not affect other files."""
    for name, (data, _) in bombs().items():
        (tree / name).write_bytes(data)
    for number in range(20):
        (tree / f"sound{number}.txt").write_text(f"words number {number}\n")
    (tree / "deep.tar").write_bytes(deep(12))
    size = used(tree)
    run = Run(tmp_path / "data", os.fsencode(tree), partitions)
    watch = Watch(run)
    watch.start()
    ended = run.wait()
    watch.join()
    assert (ended.code, ended.errors) == (0, "")
    assert watch.peak < 400 << 20, watch.peak
    assert used(tmp_path / "data") < 3 * size + (16 << 20)
    held = Held(tmp_path / "data")
    for name, (_, why) in bombs().items():
        summary = kept(held, tree / name)[""]
        assert summary.type in ("Zip", "GNUCompressed", "XZ", "Tar"), name
        assert why in str(summary.attributes["reason"][0]), name
    assert sum(s.type == "RawText" and not s.path for s in held.summaries.values()) == 20
    assert {p.rpartition("#")[2] for p, s in kept(held, tree / "deep.tar").items() if s.type == "RawText"} == {
        f"{level}.txt" for level in range(4, 12)
    }
    rejected = {(s.object_url, s.path) for s in held.summaries.values() if "reason" in s.attributes}
    assert held.rejected == rejected
    assert all(0 < len(reason) <= 200 for _, reason, _ in held.reasons.values())
    assert {url for url, _ in rejected} == {file_url(os.fsencode(tree / name)) for name in (*bombs(), "deep.tar")}


@pytest.mark.slow
def test_names_and_links_outside_are_not_followed(tmp_path: Path, tree: Path) -> None:
    """Nothing is written to or read from the paths that names and links in an archive point to."""
    (tree / "out.tar").write_bytes(leading_out())
    os.symlink("/etc/passwd", tree / "passwd.txt")
    os.symlink("..", tree / "up")
    before = {p for p in tmp_path.rglob("*") if (tmp_path / "data") not in p.parents}
    assert gather(tmp_path / "data", os.fsencode(tree), 1).code == 0
    assert {p for p in tmp_path.rglob("*") if (tmp_path / "data") not in p.parents} == before | {tmp_path / "data"}
    held = Held(tmp_path / "data")
    found = {path: s.type for path, s in kept(held, tree / "out.tar").items()}
    assert found.pop("") == "Tar"
    # A hard link has the content of the member that it names, never of a file outside of the archive.
    assert ({path for path, kind in found.items() if kind == "SymbolicLink"}, found["hard"]) == ({"link"}, "RawText")
    assert len(found) == 8
    assert {s.type for s in held.summaries.values() if s.object_url.endswith(("passwd.txt", "/up"))} == {"SymbolicLink"}
    assert not held.rejected
    assert not any("root:" in str(s.attributes) for s in held.summaries.values())


PATIENT = """
from streams.sandbox.worker import Worker
tick = Worker.tick
Worker.tick = lambda self, s: tick(self, s if self.task and b"heavy" in self.task.request else s / 100)
"""
"""Slows the clock for all tasks but that of the heavy file: on a busy machine others may take longer than a second."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "value", "why"),
    [
        ("SANDBOX_WHOLE", "1.0", "timed out (whole)"),
        ("SANDBOX_TOTAL", "1500000", "too much output (total)"),
        ("SANDBOX_MEMORY", str(24 << 20), "HTML"),
    ],
)
def test_object_beyond_a_sandbox_limit_is_rejected(tmp_path: Path, tree: Path, setting: str, value: str, why: str) -> None:
    """An object that exceeds a limit of the sandbox is rejected with a reason; the file beside it is not."""
    rng = random.Random(8)
    texts = tarred((f"{n}.txt", rng.randbytes(4_000).hex().encode()) for n in range(3_000))
    pages = tarred([("page.html", b"<html><body>" + b"<div><p>words" * 900_000)])
    (tree / "heavy.tar").write_bytes(pages if why == "HTML" else texts)
    (tree / "sound.txt").write_text("words\n")
    limits = {"ESSENCE_LIMITS_ENTRIES": "5000", setting: value}
    assert Run(tmp_path / "data", os.fsencode(tree), 1, first=PATIENT, **limits).wait().code == 0
    held = Held(tmp_path / "data")
    assert kept(held, tree / "sound.txt")[""].type == "RawText"
    assert any(why in reason for _, reason, _ in held.reasons.values())
    assert {url for url, _ in held.rejected} == {file_url(os.fsencode(tree / "heavy.tar"))}
    assert held.rejected == {(s.object_url, s.path) for s in held.summaries.values() if "reason" in s.attributes}


def forked(run: Run) -> tuple[list[int], list[int]]:
    """The forkserver of a run, and the children that it has forked."""
    found = run.children()
    parents = {pid: _parent(pid) for pid in found}
    servers = [pid for pid, parent in parents.items() if parent == run.process.pid]
    return servers, [pid for pid, parent in parents.items() if parent in servers]


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


@pytest.mark.slow
@pytest.mark.parametrize("server", [False, True])
def test_killed_child_costs_one_path_at_most(tmp_path: Path, tree: Path, *, server: bool) -> None:
    """A killed child costs one path at most, with the reason; a killed forkserver costs none."""
    corpus = Corpus(os.fsencode(tree), 6, 1_500)
    corpus.build()
    oracle = Oracle(corpus.root, MAX_FILE)
    oracle.look()
    run, killed = Run(tmp_path / "data", corpus.root, 1), 0
    while run.process.poll() is None and killed < 3:
        victims = forked(run)[not server]
        if victims and forked(run)[1]:
            time.sleep(0.15)
            with contextlib.suppress(ProcessLookupError):
                os.kill(victims[0], signal.SIGKILL)
                killed += 1
        time.sleep(0.02)
    ended = run.wait()
    assert ended.code == 0, ended
    assert killed
    held = Held(tmp_path / "data")
    assert set(held.summaries) == set(oracle.things())
    more = held.rejected - oracle.rejected()
    assert len(more) <= (0 if server else killed)
    assert {held.reasons[origin][1] for origin in more} <= {"crashed: SIGKILL"}
