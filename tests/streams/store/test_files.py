"""Export of topics to files and their import: everything but the offsets is preserved."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from schemas.codec import encode, union_text
from schemas.ports import Logged
from schemas.records import Removed, Tick
from streams.cli.app import app
from streams.logs import StoreLog
from streams.operations import export
from streams.store import Store
from streams.topology.flow import TopologySettings, topology
from tests.schemas.conftest import record

TOPICS = {topic.name: topic for topic in topology(TopologySettings()).topics}
REMOVED = Removed(oid="o", url="u", object_url="u", version=1, time=2, reason="gone")
LONGER = encode(Tick(time=1)).removesuffix(b"\2\0") + b"\x82\0\0"
"""A number in more bytes than necessary, as Avro allows."""


def entries(name: str) -> st.SearchStrategy[list[Logged]]:
    """Records of a topic, with tombstones and damaged records among them."""
    own = st.one_of(*map(record, TOPICS[name].carries)).map(encode)
    value = st.one_of(own, st.none(), st.binary(max_size=9), st.sampled_from([encode(REMOVED), LONGER]))
    one = st.builds(
        Logged, st.just(name), st.integers(0, 3), st.integers(0, 2**60), st.integers(-(2**60), 2**60), st.binary(), value, st.none()
    )
    return st.lists(one, max_size=3)


@pytest.mark.parametrize("name", TOPICS)
@settings(max_examples=10)
@given(data=st.data())
def test_file_round_trip(name: str, data: st.DataObject) -> None:
    """A file returns the written records byte for byte and in order: keys, values, times, tombstones."""
    written = data.draw(entries(name))
    stream = io.BytesIO()
    assert export.write(stream, TOPICS[name], written) == len(written)
    stream.seek(0)
    topic, found = export.read(stream, TOPICS.values())
    assert (topic, list(found)) == (TOPICS[name], written)


def test_generic_avro_reader_reads_the_file() -> None:
    """The file contains its schema: a generic Avro reader gets the fields of every record."""
    stream = io.BytesIO()
    export.write(
        stream, TOPICS["summaries"], [Logged("summaries", 1, 2, 3, b"o", encode(REMOVED)), Logged("summaries", 1, 3, 4, b"o", None)]
    )
    stream.seek(0)
    first, second = (dict(entry) for entry in fastavro.reader(stream) if isinstance(entry, dict))
    value: Any = first.pop("value")
    assert first == {"partition": 1, "offset": 2, "time": 3, "key": b"o"}
    assert (value["oid"], value["removed"], second["value"]) == ("o", True, None)


def test_foreign_or_damaged_file_is_refused() -> None:
    """A file that is no export of this program, or is damaged, raises FileError with the reason."""
    stream = io.BytesIO()
    export.write(stream, TOPICS["summaries"], [Logged("summaries", 0, 0, 0, b"k%d" % n, encode(REMOVED)) for n in range(9)])
    whole = stream.getvalue()
    foreign = io.BytesIO()
    fastavro.writer(foreign, {"type": "record", "name": "X", "fields": []}, [{}])
    endless = b"Obj\x01" + b"\xff" * 11
    none = ((b"", "not an Avro"), (endless, "not an Avro"), (b"junk" * 99, "not an Avro"))
    for junk, said in (*none, (foreign.getvalue(), "of no topic"), (whole[:-5], "damaged")):
        with pytest.raises(export.FileError, match=said):
            list(export.read(io.BytesIO(junk), TOPICS.values())[1])


def test_missing_field_gets_its_default() -> None:
    """A file whose schema lacks a field is read with the default of the field."""
    old = union_text(["Removed"])
    old = {**old, "fields": [field for field in old["fields"] if field["name"] != "published"]}
    ours: Any = export.schema(TOPICS["summaries"])
    place, (value,) = ours["fields"][:-1], ours["fields"][-1:]
    schema = {"type": "record", "name": "harvest.log.Entry", "fields": [*place, {**value, "type": ["null", old]}]}
    plain = {field["name"]: getattr(REMOVED, field["name"]) for field in old["fields"]}
    stream = io.BytesIO()
    entry = {"partition": 0, "offset": 0, "time": 0, "key": b"o", "value": plain}
    fastavro.writer(stream, schema, [entry], metadata={export.TOPIC: "summaries"})
    stream.seek(0)
    (logged,) = export.read(stream, TOPICS.values())[1]
    assert logged.value == encode(REMOVED)


def by_key(log: StoreLog, topic: str) -> dict[bytes, list[tuple[int, bytes | None]]]:
    """Time and value of the records of each key, in order."""
    found: dict[bytes, list[tuple[int, bytes | None]]] = {}
    for partition in range(log.topics()[topic]):
        for logged in log.read(topic, partition, 0, 10_000):
            found.setdefault(logged.key, []).append((logged.time, logged.value))
    return found


def run(*arguments: str | Path, code: int = 0, given: bytes | None = None) -> Any:
    """Run a command, and assert its exit code."""
    result = CliRunner().invoke(app, list(map(str, arguments)), input=given)
    assert result.exit_code == code, (result.output, result.exception)
    return result


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, without settings from the environment."""
    monkeypatch.chdir(tmp_path)
    for variable in [name for name in os.environ if name.startswith("HARVEST_")]:
        monkeypatch.delenv(variable)
    return tmp_path


