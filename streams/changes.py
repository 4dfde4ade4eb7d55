"""What records of a Broker's topic change in its index: shared by all that fill one."""

from __future__ import annotations

from collections.abc import Sequence

from schemas.codec import DecodeError, decode
from schemas.ports import Logged, Origin
from schemas.records import Rejected, Removed, Summary
from streams.routing import poisoned

Change = Summary | Removed


def change(value: bytes) -> Change:
    """A record of a Broker's topic. Raises DecodeError for what is none."""
    record = decode(value)
    if isinstance(record, Summary | Removed):
        return record
    raise DecodeError(f"a {type(record).__name__}")


def changed(records: Sequence[Logged], time: int) -> tuple[list[Change], list[Rejected]]:
    """What is to be applied: of each key the last record; and of what is no change a dead letter, of the time given (ms)."""
    # The others need not even be decoded.
    latest = {r.key: r.value for r in records if r.value is not None}
    try:
        return [change(value) for value in latest.values()], []
    except DecodeError:
        return _told_apart(records, time)


def _told_apart(records: Sequence[Logged], time: int) -> tuple[list[Change], list[Rejected]]:
    found: dict[bytes, Change] = {}
    letters: list[Rejected] = []
    for logged in records:
        try:
            found |= {logged.key: change(logged.value)} if logged.value is not None else {}
        except DecodeError as error:
            origin = Origin(logged.topic, logged.partition, logged.offset)
            letters.append(poisoned("index", error, origin, logged.key, logged.value, time))
    return list(found.values()), letters
