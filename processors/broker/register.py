"""The register stage (a Broker's Registry) decides which summaries the Broker holds, and publishes them.

Strategy: an accepted version is published at once, without a role; dedup is informed of the content's holder, and its answer,
if there is one, publishes again. Every publication raises a counter that register alone raises: the version that every
index and archive compares. A Broker has one or more sources (`sources.py`); an entry has what each of them gives.

Laws:
- Only register writes `broker.NAME` (law 1). The counter survives removal and is max(last + 1, version), so that a lost row
  cannot restart it.
- A summary is held while any source gives it and the query accepts it. The highest version counts; of equal ones that of the
  first source. Roles, counters and tags of another Broker are not taken over.
- A record of a source below the last one of that source, or of an older time under its version, is dropped, once dedup knows of
  the contents that it ended. An equal one is applied again, and published again if that changes anything, or if the last
  publication may be lost (`reading.py`).
- An answer of dedup for another version than the present one is ignored; a new version starts without a role.
- What was not confirmed for the Broker's time-to-live is removed on a tick (`expiry.py`).

Delivery: at least once; each repeat carries a higher counter and the same content.

Rows: `r|oid` (`entry.py`), `d|` (`reading.py`), `e|due|oid`, `x|oid`, `t` (`expiry.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from processors.broker import entry as entries
from processors.broker import expiry, reading
from processors.broker.definition import MAIN, Broker
from processors.broker.entry import NOTHING, PREFIX, Given
from processors.broker.settling import Outcome, Registered, Settling, filtered, published_role
from processors.broker.sources import Sources, sequence_of, source_of
from schemas.codec import encode, publish
from schemas.ports import Origin, Rows
from schemas.records import Removed, Role, Summary, Tick

CHUNK = 1_000
"""Maximum number of entries that one tick expires, and that it sweeps."""


@dataclass(frozen=True)
class Plan:
    """What register takes of a Broker's definition."""

    sources: Sources = field(default_factory=Sources)
    accepts: Callable[[Summary], bool] | None = None
    """The Broker's filter; None: all summaries are accepted."""
    ttl: int | None = None
    """Seconds: what is not confirmed for so long is removed, and no summary states a longer one; None: nothing expires here."""
    fingerprint: str = ""
    assumed: str = ""
    """Fingerprint of the definition of rows that name none."""

    @classmethod
    def of(cls, defined: Broker) -> Plan:
        """Return the plan of a definition. Raises QueryError, ValueError (too many sources)."""
        assumed = Broker().fingerprint if defined.name == MAIN else ""
        return cls(Sources.of(defined), defined.filter(), defined.ttl, defined.fingerprint, assumed)


def register(rows: Rows, record: Summary | Removed | Role | Tick, origin: Origin, plan: Plan) -> Iterator[Registered]:
    """Yield what the Broker publishes, and the holders that dedup must know, for one record of a source, of dedup, or a tick."""
    if isinstance(record, Tick):
        yield from _tick(rows, record, origin, plan)
        return
    settling = Settling(rows, origin, plan.sources, plan.ttl)
    key = entries.key_of(record.oid)
    known = entries.load(rows, key)
    if isinstance(record, Role):
        if record.version == known.version and known.summary:
            yield from published_role(settling, key, known, record)
        return
    source = source_of(origin.topic)
    before = next((given for given in known.given if given.source == source), None)
    if before is not None and _earlier(source, record, before):
        yield from settling.stale(known, record)
        return
    given = _given(rows, record, source, before, plan)
    if known is NOTHING and (not given.gives or (not given.summary and plan.sources.single)):
        return  # never held: nothing to remove
    removal = record if isinstance(record, Removed) else filtered(record)
    yield from settling.settle(key, known, (*(one for one in known.given if one.source != source), given), removal)


def deadline(rows: Rows, plan: Plan) -> int | None:
    """Return when the next tick is needed, in ms since the epoch; None: no tick is."""
    if reading.load(rows).busy:
        return 0
    return expiry.next_due(rows) if plan.ttl is not None else None


def restart(rows: Rows, committed: Mapping[str, int], plan: Plan) -> tuple[str, ...]:
    """Return the topics that must be read from the beginning, since the rows are of another definition (`reading.restart`)."""
    return reading.restart(rows, committed, plan.fingerprint, plan.assumed, plan.sources.topics)


def restore(rows: Rows, plan: Plan) -> None:
    """Rebuild the derived rows of a partition."""
    expiry.restore(rows, plan.ttl)


def _earlier(source: str, record: Summary | Removed, before: Given) -> bool:
    """Return whether a record is from before the last one of its source: a lower sequence, or that before its confirmation.

    That has an older time under the same version, and the later one comes again behind it.
    """
    sequence = sequence_of(source, record)
    if source or not before.gives or sequence != before.sequence or isinstance(record, Removed):
        return sequence < before.sequence
    return record.time < before.time


def _given(rows: Rows, record: Summary | Removed, source: str, before: Given | None, plan: Plan) -> Given:
    """Return what a source gives after one of its records."""
    sequence = sequence_of(source, record)
    if isinstance(record, Removed) or not plan.sources.counts(source, record):
        return Given(source, sequence, record.version, record.time, gives=False)
    summary = publish(record, published=0, copy_of="", copies=(), copies_count=0, views=()) if source else record
    if plan.ttl is not None and plan.ttl < summary.ttl:
        summary = replace(summary, ttl=plan.ttl)
    confirmed = summary.time
    if before is not None and before.version == record.version:
        confirmed = max(confirmed, before.time)
    accepted = plan.accepts is None or plan.accepts(record)
    alive = not expiry.overdue(rows, confirmed, plan.ttl)
    return Given(source, sequence, record.version, confirmed, encode(summary) if accepted and alive else b"", gives=alive)


def _tick(rows: Rows, tick: Tick, origin: Origin, plan: Plan) -> Iterator[Registered]:
    settling = Settling(rows, origin, plan.sources, plan.ttl)
    yield from settling.repeat()
    if plan.ttl is not None and not tick.held:
        for key, known, given in expiry.expired(rows, tick, plan.ttl, CHUNK):
            yield from settling.settle(key, known, given, Outcome("expired", tick.time))
    yield from _read_again(rows, tick, settling)


def _read_again(rows: Rows, tick: Tick, settling: Settling) -> Iterator[Registered]:
    """Complete a reading, or sweep a chunk of what is held from sources that are no longer named."""
    present = reading.load(rows)
    if not present.busy:
        return
    if not present.complete:
        reading.save(rows, reading.completed(present, tick.ends))
        return
    chunk = list(rows.scan(PREFIX, after=present.cursor or b"", limit=CHUNK))
    for key, value in chunk:
        known = entries.upgraded(entries.decode_entry(value))
        given = tuple(one for one in known.given if one.source in settling.sources.names)
        if given != known.given:
            yield from settling.settle(key, known, given, Outcome("filtered", tick.time))
    reading.save(rows, replace(present, cursor=chunk[-1][0] if len(chunk) == CHUNK else None))
