"""Routing of records to topics by type, and dead letters for records that a stage cannot process.

Shared by the runners and the simulator, so that they behave the same.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from schemas.codec import DecodeError
from schemas.ports import Logged, Origin
from schemas.records import MAX_DETAIL, MAX_REASON, CrawlEvent, Record, Rejected, Tick
from streams.clock import AHEAD
from streams.topology.flow import Edge, Stage, Topic

MAX_VERSION = 1 << 62
"""Highest version that a stage accepts. Versions are times in ms, or one more than the last, so this leaves room for later ones."""


class Routed(NamedTuple):
    """A record with its destination topic and key."""

    topic: str
    key: bytes
    record: Record


class Router:
    """The topic of each record type that a stage writes; every stage may write `rejected`."""

    def __init__(self, stage: Stage[Any, Any] | Edge[Any, Any], rejected: Topic[Rejected]) -> None:
        self._by_type: dict[type[Record], Topic[Any]] = {Rejected: rejected}
        for topic in stage.outputs:
            for cls in topic.carries:
                self._by_type[cls] = topic
        self._carried = {topic.name: topic.carries for topic in stage.inputs}
        if isinstance(stage, Stage) and stage.ticks:
            self._carried[stage.ticks.name] = stage.ticks.carries
        self.stage = stage

    def admit(self, topic: str, record: Record, now: int | None = None) -> None:
        """Raise DecodeError for a record that its topic does not carry: a stage might confuse it with a similar type.

        Also raises it for a version above MAX_VERSION, and for a tick or an event more than AHEAD later than `now` (ms): time never
        goes back, so such a record would expire everything for good. Kafka brokers refuse it from a worker with a wrong clock; an
        import may contain it.
        """
        if not isinstance(record, self._carried[topic]):
            raise DecodeError(f"a {type(record).__name__}")
        if not all(0 <= getattr(record, name, 0) <= MAX_VERSION for name in ("version", "published")):
            raise DecodeError("a version out of range")
        if now is not None and isinstance(record, Tick | CrawlEvent) and record.time > now + AHEAD:
            raise DecodeError("a time in the future")

    def route(self, record: Record) -> Routed:
        """Return a record with its topic and key. Raises KeyError if the stage has no topic for its type: a bug of Harvest."""
        topic = self._by_type[type(record)]
        return Routed(topic.name, topic.key(record).encode(), record)


def refused_letter(stage: str, why: str, logged: Logged) -> Rejected:
    """Return the dead letter of a record that the destination of a stage refuses, with the time of that record."""
    return Rejected(
        stage=stage,
        reason=f"refused by the {stage}"[:MAX_REASON],
        time=logged.time,
        detail=why[:MAX_DETAIL],
        topic=logged.topic,
        partition=logged.partition,
        offset=logged.offset,
        key=logged.key,
        value=logged.value,
    )


def poisoned_letter(stage: str, error: Exception, origin: Origin, key: bytes, value: bytes | None, time: int) -> Rejected:
    """Return the dead letter of a record that a stage could not process, with its bytes, so that it can be retried."""
    reason = f"not a record: {error}" if isinstance(error, DecodeError) else f"error in {stage}: {type(error).__name__}"
    return Rejected(
        stage=stage,
        reason=reason[:MAX_REASON],
        time=time,
        detail=f"{type(error).__name__}: {error}"[:MAX_DETAIL],
        topic=origin.topic,
        partition=origin.partition,
        offset=origin.offset,
        key=key,
        value=value,
    )
