"""The state of each Broker: summaries, what it has still to read, its last change, what is wrong with it; and its removal.

Law: a removal that was interrupted can be repeated, and a Broker that is created again after it is filled from its sources. So what
is made from the topics goes first, and topics, rows and offsets in one step after it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from processors.broker.definition import Broker
from schemas.query import Every
from sinks.index.errors import IndexDamaged
from streams.operations.feed import feed_file
from streams.operations.indexes import alias, open_index, server
from streams.store.data_folder import STATISTICS, index_folder, known
from streams.topology.flow import SUMMARIES, Stage, Topology, archive
from streams.topology.flow import broker as stages_of

if TYPE_CHECKING:
    from streams.brokers import Definitions
    from streams.config.settings import Settings
    from streams.logs import LogAccess
    from streams.store import Store


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
    for broker_found in defined.brokers:
        name = broker_found.name
        changed = _changed(log, archive(name).name) if log else ""
        held, problem = _held(found, name) if changed else (0, "")
        yield BrokerState(
            name,
            broker_found.title,
            held,
            _lag(log, broker_found) if log else 0,
            changed,
            (problem,) if problem else (),
        )
    wrong: dict[str, tuple[str, ...]] = {}
    # What is wrong with the folder of the definitions is wrong with no Broker.
    for mistake in (one for one in defined.mistakes if one.broker):
        wrong[mistake.broker] = (*wrong.get(mistake.broker, ()), mistake.line)
    for name, lines in wrong.items():
        yield BrokerState(name, "", 0, 0, "", lines)


def _lag(log: LogAccess, broker: Broker) -> int:
    """Return the number of records that the stages of a Broker have not read; without its index, if that cannot be read."""
    lag = 0
    # What is wrong with an index is among the problems of its Broker.
    with suppress(IndexDamaged):
        for one in log.lags(Topology(stages_of(broker))):
            lag += one.lag
    return lag


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


class Owned(NamedTuple):
    """What belongs to one Broker alone, by names without a prefix."""

    topics: tuple[str, ...]
    stages: tuple[str, ...]
    """Stages, which are groups of consumers."""
    tables: tuple[str, ...]
    """Those of the stages that have rows."""

    @classmethod
    def of(cls, name: str) -> Owned:
        """Return what belongs to a Broker of that name, with a stream or without."""
        stages = stages_of(Broker(name, stream=True))
        topics = tuple(topic.name for topic in Topology(stages).topics if topic.name != SUMMARIES.name)
        return cls(topics, tuple(one.name for one in stages), tuple(one.name for one in stages if isinstance(one, Stage)))


def readers_of(found: Settings, name: str) -> list[str]:
    """Return the other Brokers of which a data folder has rows that are made from a Broker's archive. Raises StoreError.

    Nothing removes what such rows have of it once it is made anew, unless their own definition changes.
    """
    topic, stage = archive(name).name, "register."
    with known(found.data) as store:
        groups = [] if store is None else [one for one in store.groups() if one.startswith(stage)]
        reading = [one for one in groups if store is not None and any(at == topic for at, _ in store.offsets(one))]
    return [one.removeprefix(stage) for one in reading if one != f"{stage}{name}"]


def forget_files(found: Settings, name: str) -> list[str]:
    """Delete index, stream and statistics of a Broker; return what there was. No sink may be at work on them. Raises OSError."""
    done: list[str] = []
    if found.index.url and _forget_on_server(found, name):
        done.append("its index")
    folder = index_folder(found.data, name)
    folders = [path for path in (folder, *(folder.with_name(f"{name}.{end}") for end in ("new", "old"))) if path.is_dir()]
    for path in folders:
        shutil.rmtree(path)
    if folders:
        done.append(f"{folder}")
    stream = feed_file(found.data, name)
    done += [str(path) for path in (stream, found.data / STATISTICS / name) if path.exists()]
    for path in (stream, *(stream.with_name(f"{stream.name}-{end}") for end in ("wal", "shm")), found.data / STATISTICS / name):
        path.unlink(missing_ok=True)
    return done


def _forget_on_server(found: Settings, name: str) -> int:
    from sinks.index.opensearch.aliases import forget  # noqa: PLC0415 - loaded by those who have a server
    from sinks.index.opensearch.node import Node  # noqa: PLC0415 - as above

    with closing(Node(server(found))) as node:
        return forget(node, alias(found, name))


def forget_in_folder(found: Settings, name: str) -> list[str]:
    """Delete all that a data folder has of a Broker; return what there was. Raises OSError, StoreError, also beside a runner."""
    with known(found.data) as store:
        if store is None:
            return forget_files(found, name)
    from streams.store import Store  # noqa: PLC0415 - for its runner's lock

    with Store(found.data, runner=True) as store:
        return [*forget_files(found, name), *_forget_in_log(store, Owned.of(name))]


def _forget_in_log(store: Store, owned: Owned) -> list[str]:
    topics = sum(topic in store.topics() for topic in owned.topics)
    records = store.forget(owned.topics, owned.tables)
    return [f"{topics} topics ({records:,} records)"] if topics else []
