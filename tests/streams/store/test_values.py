"""How values are stored: compressed, and a summary that several of them contain only once."""

from __future__ import annotations

import random
import signal
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schemas.codec import encode
from schemas.records import Summary
from streams.store import Store, StoreError
from streams.store.dictionaries import SAMPLES
from streams.store.schema import FILE

Run = Callable[..., subprocess.Popen[str]]
Open = Callable[..., Store]
WORDS = [f"{a}{b}{c}" for a in "bdfglmnprst" for b in "aeiou" for c in ("ton", "ver", "lig", "sha")]


def summary(number: int, version: int = 1, words: int = 80) -> bytes:
    """An encoded summary; equal arguments give equal bytes."""
    text = " ".join(random.Random(number * 1_000 + version).choices(WORDS, k=words))
    url = f"http://host.example/{number}"
    found = Summary(
        oid=f"{number:064x}",
        url=url,
        object_url=url,
        gatherer="g",
        version=version,
        time=version,
        type="Text",
        attributes={"body": (text,)},
    )
    return encode(found, kept=False)


def write(store: Store, numbers: range, version: int = 1) -> None:
    """Write each summary as the stages do: to two topics, and into a row of each of two stages."""
    with store.transaction() as tx:
        for number in numbers:
            made, key = summary(number, version), b"%d" % number
            tx.rows("catalog", 0).put(key, b"\x91" + made)
            tx.rows("register.main", 0).put(key, b"before it" + made[:-1] + b"\x02behind it")
            tx.append("summaries", 0, key, made, version)
            tx.append("crawl", 0, key, made[:-6] + b"\x02\x00\x00\x00\x00\x00", version)


