"""The Brokers of the settings, asked in process: their words, counted when they are needed, and their indexes.

Statistics are kept in the data folder, with the offsets that they cover, and counted again once 5 per cent of the Broker's records
have changed since. Where the folder cannot be written to, they are kept in memory alone.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from processors.broker.definition import Broker
from processors.query import QueryError
from processors.query.routing import Answered
from processors.query.statistics import Statistics, decode_statistics, encode_statistics
from schemas.query import Every, Query
from sinks.gateway.brokers.ports import BrokerFacts
from sinks.gateway.index_pool import IndexPool
from streams.config.topology import brokers_of
from streams.operations.indexes import open_index
from streams.routing.counting import Counted, count_words
from streams.store import AbsentError
from streams.topology.flow import archive

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from schemas.ports import BrokerIndex, Log
    from streams.config.settings import Settings

FOLDER = "statistics"
"""Folder of the statistics in the data folder, one file a Broker."""
CHANGED = 0.05
"""Share of a Broker's records that may change before its words are counted again."""


class _Kept(msgspec.Struct, array_like=True):
    """Statistics in a file."""

    ends: tuple[int, ...]
    languages: tuple[str, ...]
    encoded: bytes


class LocalBrokers:
    """The Brokers of the settings, or some of them. For any thread; counting is for one at a time."""

    def __init__(
        self, found: Settings, open_log: Callable[[], AbstractContextManager[Log]], names: Sequence[str] | None = None
    ) -> None:
        """`open_log` opens the log for reading; `names`: the Brokers that are meant, None: all of the settings."""
        self._found = found
        self._open_log = open_log
        self._brokers = {broker.name: broker for broker in brokers_of(found) if names is None or broker.name in names}
        self._pools = {name: IndexPool(self._opener(name)) for name in self._brokers}
        self._known: dict[str, Counted] = {}
        self._counting = threading.Lock()

    def _opener(self, name: str) -> Callable[[], BrokerIndex]:
        return lambda: open_index(self._found, name, self._found.serve.timeout)

    @property
    def names(self) -> Sequence[str]:
        """Names of the Brokers."""
        return list(self._brokers)

    def facts(self) -> Sequence[BrokerFacts]:
        """Return what there is to know of each Broker that has an index. Words are not counted for it."""
        found = []
        for name, broker in self._brokers.items():
            with suppress(OSError, RuntimeError, QueryError):
                summaries = self._pools[name].ask(lambda index: index.search(Every(), 0).total)
                found.append(BrokerFacts(name, broker.title, summaries))
        return found

    def statistics(self, name: str) -> Statistics:
        """Return the statistics of a Broker, counted now if they are missing or old. Raises KeyError if it has no archive."""
        try:
            return self._counted(self._brokers[name])
        except AbsentError:
            raise KeyError(name) from None

    def _counted(self, broker: Broker) -> Statistics:
        name = broker.name
        with self._counting, self._open_log() as log:
            ends = tuple(log.ends(archive(name).name))
            known = self._known.get(name) or self._read(broker)
            if known is None or _is_old(known, ends):
                known = count_words(log, broker)
                self._write(broker, known)
            self._known[name] = known
            return known.statistics

    def all_statistics(self) -> Mapping[str, Statistics]:
        """Return the statistics of every Broker that has an archive."""
        found = {}
        for name in self._brokers:
            with suppress(KeyError):
                found[name] = self.statistics(name)
        return found

    def search(self, name: str, query: Query, limit: int) -> Answered:
        """Return the best hits of a Broker. Raises KeyError, QueryError, OSError, IndexDamaged."""
        return self._pools[name].ask(lambda index: _answer(index, name, query, limit))

    def close(self) -> None:
        """Close the indexes."""
        with ExitStack() as stack:
            for pool in self._pools.values():
                stack.callback(pool.close)

    def _path(self, name: str) -> Path:
        return self._found.data / FOLDER / name

    def _read(self, broker: Broker) -> Counted | None:
        """Return the statistics that the data folder has; None if there are none, or others than these settings ask for."""
        with suppress(OSError, ValueError, msgspec.DecodeError):
            kept = msgspec.msgpack.decode(self._path(broker.name).read_bytes(), type=_Kept)
            if kept.languages == broker.languages:
                return Counted(kept.ends, decode_statistics(kept.encoded))
        return None

    def _write(self, broker: Broker, counted: Counted) -> None:
        kept = _Kept(counted.ends, broker.languages, encode_statistics(counted.statistics))
        with suppress(OSError):
            write_whole(self._path(broker.name), msgspec.msgpack.encode(kept))


def write_whole(path: Path, data: bytes) -> None:
    """Write a file that readers see whole or not at all; its folder is made, but not the one above it. Raises OSError."""
    path.parent.mkdir(exist_ok=True)
    number, name = tempfile.mkstemp(dir=path.parent)
    try:
        with open(number, "wb") as stream:
            stream.write(data)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _is_old(known: Counted, ends: Sequence[int]) -> bool:
    """Return whether so much has changed that the words are counted again; an archive that was made anew is shorter."""
    if len(known.ends) != len(ends) or any(end < covered for end, covered in zip(ends, known.ends, strict=True)):
        return True
    return sum(ends) - sum(known.ends) > CHANGED * known.statistics.summaries


def _answer(index: BrokerIndex, name: str, query: Query, limit: int) -> Answered:
    page = index.search(query, limit)
    digests: Sequence[str] = ()
    # An index alone, without the records, knows no digests.
    with suppress(QueryError):
        records = index.records([hit.oid for hit in page.hits])
        digests = [records[hit.oid].md5 if hit.oid in records else "" for hit in page.hits]
    return Answered(name, page.hits, page.total, digests)


def mark(statistics: bytes) -> str:
    """Return the mark of encoded statistics: equal ones have equal marks."""
    return hashlib.sha256(statistics).hexdigest()[:16]
