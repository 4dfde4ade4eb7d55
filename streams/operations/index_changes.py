"""What records of a Broker's topic change in its index: shared by all that fill one."""

from __future__ import annotations

from collections.abc import Sequence

from schemas.codec import DecodeError, decode
from schemas.ports import Logged, Origin
from schemas.records import Rejected, Removed, Summary
from streams.topology.routing import poisoned

Change = Summary | Removed


def change(value: bytes) -> Change:
    """A record of a Broker's topic. Raises DecodeError for what is none."""
    record = decode(value)
    if isinstance(record, Summary | Removed):
        return record
    raise DecodeError(f"a {type(record).__name__}")


def changed(records: Sequence[Logged], time: int) -> tuple[list[Change], list[Rejected]]:
    """What is to be applied: of each OID the newest record; and of what is no change a dead letter, of the time given (ms).

    The newest is the one of the highest publish counter, of several the last, as an index has it: what ends in it does not hang
    on where one batch ends and the next begins. Whoever was the owner of a partition may write an older one behind a newer one.
    """
    found: dict[str, list[Change]] = {}
    letters: list[Rejected] = []
    for logged in records:
        try:
            if logged.value is not None:
                made = change(logged.value)
                found.setdefault(made.oid, []).append(made)
        except DecodeError as error:
            origin = Origin(logged.topic, logged.partition, logged.offset)
            letters.append(poisoned("index", error, origin, logged.key, logged.value, time))
    return [_newest(changes) for changes in found.values()], letters


def _newest(changes: Sequence[Change]) -> Change:
    return max(reversed(changes), key=lambda change: change.published)
