"""Topics as files: Avro object container files, written from either engine's log and read into either.

Why this format: any reader of Avro opens it with no word from us, its own schema stands in it, a record has its types, and a block
that was cut short is noticed by its marker. SOIF has no place for keys, times and tombstones, and is for summaries alone.

A file holds one topic. Its records are {partition, offset, time, key, value}; value is a record that the topic carries, null for a
tombstone, or bytes for what is no record of ours. Metadata: `harvest.topic`.

Laws:
- What is read has the keys, values, times and order (within a partition, so within a key) of what was written; offsets are those of
  the log that it came from, and are given anew.
- Values are resolved to our schemas (Avro, "Schema Resolution"): a file of an older release can be read.
- A file that is none of ours, or is cut short within a block, raises FileError; what came before the fault has been given. One that
  ends with a block is whole to any reader of the format, so a file gets its name when it is whole (`harvest export`).
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
"""What every reader of Avro must have (specification, "Required Codecs")."""


class FileError(Exception):
    """The file is no export of ours, or is damaged: told in one line."""


def schema(topic: Topic[Record]) -> Any:
    """The schema of a topic's file."""
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
    """Write the records of a topic to a file; gives how many. Raises OSError."""
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
    """A value as fastavro takes it: with its branch, lest it look for it."""
    if value is None:
        return None
    try:
        record = decode(value)
    except DecodeError:
        return ("bytes", value)
    # What another has encoded otherwise (a copy's bytes are not remembered) stays as it is, byte for byte.
    if type(record) not in topic.carries or encode(msgspec.structs.replace(record)) != value:
        return ("bytes", value)
    return (f"{NAMESPACE}.{type(record).__name__}", dumped(record))


def read(stream: BinaryIO, topics: Iterable[Topic[Record]]) -> tuple[Topic[Record], Iterator[Logged]]:
    """The topic of a file that can seek, and its records. Raises FileError, the iterator too, and OSError."""
    try:
        head = fastavro.reader(stream)
        name = head.metadata.get(TOPIC, "")
    except OSError:
        raise
    # fastavro raises what its C code meets: all is the file's fault.
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
        raise  # the disk's, not the file's
    # fastavro raises what its C code meets (EOFError, ValueError, zlib.error ...): all are the file's fault.
    except Exception as error:
        raise FileError(f"damaged, or of a release that this one cannot read: {type(error).__name__}: {error}"[:200]) from error


def _names(written: Any) -> list[str]:
    """The records that a value may be, as the writer had them."""
    (values,) = (field["type"] for field in written["fields"] if field["name"] == "value")
    return [branch["name"] for branch in values if isinstance(branch, dict)]


def _logged(topic: str, entry: dict[str, Any], names: list[str]) -> Logged:
    value = entry["value"]
    if value is not None and not isinstance(value, bytes):
        # A record goes without its name where there is but one.
        name, plain = (names[0], value) if len(names) == 1 else value
        name = name.rpartition(".")[2]
        value = encode(loaded(name, fitted(plain, _schema_text(name))))
    return Logged(topic, entry["partition"], entry["offset"], entry["time"], entry["key"], value)


_schema_text = cache(schema_text)
