"""Changes decoded from records of `summaries` or of a Broker's topic, shared by everything that fills a sink."""

from __future__ import annotations

from collections.abc import Sequence

from schemas.codec import DecodeError, decode
from schemas.ports import Logged, Origin
from schemas.records import Rejected, Removed, Summary
from streams.topology.routing import poisoned_letter

Change = Summary | Removed


def change(value: bytes) -> Change:
    """Decode a record of a Broker's topic. Raises DecodeError for anything else."""
    record = decode(value)
    if isinstance(record, Summary | Removed):
        return record
    raise DecodeError(f"a {type(record).__name__}")


def newest_changes(records: Sequence[Logged], time: int, stage: str = "index") -> tuple[list[Change], list[Rejected]]:
    """Return the changes to apply (the newest record of each OID) and dead letters of a stage, with a time (ms), for all else.

    The newest record has the highest publish counter (in `summaries`, where there is none, the highest version), and of several
    with the same counter is the last, as in a sink: so the result does not depend on batch boundaries. A former owner of a
    partition may write an older record behind a newer one.
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
            letters.append(poisoned_letter(stage, error, origin, logged.key, logged.value, time))
    return [_newest(changes) for changes in found.values()], letters


def _newest(changes: Sequence[Change]) -> Change:
    return max(reversed(changes), key=lambda change: (change.published, change.version))
