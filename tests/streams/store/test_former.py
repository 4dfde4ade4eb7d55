"""Files of version 1: read as they are, changed by the first writer, and made smaller by an upkeep."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from streams.store import LockedError, Store, database, schema
from streams.store.former import is_former
from streams.store.locks import LockFile
from tests.streams.store.test_values import check_read, check_shares, summary, write

Run = Callable[..., subprocess.Popen[str]]
NUMBERS = range(400)


def write_former(folder: Path, numbers: range = NUMBERS) -> None:
    """Make a data folder whose file version 1 wrote: summaries in a topic and in the rows of two stages."""
    folder.mkdir()
    with closing(apsw.Connection(str(folder / schema.FILE))) as file:
        file.execute(f"PRAGMA page_size={schema.PAGE}")
        file.execute("PRAGMA journal_mode=WAL")
        file.execute(schema.TABLES)
        file.execute("PRAGMA user_version=1")
        file.execute("INSERT INTO topics(name, partitions) VALUES('summaries', 1), ('crawl', 1)")
        for at in (schema.slot(1, 0), schema.slot(2, 0)):
            file.execute(f"CREATE TABLE log_{at}(offset INTEGER PRIMARY KEY, time INTEGER NOT NULL, key BLOB NOT NULL, value BLOB)")
        records = [(number, 1, b"%d" % number, summary(number)) for number in numbers]
        file.executemany(f"INSERT INTO log_{schema.slot(1, 0)} VALUES(?, ?, ?, ?)", records)
        file.execute("INSERT INTO ends(slot, next) VALUES(?, ?)", (schema.slot(1, 0), len(numbers)))
        for space, stage in enumerate(("catalog", "register.main"), 1):
            file.execute("INSERT INTO spaces VALUES(?, ?, 0)", (space, stage))
            file.execute(f"CREATE TABLE rows_{space}(key BLOB PRIMARY KEY NOT NULL, value BLOB NOT NULL)")
        rows = [(key, b"\x91" + made) for _, _, key, made in records]
        file.executemany("INSERT INTO rows_1 VALUES(?, ?)", rows)
        file.executemany("INSERT INTO rows_2 VALUES(?, ?)", [(k, b"before it" + v[1:-1] + b"\x02behind it") for k, v in rows])


@pytest.fixture
def former(folder: Path) -> Path:
    """A data folder of version 1."""
    write_former(folder)
    return folder


def values(store: Store) -> list[bytes | None]:
    """The values of the topic."""
    return [record.value for record in store.read("summaries", 0, 0, 9_999)]


def test_reader_changes_nothing(former: Path) -> None:
    """A reader reads the file as it is, without changing it, and goes on when a writer has changed the file beside it."""
    content = (former / schema.FILE).read_bytes()
    with Store(former, readonly=True) as reader:
        assert values(reader) == [summary(number) for number in NUMBERS]
        check_read(reader, NUMBERS)
        rows = reader.rows("catalog", 0)
        assert (former / schema.FILE).read_bytes() == content
        with Store(former, {"crawl": 1}, runner=True) as store:
            write(store, range(5), version=2)
            check_read(reader, range(5), version=2)
            assert rows
            assert rows.get(b"3") == b"\x91" + summary(3, 2)
            assert [record.value for record in reader.read("summaries", 0, 400, 9)] == [summary(number, 2) for number in range(5)]


def test_runner_of_an_older_version_is_not_disturbed(former: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a runner of version 1 holds the folder, another writer is refused and the file stays as it is; then it is changed."""
    monkeypatch.setattr(database, "PAUSE", 0)
    older = LockFile(former / "runner.lock")
    older.claim()
    with pytest.raises(LockedError, match=r"process \d+\), of an older version, which cannot read"):
        Store(former)
    with apsw.Connection(str(former / schema.FILE)) as file:
        assert file.pragma("user_version") == 1
    with Store(former, readonly=True) as reader:
        assert values(reader) == [summary(number) for number in NUMBERS]
    older.close()
    with Store(former) as writer, Store(former, runner=True) as runner:
        writer.append("summaries", [(b"k", None)])
        assert len(values(runner)) == len(NUMBERS) + 1


