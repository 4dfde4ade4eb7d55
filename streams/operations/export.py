"""Export of topics to Avro object container files and import from them, for either engine's log.

Why this format: every reader of Avro can open it without Harvest, since it contains its own schema, its records are typed, and a
block that was cut short is detected by its marker. SOIF has no place for keys, times and tombstones, and is for summaries alone.

A file holds one topic. Its records are {partition, offset, time, key, value}; value is a record that the topic carries, null for a
tombstone, or bytes for a value that is no record of Harvest. Metadata: `harvest.topic`.

Laws:
- Reading a file returns the keys, values, times and order (within a partition, so within a key) that were written; the offsets are
  those of the exported log, and an import assigns new ones.
- Values are resolved to the current schemas (Avro, "Schema Resolution"): a file of an older release can be read.
- A file that is no export of Harvest, or is cut short within a block, raises FileError; the records before the fault are yielded
  first. A file cut short at the end of a block looks complete to any reader of the format, so `harvest export` names a file only
  when it is complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, BinaryIO, cast

import fastavro
import msgspec
from fastavro import parse_schema

from schemas.codec import NAMESPACE, DecodeError, decode, dumped, encode, loaded, schema_text, union_text
from schemas.evolution import fitted
from schemas.ports import Logged
from schemas.records import Record
from streams.topology.flow import Topic

TOPIC = "harvest.topic"
CODEC = "deflate"
"""A codec that every reader of Avro must support (specification, "Required Codecs")."""


class FileError(Exception):
    """A file is no export of Harvest, or is damaged: the message is one line."""


def schema(topic: Topic[Record]) -> Any:
    """Return the schema of a topic's file."""
    values = union_text([cls.__name__ for cls in topic.carries])
    branches = ["null", *(values if isinstance(values, list) else [values]), "bytes"]
    place = [("partition", "int"), ("offset", "long"), ("time", "long"), ("key", "bytes")]
    fields = [{"name": name, "type": kind} for name, kind in place]
    fields[2]["doc"] = "ms since the epoch"
    return parse_schema(
        {
            "type": "record",
            "name": "Entry",
            "namespace": f"{NAMESPACE}.log",
            "fields": [*fields, {"name": "value", "type": branches}],
        }
    )


def write(stream: BinaryIO, topic: Topic[Record], records: Iterable[Logged]) -> int:
    """Write the records of a topic to a file; return their number. Raises OSError."""
    count = 0

    def entries() -> Iterator[dict[str, Any]]:
        nonlocal count
        for logged in records:
            count += 1
            place = {"partition": logged.partition, "offset": logged.offset, "time": logged.time, "key": logged.key}
            yield {**place, "value": _value(topic, logged.value)}

    fastavro.writer(stream, schema(topic), entries(), codec=CODEC, metadata={TOPIC: topic.name})
    return count


def _value(topic: Topic[Record], value: bytes | None) -> Any:
    """Return a value for fastavro, with its union branch, so that fastavro need not search for it."""
    if value is None:
        return None
    try:
        record = decode(value)
    except DecodeError:
        return ("bytes", value)
    # A value that another writer encoded differently (the bytes of a copy are not remembered) stays unchanged, byte for byte.
    if type(record) not in topic.carries or encode(msgspec.structs.replace(record)) != value:
        return ("bytes", value)
    return (f"{NAMESPACE}.{type(record).__name__}", dumped(record))


def read(stream: BinaryIO, topics: Iterable[Topic[Record]]) -> tuple[Topic[Record], Iterator[Logged]]:
    """Return the topic of a seekable file, and its records. Raises FileError and OSError; the iterator too."""
    try:
        head = fastavro.reader(stream)
        name = head.metadata.get(TOPIC, "")
    except OSError:
        raise
    # fastavro raises whatever its C code does: all such errors are the file's fault.
    except Exception as error:
        raise FileError("not an Avro object container file") from error
    topic = next((one for one in topics if one.name == name), None)
    if topic is None:
        raise FileError(f"an Avro file, but of no topic that there is here: {name[:100]!r}")
    stream.seek(0)
    return topic, _records(stream, topic)


def _records(stream: BinaryIO, topic: Topic[Record]) -> Iterator[Logged]:
    try:
        reader = fastavro.reader(stream, return_record_name=True, return_record_name_override=True)
        names = _names(reader.writer_schema)
        for entry in reader:
            yield _logged(topic.name, cast("dict[str, Any]", entry), names)
    except OSError:
        raise  # an error of the disk, not of the file
    # fastavro raises whatever its C code does (EOFError, ValueError, zlib.error ...): all such errors are the file's fault.
    except Exception as error:
        raise FileError(f"damaged, or of a release that this one cannot read: {type(error).__name__}: {error}"[:200]) from error


def _names(written: Any) -> list[str]:
    """Return the names of the record types of a value in the writer's schema."""
    (values,) = (field["type"] for field in written["fields"] if field["name"] == "value")
    return [branch["name"] for branch in values if isinstance(branch, dict)]


def _logged(topic: str, entry: dict[str, Any], names: list[str]) -> Logged:
    value = entry["value"]
    if value is not None and not isinstance(value, bytes):
        # fastavro omits the record's name if the schema has only one.
        name, plain = (names[0], value) if len(names) == 1 else value
        name = name.rpartition(".")[2]
        value = encode(loaded(name, fitted(plain, _schema_text(name))))
    return Logged(topic, entry["partition"], entry["offset"], entry["time"], entry["key"], value)


_schema_text = cache(schema_text)