@pytest.mark.parametrize("partitions", [(1, 4), (4, 1)])
def test_export_and_import_keep_the_order_of_each_key(
    partitions: Sequence[int], alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After export and import with another number of partitions each key has its records in order."""
    values = [None, b"junk", encode(REMOVED)]
    given = [Logged("summaries", -1, -1, 9_000 - n, b"k%d" % (n % 7), values[n % 3]) for n in range(2_500)]
    with StoreLog(Store(alone / "a", {"summaries": partitions[0], "rejected": 1})) as log:
        log.write(given)
        before = by_key(log, "summaries")
    run("export", "summaries", "s.avro", "--data", "a")
    monkeypatch.setenv("HARVEST_PARTITIONS", str(partitions[1]))
    told = "harvest: 2,500 records of summaries appended; harvest run reads them, or the next harvest gather\n"
    assert run("import", "s.avro", "--data", "b").stderr == told
    assert "0 summaries indexed: nothing is in the Broker's topic" in run("index", "rebuild", "--data", "b").stderr
    assert (
        run("import", "s.avro", "--data", "b", code=1).stderr
        == "harvest: summaries: has 2,500 records already; --append adds to them\n"
    )
    with StoreLog(Store(alone / "b", readonly=True)) as log:
        assert by_key(log, "summaries") == before
    out = run("export", "summaries", "-", "--data", "b")
    run("import", "-", "--append", "--data", "b", given=out.stdout_bytes)
    with StoreLog(Store(alone / "b", readonly=True)) as log:
        assert by_key(log, "summaries") == {key: values * 2 for key, values in before.items()}
    assert "no such topic" in run("export", "nothing", "x", "--data", "a", code=1).stderr
    assert "not an Avro" in run("import", alone / "a" / "store.sqlite", "--data", "c", code=1).stderr
    assert sorted(path.name for path in alone.iterdir()) == ["a", "b", "s.avro"]


def test_damaged_file_is_imported_up_to_the_damage(alone: Path) -> None:
    """Records before a damaged part of a file are appended, and the error, one line, states their number."""
    with StoreLog(Store(alone / "a", {"summaries": 1, "rejected": 1})) as log:
        log.write(Logged("summaries", 0, n, 9, b"k%d" % n, hashlib.sha256(b"%d" % n).digest() * 20) for n in range(3_000))
    run("export", "summaries", "s.avro", "--data", "a")
    whole = (alone / "s.avro").read_bytes()
    (alone / "s.avro").write_bytes(whole[: len(whole) * 2 // 3])
    told = run("import", "s.avro", "--data", "b", code=1).stderr
    assert told.startswith("harvest: s.avro: damaged, ")
    with StoreLog(Store(alone / "b", readonly=True)) as log:
        ends = sum(log.ends("summaries"))
    assert told.endswith(f"; {ends:,} records before that appended\n")
    assert 0 < ends < 3_000
