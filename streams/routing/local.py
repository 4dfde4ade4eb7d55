"""The Brokers of the settings, asked in process: their words, counted when they are needed, and their indexes.

Statistics are kept in the data folder, with the offsets that they cover, and counted again once 5 per cent of the Broker's records
have changed since. Where the folder cannot be written to, they are kept in memory alone.

Laws:
- Words are counted for one request at a time; statistics that are there are returned meanwhile.
- A routed search waits for an index at most as long as for another gateway (`routing.deadline`). An engine cannot be interrupted,
  so all routed searches have THREADS threads in common: where these hang, further searches find no answer in time, and start none.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from processors.broker.definition import Broker
from processors.query import QueryError
from processors.query.routing.merging import Answered
from processors.query.routing.statistics import Statistics, decode_statistics, encode_statistics
from schemas.query import Every, Query
from sinks.gateway.brokers.ports import BrokerFacts
from sinks.gateway.index_pool import IndexPool
from sinks.index.errors import IndexUnreachable
from streams.config.topology import brokers_of
from streams.operations.indexes import open_index
from streams.operations.views import written_out
from streams.routing.counting import count_words
from streams.routing.files import write_whole
from streams.store import AbsentError
from streams.store.data_folder import STATISTICS
from streams.topology.flow import archive

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from processors.query.terms import Views
    from schemas.ports import BrokerIndex, Log
    from streams.config.settings import Settings

THREADS = 4
"""Local Brokers that are asked at once by all routed searches."""
CHANGED = 0.05
"""Share of a Broker's records that may change before its words are counted again."""


class _Kept(msgspec.Struct, array_like=True):
    """Statistics as they are kept."""

    ends: tuple[int, ...]
    languages: tuple[str, ...]
    encoded: bytes

    @property
    def mark(self) -> str:
        """Mark of the statistics: equal ones have equal marks."""
        return hashlib.sha256(self.encoded).hexdigest()[:16]