def stored(folder: Path, query: str) -> int:
    """The number that a query of the file gives."""
    connection = apsw.Connection(str(folder / FILE), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return int(connection.execute(query).get or 0)
    finally:
        connection.close()


def check_shares(folder: Path) -> int:
    """Assert that contents are counted as they are shared, and none is without use; return how many there are."""
    connection = apsw.Connection(str(folder / FILE), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        tables = [str(name) for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE sql LIKE '%form INTEGER%'")]
        used = Counter[int]()
        for table in tables:
            used.update(int(form) for (form,) in connection.execute(f"SELECT form FROM {table} WHERE form>0"))  # noqa: S608
        assert {(number, count) for number, count in connection.execute("SELECT id, count FROM shares")} == set(used.items())
        assert {number for (number,) in connection.execute("SELECT id FROM contents")} == set(used)
        return len(used)
    finally:
        connection.close()


def check_read(store: Store, numbers: range, version: int = 1) -> None:
    """Assert that the rows of these summaries are as `write` wrote them."""
    for number in numbers:
        rows = [store.rows(stage, 0) for stage in ("catalog", "register.main")]
        made = summary(number, version)
        assert [one.get(b"%d" % number) for one in rows if one] == [b"\x91" + made, b"before it" + made[:-1] + b"\x02behind it"]


def test_summary_of_four_values_is_kept_once(store: Store, folder: Path) -> None:
    """Two records and two rows with the same summary share one content, and are read as they were written."""
    write(store, range(20))
    assert check_shares(folder) == 20
    assert [record.value for record in store.read("summaries", 0, 0, 99)] == [summary(number) for number in range(20)]
    assert store.read("crawl", 0, 3, 1)[0].value == summary(3)[:-6] + b"\x02\x00\x00\x00\x00\x00"
    check_read(store, range(20))


def test_content_goes_with_its_last_use(store: Store, folder: Path) -> None:
    """New versions, a trim, a compaction and a forgotten stage leave the contents that something still uses, and no others."""
    write(store, range(10))
    write(store, range(10), version=2)
    assert check_shares(folder) == 20
    assert store.compact("summaries", 0) == 10
    assert store.trim("crawl", 99, {0: 10}) == 10
    assert check_shares(folder) == 10
    store.trim("crawl", 99, {0: 99})
    store.forget(["summaries"], ["catalog"])
    assert check_shares(folder) == 10
    rows = store.rows("register.main", 0)
    assert rows
    assert rows.get(b"9") == b"before it" + summary(9, 2)[:-1] + b"\x02behind it"
    store.forget([], ["register.main"])
    assert check_shares(folder) == 0
    assert stored(folder, "SELECT count(*) FROM contents") == 0


def test_undone_transaction_leaves_no_content(store: Store, folder: Path) -> None:
    """A transaction that failed leaves neither contents nor dictionaries, and the next one is not misled by what it knew."""
    store.create({"t": 1})

    def fail() -> None:
        with store.transaction() as tx:
            for number in range(2 * SAMPLES):
                tx.append("t", 0, b"k", summary(number), 1)
                tx.append("t", 0, b"k", b"a small value, number %d, among many that are alike" % number, 1)
            tx._write()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    write(store, range(5))
    assert check_shares(folder) == 5
    assert stored(folder, "SELECT count(*) FROM dictionaries") == 0
    check_read(store, range(5))


def test_values_are_compressed_with_a_dictionary_of_their_group(store: Store, folder: Path, opened: Open) -> None:
    """From its first values on, a group has a dictionary; small values take less than a third, and every process reads them."""
    values = [b"u|http://host.example/%d|state=ok|version=1795812541900|rules=9c08416d32f2" % number for number in range(2_000)]
    for start in range(0, len(values), 100):
        with store.transaction() as tx:
            for number, value in enumerate(values[start : start + 100], start):
                tx.append("crawl", 0, b"%d" % number, value, 1)
    other = opened()
    other.append("crawl", [], 0)
    with other.transaction() as tx:
        tx.append("crawl", 0, b"other", values[0], 1)
    store.close()
    assert stored(folder, "SELECT count(*) FROM dictionaries WHERE name='crawl'") == 1
    assert stored(folder, "SELECT sum(length(value)) FROM log_4096 WHERE offset>=200") < sum(map(len, values[200:])) / 3
    with Store(folder, readonly=True) as reader:
        assert [record.value for record in reader.read("crawl", 0, 0, 9_999)] == [*values, values[0]]


@given(values=st.lists(st.one_of(st.none(), st.binary(max_size=400), st.builds(summary, st.integers(0, 3), st.integers(1, 3)))))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_any_value_is_read_as_it_was_written(store: Store, folder: Path, values: list[bytes | None]) -> None:
    """Records and rows of any bytes come back, also after compaction, and contents stay counted."""
    topic = f"t{len(store.topics())}"
    store.create({topic: 1})
    with store.transaction() as tx:
        for number, value in enumerate(values):
            tx.append(topic, 0, b"%d" % (number % 3), value, 1)
            if value is not None:
                tx.rows(topic, 0).put(b"%d" % (number % 3), value)
    assert [record.value for record in store.read(topic, 0, 0, 9_999)] == values
    store.compact(topic, 0)
    last = {b"%d" % (number % 3): value for number, value in enumerate(values)}
    assert {record.key: record.value for record in store.read(topic, 0, 0, 9)} == last
    check_shares(folder)


def test_another_writer_does_not_use_what_is_gone(store: Store, opened: Open, folder: Path) -> None:
    """A content that one process knows, and another one's trim deletes, is stored again when it is needed again."""
    other = opened()
    write(store, range(3))
    assert len(other.read("summaries", 0, 0, 9)) == 3
    store.forget([], ["catalog", "register.main"])
    store.trim("summaries", 99, {0: 99})
    store.trim("crawl", 99, {0: 99})
    assert check_shares(folder) == 0
    with other.transaction() as tx:
        tx.append("summaries", 0, b"0", summary(0), 1)
    assert check_shares(folder) == 1
    assert store.read("summaries", 0, 0, 9)[0].value == summary(0)


KILLED = """
import sys
from pathlib import Path
from streams.store import Store
from tests.streams.store.test_values import write
with Store(Path(sys.argv[1]), {"crawl": 4, "summaries": 1}, runner=True) as store:
    for version in range(1, 9):
        write(store, range(60), version)
        store.compact("summaries", 0)
        store.trim("crawl", version, {0: version * 60})
"""


@pytest.mark.parametrize("point", ["log.write:2", "log.commit:3", "log.commit:7", "log.committed:8", "log.write:11"])
def test_kill_leaves_contents_as_they_are_shared(program: Run, folder: Path, point: str) -> None:
    """After a SIGKILL while contents come and go, they are counted as they are shared, and work goes on."""
    process = program(KILLED, fault=f"{point}:kill")
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    with Store(folder, {"crawl": 4, "summaries": 1}, runner=True) as store:
        check_shares(folder)
        write(store, range(60), version=9)
        check_read(store, range(60), version=9)
    check_shares(folder)


def test_lost_content_is_told(store: Store, folder: Path) -> None:
    """A file that lacks a content, or has a damaged value, says so: no value is read that was not written."""
    write(store, range(3))
    assert store.damage() == ""
    with apsw.Connection(str(folder / FILE)) as connection:
        connection.execute("UPDATE contents SET data=x'00' WHERE id=1")
    with pytest.raises(StoreError, match="a value is damaged"):
        store.read("summaries", 0, 0, 9)
    with apsw.Connection(str(folder / FILE)) as connection:
        connection.execute("DELETE FROM contents WHERE id=2")
    assert "lost" in store.damage()
    with pytest.raises(StoreError, match="a content is missing: 2"):
        store.read("summaries", 0, 1, 1)
