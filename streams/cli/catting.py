"""`harvest cat`: the records of a topic, decoded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from streams.cli.common import Config, Data, Failure, Json, printable, put, settings

if TYPE_CHECKING:
    from schemas.ports import Logged
    from schemas.records import Record
    from streams.logs import LogAccess

BATCH = 500


def cat(
    topic: Annotated[str, typer.Argument(metavar="TOPIC")],
    data: Data = None,
    partition: Annotated[int | None, typer.Option("--partition", metavar="N", min=0, help="This partition only.")] = None,
    start: Annotated[int, typer.Option("--from", metavar="OFFSET", min=0, help="From this offset on, in each partition.")] = 0,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=0, help="Records at the most; 0: all.")] = 0,
    json: Json = False,
    config: Config = None,
) -> None:
    """Print the records of a topic, decoded."""
    found = settings(config, data=data)
    from streams.logs import opened

    with opened(found) as log:
        partitions = log.topics().get(topic)
        if partitions is None:
            raise Failure(f"{printable(topic)}: no such topic (harvest topics list)")
        if partition is not None and partition >= partitions:
            raise Failure(f"{printable(topic)}: it has {partitions} partitions, counted from 0")
        left = limit or -1
        for number in range(partitions) if partition is None else [partition]:
            left = _cat(log, topic, number, start, left, json=json)


def _cat(log: LogAccess, topic: str, partition: int, start: int, left: int, *, json: bool) -> int:
    from schemas import jsonform
    from schemas.codec import decode

    while left and (batch := log.read(topic, partition, start, BATCH if left < 0 else min(left, BATCH))):
        for logged in batch:
            record = decode(logged.value) if logged.value is not None else None
            put(jsonform.line(jsonform.logged(logged, record)) if json else _shown(logged, record))
        left -= len(batch) if left > 0 else 0
        start = batch[-1].offset + 1
    return left


def _shown(logged: Logged, record: Record | None) -> str:
    """A record on one line: where it stands, and its fields that say anything."""
    from schemas.jsonform import line, to_json

    place = f"{logged.topic}/{logged.partition}@{logged.offset}"
    if record is None:
        return f"{place} null {logged.key!r}"
    fields = {name: to_json(value) for name, value in zip(record.__struct_fields__, _values(record), strict=True) if value}
    return f"{place} {type(record).__name__} {line(fields)}"


def _values(record: Record) -> list[object]:
    return [getattr(record, name) for name in record.__struct_fields__]