class LocalBrokers:
    """The Brokers of the settings, or some of them. For any thread; counting is for one at a time."""

    def __init__(
        self, found: Settings, open_log: Callable[[], AbstractContextManager[Log]], names: Sequence[str] | None = None
    ) -> None:
        """`open_log` opens the log for reading; `names`: the Brokers that are meant, None: all of the settings."""
        self._found = found
        self._open_log = open_log
        self._brokers = {broker.name: broker for broker in brokers_of(found) if names is None or broker.name in names}
        self._pools = {name: IndexPool(self._opener(name, found.serve.timeout)) for name in self._brokers}
        patience = min(found.serve.timeout, found.routing.deadline)
        self._hurried = {name: IndexPool(self._opener(name, patience)) for name in self._brokers}
        """The indexes again, for those who wait for an answer as long as for that of another gateway."""
        self._threads = ThreadPoolExecutor(THREADS, "harvest-routed")
        self._known: dict[str, tuple[_Kept, Statistics]] = {}
        self._counting = threading.Lock()

    def _opener(self, name: str, timeout: float) -> Callable[[], BrokerIndex]:
        return lambda: open_index(self._found, name, timeout)

    @property
    def names(self) -> Sequence[str]:
        """Names of the Brokers."""
        return list(self._brokers)

    def facts(self) -> Sequence[BrokerFacts]:
        """Return what there is to know of each Broker that has an index; words are not counted for it. Raises StoreError."""
        found = []
        for name, broker in self._brokers.items():
            try:
                summaries = self._hurried[name].ask(lambda index: index.search(Every(), 0).total)
            except IndexUnreachable:
                break  # all have one server
            except (OSError, RuntimeError, QueryError):
                continue
            kept = self._current(broker)
            found.append(BrokerFacts(name, broker.title, summaries, kept.mark if kept else ""))
        return found

    def counted(self, name: str) -> bytes | None:
        """Return the encoded statistics of a Broker; None if its words have to be counted first. Raises KeyError."""
        kept = self._current(self._brokers[name])
        return kept.encoded if kept else None

    def _current(self, broker: Broker) -> _Kept | None:
        """Return the statistics of a Broker without waiting; None if they are missing or old, or it has no archive."""
        with suppress(KeyError, AbsentError), self._open_log() as log:
            kept = self._known.get(broker.name, (None,))[0] or self._read(broker)
            if kept is not None and not _is_old(kept, log.ends(archive(broker.name).name)):
                return kept
        return None

    def statistics(self, name: str) -> bytes:
        """Return the encoded statistics of a Broker, counted if they are missing or old. Raises KeyError if it has no archive."""
        return self._kept(name)[0].encoded

    def _kept(self, name: str) -> tuple[_Kept, Statistics]:
        """Return the statistics of a Broker in both forms. Raises KeyError."""
        broker = self._brokers[name]
        try:
            with self._counting, self._open_log() as log:
                return self._counted(broker, log)
        except AbsentError:
            raise KeyError(name) from None

    def _counted(self, broker: Broker, log: Log) -> tuple[_Kept, Statistics]:
        ends = tuple(log.ends(archive(broker.name).name))
        known = self._known.get(broker.name)
        if known is None and (kept := self._read(broker)) is not None:
            known = kept, decode_statistics(kept.encoded)
        if known is None or _is_old(known[0], ends):
            counted = count_words(log, broker)
            kept = _Kept(counted.ends, broker.languages, encode_statistics(counted.statistics))
            with suppress(OSError):
                write_whole(self._path(broker.name), msgspec.msgpack.encode(kept))
            known = kept, counted.statistics
        self._known[broker.name] = known
        return known

    def all_statistics(self) -> Mapping[str, Statistics]:
        """Return the statistics of every Broker that has an archive."""
        found = {}
        for name in self._brokers:
            with suppress(KeyError):
                found[name] = self._kept(name)[1]
        return found

    def views(self, name: str) -> Views:
        """Return what `view:PATH` is written out as in a Broker. Raises KeyError."""
        broker = self._brokers[name]
        with suppress(AbsentError), self._open_log() as log:
            return written_out(log, broker.name)
        return {}

    def search(self, name: str, query: Query, limit: int) -> Answered:
        """Return the best hits of a Broker. Raises KeyError, QueryError, OSError, IndexDamaged."""
        return self._pools[name].ask(lambda index: _answer(index, name, query, limit))

    def begin_search(self, name: str, query: Query, limit: int) -> Future[Answered]:
        """Begin a search for the best hits of a Broker, as part of a routed one. Raises RuntimeError after `close`."""
        return self._threads.submit(lambda: self._hurried[name].ask(lambda index: _answer(index, name, query, limit)))

    def close(self) -> None:
        """Close the indexes; those that are being asked end by themselves."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        with ExitStack() as stack:
            for pool in (*self._pools.values(), *self._hurried.values()):
                stack.callback(pool.close)

    def _path(self, name: str) -> Path:
        return self._found.data / STATISTICS / name

    def _read(self, broker: Broker) -> _Kept | None:
        """Return the statistics that the data folder has; None if there are none, or others than these settings ask for."""
        with suppress(OSError, ValueError, msgspec.DecodeError):
            kept = msgspec.msgpack.decode(self._path(broker.name).read_bytes(), type=_Kept)
            decode_statistics(kept.encoded)
            if kept.languages == broker.languages:
                return kept
        return None


def _is_old(kept: _Kept, ends: Sequence[int]) -> bool:
    """Return whether so much has changed that the words are counted again; an archive that was made anew is shorter."""
    if len(kept.ends) != len(ends) or any(end < covered for end, covered in zip(ends, kept.ends, strict=True)):
        return True
    return sum(ends) - sum(kept.ends) > CHANGED * sum(kept.ends)


def _answer(index: BrokerIndex, name: str, query: Query, limit: int) -> Answered:
    page = index.search(query, limit)
    digests: Sequence[str] = ()
    # An index alone, without the records, knows no digests.
    with suppress(QueryError):
        records = index.records([hit.oid for hit in page.hits])
        digests = [records[hit.oid].md5 if hit.oid in records else "" for hit in page.hits]
    return Answered(name, page.hits, page.total, digests)
