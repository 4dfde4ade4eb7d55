from __future__ import annotations

import errno
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from streams.store import DiskFull, Offsets, Store, transaction

Run = Callable[..., subprocess.Popen[str]]
Open = Callable[..., Store]

BATCH = 20

RUNNER = f"""
import os
import sys
from pathlib import Path
from streams.store import Offsets, Store
with Store(Path(sys.argv[1]), {{"crawl": 4, "summaries": 1}}, runner=True) as store:
    while True:
        with store.transaction() as tx:
            rows = tx.rows("stage", 0)
            number = int(rows.get(b"last") or b"-1") + 1
            tx.unstage("object")
            for i in range({BATCH}):
                # Large, and not to be compressed, so that checkpoints of the WAL come within a few batches.
                tx.append("crawl", i % 4, b"%d" % number, b"%d|" % number + os.urandom(100_000), number)
                tx.stage("object", "summaries", 0, b"%d" % number, b"%d" % i, number)
                rows.put(b"%d|%d" % (number, i), b"x")
            tx.publish("object")
            tx.stage("later", "summaries", 0, b"never", b"never", number)
            tx.commit_offset("group", "crawl", 0, Offsets(number + 1))
            rows.put(b"last", b"%d" % number)
        print(number, flush=True)
"""


def consistent(folder: Path) -> int:
    """Return the number of complete batches in the store; assert that it contains nothing else."""
    with Store(folder, readonly=True) as store:
        rows = store.rows("stage", 0)
        batches = int((rows.get(b"last") if rows else None) or b"-1") + 1
        for partition in range(4):
            records = store.read("crawl", partition, 0, 100_000)
            assert [r.offset for r in records] == list(range(batches * BATCH // 4))
            assert [r.key for r in records] == [b"%d" % n for n in range(batches) for _ in range(BATCH // 4)]
        staged = [(r.offset, r.key, r.value) for r in store.read("summaries", 0, 0, 100_000)]
        assert staged == [(n * BATCH + i, b"%d" % n, b"%d" % i) for n in range(batches) for i in range(BATCH)]
        assert len(list(rows.scan(b"") if rows else [])) == batches * BATCH + bool(batches)
        assert store.offsets("group") == ({("crawl", 0): Offsets(batches)} if batches else {})
        return batches


def test_acknowledged_transactions_survive_a_kill(program: Run, folder: Path) -> None:
    """After a SIGKILL at any moment every acknowledged transaction is in the store, and none in part."""
    for acknowledgements in (1, 3, 9, 2, 12, 5, 1, 7):
        process = program(RUNNER)
        assert process.stdout
        last = [process.stdout.readline() for _ in range(acknowledgements)][-1]
        process.send_signal(signal.SIGKILL)
        # Not communicate(), which passes over the lines that are in the reader's buffer already.
        rest = process.stdout.read().split()
        process.communicate()
        assert consistent(folder) in {int(rest[-1] if rest else last) + 1, int(rest[-1] if rest else last) + 2}


@pytest.mark.parametrize(("point", "there"), [("log.write:4", 3), ("log.commit:4", 3), ("log.committed:4", 4)])
def test_kill_before_or_after_commit(program: Run, folder: Path, point: str, there: int) -> None:
    """A transaction killed before its COMMIT leaves no trace; one killed after it is complete, though not acknowledged."""
    # The first transaction creates the topics.
    process = program(RUNNER, fault=f"{point}:kill")
    assert process.communicate()[0].split() == ["0", "1"]
    assert process.returncode == -signal.SIGKILL
    assert consistent(folder) == there - 1


APPENDER = """
import sys
from pathlib import Path
from streams.store import Store
with Store(Path(sys.argv[1])) as store:
    print("ready", flush=True)
    sys.stdin.readline()
    for i in range(100):
        with store.transaction() as tx:
            for j in range(3):
                print(tx.append("crawl", 1, sys.argv[2].encode(), b"%d" % (i * 3 + j), i))
"""


def test_processes_append_concurrently(store: Store, program: Run) -> None:
    """Three processes append to one partition: offsets have no gaps or duplicates, and each process's records keep their order."""
    others = [program(APPENDER, name) for name in ("one", "two")]
    for process in others:
        assert process.stdout
        assert process.stdin
        assert process.stdout.readline() == "ready\n"
        process.stdin.write("go\n")
        process.stdin.flush()
    mine = []
    for i in range(300):
        with store.transaction() as tx:
            mine.append(tx.append("crawl", 1, b"mine", b"%d" % i, i))
    given = [[int(line) for line in process.communicate()[0].split()] for process in others]
    records = store.read("crawl", 1, 0, 10_000)
    assert [r.offset for r in records] == list(range(900)) == sorted(sum(given, mine))
    for name, offsets in ((b"mine", mine), (b"one", given[0]), (b"two", given[1])):
        assert [(r.offset, r.value) for r in records if r.key == name] == [(o, b"%d" % i) for i, o in enumerate(offsets)]


CREATOR = """
import sys
from pathlib import Path
from streams.store import Store
sys.stdin.readline()
with Store(Path(sys.argv[1]), {"t%d" % i: 1 for i in range(20)}) as store:
    store.append("t%s" % sys.argv[2], [(b"k", None)])
"""


def test_store_is_created_once_by_concurrent_processes(program: Run, opened: Open) -> None:
    """Several processes that create the same store at once create one, and lose no records."""
    creators = [program(CREATOR, str(i)) for i in range(4)]
    for process in creators:
        process.communicate("go\n")
        assert process.returncode == 0
    store = opened()
    assert [store.ends(f"t{i}") for i in range(5)] == [[1], [1], [1], [1], [0]]


@pytest.mark.parametrize("point", ["log.write", "log.commit"])
def test_full_disk_aborts_the_transaction(store: Store, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    """On a full disk the transaction raises DiskFull and leaves no trace, also not in the caches; the next one succeeds."""
    with store.transaction() as tx:
        tx.rows("stage", 0).put(b"k", b"old")

    def full(passed: str) -> None:
        if passed == point:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def attempt() -> None:
        with store.transaction() as tx:
            tx.append("crawl", 0, b"k", b"v", 1)
            tx.rows("stage", 0).put(b"k", b"new")
            tx.stage("o", "crawl", 0, b"k", b"s", 1)
            tx.commit_offset("g", "crawl", 0, Offsets(1))

    with monkeypatch.context() as patch:
        patch.setattr(transaction, "fault", full)
        with pytest.raises(DiskFull, match=r"No space left on device: .*store\.sqlite"):
            attempt()
    with store.transaction() as tx:
        assert (tx.rows("stage", 0).get(b"k"), tx.offsets("g", "crawl", 0)) == (b"old", Offsets())
        assert (tx.publish("o"), tx.append("crawl", 0, b"k", b"w", 1)) == (0, 0)


FULL = """
import resource, sys
from pathlib import Path
from streams.store import DiskFull, Store
with Store(Path(sys.argv[1]), {"crawl": 4}, runner=True) as store:
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_000_000, resource.RLIM_INFINITY))
    written = 0
    try:
        while True:
            with store.transaction() as tx:
                for i in range(10):
                    tx.append("crawl", 0, b"k", b"%d|" % (written + i) + bytes(20_000), 1)
                tx.rows("stage", 0).put(b"written", b"%d" % (written + 10))
            written += 10
    except DiskFull as full:
        print(full.errno, written, store.ends("crawl")[0], (store.rows("stage", 0).get(b"written")).decode(), flush=True)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    with store.transaction() as tx:
        print(tx.append("crawl", 0, b"k", b"again", 1), tx.rows("stage", 0).get(b"written").decode())
"""


def test_system_write_limit_raises_disk_full(program: Run, opened: Open) -> None:
    """If the system refuses a write, DiskFull is raised, complete batches remain, and the store is usable afterwards."""
    process = program(FULL)
    first, second = process.communicate()[0].splitlines()
    written = int(first.split()[1])
    assert written >= 10
    assert first == f"{errno.ENOSPC} {written} {written} {written}"
    assert second == f"{written} {written}"
    assert len(opened(readonly=True).read("crawl", 0, 0, 100_000)) == written + 1


HOLDER = """
import os, sys, time
from pathlib import Path
from streams.store import Store
store = Store(Path(sys.argv[1]), {"crawl": 4}, runner=True)
child = os.fork()
if child == 0:
    os.closerange(0, 3)
    time.sleep(600)
print(child, flush=True)
sys.stdin.readline()
os.kill(os.getpid(), 9)
"""


def test_killed_runner_releases_the_lock(program: Run, opened: Open) -> None:
    """A killed runner releases the lock, even if a child that it forked lives on."""
    process = program(HOLDER)
    assert process.stdout
    child = int(process.stdout.readline())
    process.communicate("die\n")
    try:
        opened(runner=True)
    finally:
        os.kill(child, signal.SIGKILL)
