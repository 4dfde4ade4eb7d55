"""The state of each Broker: summaries, what it has still to read, its last change, what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from schemas.query import Every
from sinks.index.errors import IndexDamaged
from streams.config.topology import topology_of
from streams.operations.indexes import open_index
from streams.topology.flow import archive

if TYPE_CHECKING:
    from streams.brokers import Definitions
    from streams.config.settings import Settings
    from streams.logs import LogAccess


class BrokerState(NamedTuple):
    """What `harvest broker list` tells of a Broker."""

    name: str
    title: str
    summaries: int
    lag: int
    """Records that its stages have not read yet."""
    changed: str
    """Time of the last record of its archive, of any partition (ISO 8601); "" if there is none."""
    problems: tuple[str, ...]


def states(found: Settings, defined: Definitions, log: LogAccess | None) -> Iterator[BrokerState]:
    """Yield the state of each Broker, wrong ones last; without a log, nothing has been read yet. Raises OSError, StoreError."""
    lags = [*log.lags(topology_of(found))] if log else []
    for broker_found in defined.brokers:
        name = broker_found.name
        changed = _changed(log, archive(name).name) if log else ""
        held, problem = _held(found, name) if changed else (0, "")
        yield BrokerState(
            name,
            broker_found.title,
            held,
            sum(one.lag for one in lags if one.group.endswith(f".{name}")),
            changed,
            (problem,) if problem else (),
        )
    wrong: dict[str, tuple[str, ...]] = {}
    for mistake in defined.mistakes:
        wrong[mistake.broker] = (*wrong.get(mistake.broker, ()), mistake.line)
    for name, lines in wrong.items():
        yield BrokerState(name, "", 0, 0, "", lines)


def _held(found: Settings, broker: str) -> tuple[int, str]:
    """Return the number of summaries in the index of a Broker, and what is wrong with it."""
    try:
        index = open_index(found, broker)
    except (OSError, IndexDamaged) as error:
        return 0, str(error)
    try:
        return index.count(Every()), ""
    except (OSError, IndexDamaged) as error:
        return 0, str(error)
    finally:
        index.close()


def _changed(log: LogAccess, topic: str) -> str:
    """Return the time of the last record of a topic."""
    if topic not in log.topics():
        return ""
    times = [record.time for number, end in enumerate(log.ends(topic)) if end for record in log.read(topic, number, end - 1, 1)]
    return datetime.fromtimestamp(max(times) / 1000, UTC).isoformat(timespec="seconds") if times else ""