def test_writers_go_on_with_old_values(former: Path) -> None:
    """A runner reads, replaces, trims and compacts old values; topics keep their records, and the new ones are shared."""
    with Store(former, {"crawl": 1}, runner=True) as store:
        write(store, range(10), version=2)
        assert store.compact("summaries", 0) == 10
        check_read(store, range(10, 400))
        check_read(store, range(10), version=2)
        assert store.trim("summaries", 2, {0: 99}) == 89
        assert store.damage() == ""
    assert check_shares(former) == 10


def test_upkeep_makes_an_old_file_smaller(former: Path) -> None:
    """After modernizing, the same is read from a file of a third of the size, each summary kept once; again there is no work."""
    before = (former / schema.FILE).stat().st_size
    with Store(former, {"crawl": 1}, runner=True) as store:
        steps = sum(1 for _ in store.modernize())
        assert steps > 3
        assert values(store) == [summary(number) for number in NUMBERS]
        check_read(store, NUMBERS)
        write(store, range(5), version=2)
        check_read(store, range(5), version=2)
        assert list(store.modernize()) == []
    assert check_shares(former) == 405
    assert (former / schema.FILE).stat().st_size < before / 3


def test_modernizing_may_end_at_any_step(former: Path) -> None:
    """A modernizing that was stopped after any of its steps leaves everything readable, and the next one completes it."""
    with Store(former, runner=True) as store:
        next(steps := store.modernize())
        next(steps)
    check_shares(former)
    with Store(former, runner=True) as store:
        check_read(store, NUMBERS)
        assert list(store.modernize())
        assert list(store.modernize()) == []
        check_read(store, NUMBERS)


KILLED = """
import itertools, os, signal, sys
from pathlib import Path
from streams.store import Store
from streams.store.former import rebuild, repack
with Store(Path(sys.argv[1]), runner=True) as store:
    for _ in repack(store._state):
        pass
    calls = itertools.count()
    # Each hundred instructions of SQLite: there are some 140 such steps.
    store._state.connection.set_progress_handler(
        lambda: next(calls) == int(sys.argv[2]) and os.kill(os.getpid(), signal.SIGKILL), 100
    )
    rebuild(store._state)
"""


@pytest.mark.parametrize("step", [20, 70, 130])
def test_kill_while_a_file_is_written_anew(former: Path, program: Run, step: int) -> None:
    """After a SIGKILL in the midst of writing the file anew it is as before, and the next upkeep writes it anew."""
    before = (former / schema.FILE).stat().st_size
    process = program(KILLED, str(step))
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert check_shares(former) == 400
    with Store(former, runner=True) as store:
        check_read(store, NUMBERS)
        assert is_former(store._state)
        assert list(store.modernize())
        assert not is_former(store._state)
        check_read(store, NUMBERS)
    assert (former / schema.FILE).stat().st_size < before / 3


CRAMPED = """
import resource, sys
from pathlib import Path
from streams.store import Store
from streams.store.former import is_former, rebuild, repack
from tests.streams.store.test_former import NUMBERS, check_read, write
with Store(Path(sys.argv[1]), runner=True) as store:
    for _ in repack(store._state):
        pass
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
    print(rebuild(store._state), is_former(store._state), flush=True)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    check_read(store, NUMBERS)
    write(store, range(5), version=2)
    print(store.damage() == "", rebuild(store._state), is_former(store._state))
"""


@pytest.mark.parametrize("limit", [50_000, 400_000])
def test_file_that_finds_no_room_stays_as_it_is(former: Path, program: Run, limit: int) -> None:
    """If the system refuses to write the file anew, by a limit that is no full disk, it stays as it is, and can be later."""
    process = program(CRAMPED, str(limit))
    assert process.communicate()[0].splitlines() == ["False True", "True True False"]


def test_file_gives_back_what_a_trim_freed(folder: Path) -> None:
    """After a trim and `shrink` a new file is smaller, and has what is left."""
    with Store(folder, {"summaries": 1, "crawl": 1}, runner=True) as store:
        for version in range(5):
            write(store, range(300), version)
        store.compact("summaries", 0)
        store.trim("crawl", 99, {0: 9_999})
        while store.shrink(16) > 0:
            pass
        check_read(store, range(300), version=4)
        parts = {(part.kind, part.name): part.bytes for part in store.parts()}
        assert ("free", "") not in parts
        whole = sum(parts.values())
    size = (folder / schema.FILE).stat().st_size
    # Pages of the file itself belong to no table: a map of the others.
    assert 0 <= size - whole <= 2 * schema.PAGE
