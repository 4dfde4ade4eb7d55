"""`harvest cat`: decoded records of a topic, from either engine."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from streams.cli.common import BrokerName, Config, Data, Failure, Json, counted, printable, put, settings

if TYPE_CHECKING:
    from schemas.ports import Logged
    from schemas.records import Record
    from streams.config.settings import Settings
    from streams.logs import LogAccess

BATCH = 500
FAR = 1 << 53
"""A time later than that of any record (ms since the epoch)."""
MAX_DIGITS = 1_000
AGO = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
AGE = re.compile(r"(\d+)([smhd])")
TIME = "TIME is ms since the epoch, a date and time of ISO 8601 (UTC unless it says otherwise), or an age: 90s, 15m, 2h, 7d."


class Range(NamedTuple):
    """Selected part of a topic: partitions with their first offsets, and conditions for a record."""

    offsets: dict[int, int]
    until: int | None
    since: int
    before: int | None
    key: bytes | None
    contains: bytes | None
    kind: str

    def has(self, logged: Logged) -> bool:
        """Return whether an undecoded record meets the conditions."""
        return (
            logged.time >= self.since
            and (self.before is None or logged.time < self.before)
            and (self.key is None or logged.key == self.key)
            and (self.contains is None or (logged.value is not None and self.contains in logged.value))
        )


def cat(
    topic: Annotated[
        str, typer.Argument(metavar="TOPIC", help="With --broker: broker (the default), holders, copies or views.")
    ] = "",
    broker: BrokerName = "",
    data: Data = None,
    partition: Annotated[int | None, typer.Option("--partition", metavar="N", min=0, help="This partition only.")] = None,
    start: Annotated[int, typer.Option("--from", metavar="OFFSET", min=0, help="From this offset on, in each partition.")] = 0,
    until: Annotated[
        int | None, typer.Option("--to", metavar="OFFSET", min=0, help="Below this offset, in each partition.")
    ] = None,
    since: Annotated[str, typer.Option("--since", metavar="TIME", help=f"Appended then or later. {TIME}")] = "",
    before: Annotated[str, typer.Option("--before", metavar="TIME", help="Appended before then.")] = "",
    key: Annotated[str | None, typer.Option("--key", metavar="KEY", help="With this key.")] = None,
    contains: Annotated[str | None, typer.Option("--contains", metavar="TEXT", help="With this text in the value.")] = None,
    kind: Annotated[str, typer.Option("--type", metavar="RECORD", help="Of this type, as `harvest describe` names it.")] = "",
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what is appended, until Ctrl-C.")] = False,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=0, help="Maximum number of records; 0: all.")] = 0,
    json: Json = False,
    config: Config = None,
) -> None:
    """Print the records of a topic, decoded."""
    found = settings(config, data=data)
    topic = _topic(found, topic, broker)
    if follow and (until is not None or before):
        raise Failure("--follow cannot be combined with --to or --before", 2)
    times = [moment(text) for text in (since, before)]
    from schemas.records import RECORDS
    from streams.cli.common import open_log

    if kind and kind not in (names := [each.__name__ for each in RECORDS]):
        raise Failure(f"{printable(kind)}: no type of record: {', '.join(names)}", 2)

    with open_log(found) as log:
        partitions = log.topics().get(topic)
        if partitions is None:
            raise Failure(f"{printable(topic)}: no such topic (harvest topics list)")
        if partition is not None and partition >= partitions:
            raise Failure(f"{printable(topic)}: it has {counted(partitions, 'partition')}, counted from 0")
        chosen = range(partitions) if partition is None else [partition]
        first = log.since(topic, times[0]) if times[0] is not None else [0] * partitions
        offsets = {number: max(start, first[number]) for number in chosen}
        bounds = (until, times[0] or 0, times[1], _bytes(key), _bytes(contains), kind)
        for number, (logged, record) in enumerate(_asked(log, topic, Range(offsets, *bounds), follow=follow), start=1):
            put(_json(logged, record) if json else _shown(logged, record))
            if follow:
                sys.stdout.buffer.flush()
            if number == limit:
                return


def _topic(found: Settings, topic: str, broker: str) -> str:
    """Return the name of a topic, of a Broker if one is named. Raises Failure."""
    if not broker:
        if not topic:
            raise Failure("a TOPIC is missing (harvest topics list), or --broker NAME", 2)
        return topic
    from streams.cli.common import broker as named
    from streams.topology.flow import archive, copies, holders, views

    name = named(found, broker)
    own = {"broker": archive(name), "holders": holders(name), "copies": copies(name), "views": views(name)}
    known = own | {made.name: made for made in own.values()}
    if (topic or "broker") not in known:
        raise Failure(f"{printable(topic)}: no topic of a Broker (there are {', '.join(own)})", 2)
    return known[topic or "broker"].name


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-8", "surrogateescape")


def moment(text: str) -> int | None:
    """Parse a time given by a user into ms since the epoch; None for "". Raises Failure."""
    import time
    from datetime import UTC, datetime

    if not text:
        return None
    if text.isdecimal():
        return _bounded(int(text[:MAX_DIGITS]))
    if ago := AGE.fullmatch(text):
        return _bounded(time.time_ns() // 1_000_000 - int(ago[1][:MAX_DIGITS]) * AGO[ago[2]])
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise Failure(f"{printable(text)}: not a time. {TIME}", 2) from None
    return _bounded(int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000))


def _bounded(ms: int) -> int:
    """Clamp a time to [0, FAR]: not every engine accepts others."""
    return max(0, min(ms, FAR))


def _asked(log: LogAccess, topic: str, wanted: Range, *, follow: bool) -> Iterator[tuple[Logged, Record | bytes | None]]:
    """Yield selected records with their decoded values: None for a tombstone, bytes for a value that is no record of Harvest."""
    from schemas.codec import DecodeError, decode

    for logged in _all(log, topic, wanted, follow=follow):
        if wanted.has(logged):
            try:
                record: Record | bytes | None = decode(logged.value) if logged.value is not None else None
            except DecodeError:
                record = logged.value
            if not wanted.kind or type(record).__name__ == wanted.kind:
                yield logged, record


def _all(log: LogAccess, topic: str, wanted: Range, *, follow: bool) -> Iterator[Logged]:
    """Yield the records of a range, partition by partition; then, with `follow`, the records appended later."""
    offsets = dict(wanted.offsets)
    for number, end in enumerate(log.ends(topic)):
        if number not in offsets:
            continue
        stop = end if wanted.until is None else min(end, wanted.until)
        while offsets[number] < stop and (batch := log.read(topic, number, offsets[number], BATCH, until=stop)):
            yield from batch
            offsets[number] = batch[-1].offset + 1
        offsets[number] = max(offsets[number], stop)
    if follow:
        yield from log.follow(topic, offsets)


def _json(logged: Logged, record: Record | bytes | None) -> str:
    from schemas import jsonform

    if isinstance(record, bytes):
        return jsonform.line({**jsonform.logged(logged, None), "value": jsonform.text(record)})
    return jsonform.line(jsonform.logged(logged, record))


def _shown(logged: Logged, record: Record | bytes | None) -> str:
    """Return a record as one line: its position, and its fields that are not empty."""
    from schemas.jsonform import line, to_json

    place = f"{logged.topic}/{logged.partition}@{logged.offset}"
    if record is None:
        return f"{place} null {logged.key!r}"
    if isinstance(record, bytes):
        return f"{place} not a Harvest record, {counted(len(record), 'byte')}"
    fields = {name: getattr(record, name) for name in record.__struct_fields__}
    return f"{place} {type(record).__name__} {line({name: to_json(value) for name, value in fields.items() if value})}"
