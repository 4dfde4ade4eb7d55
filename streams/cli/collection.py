"""The Gatherer's side of the gateway: status, histories and findings, from the data folder or from Kafka. It reads only.

Status and findings are cached, for longer the longer they take; while one thread computes them anew, the others get the older
answer. So a page that is reloaded costs next to nothing, however large the collection is. A history reads the whole log each time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, BinaryIO, Generic, Protocol, TypeVar

from processors.broker.definition import MAIN
from sinks.gateway.ports import CollectionError, Event, Finding, ObjectError, Status
from streams.cli.checks import checks
from streams.cli.common import Failure, explained, open_log, printable
from streams.cli.feed_access import FeedAccess
from streams.config.topology import broker_defined, topology_of

if TYPE_CHECKING:
    from processors.query.terms import Views
    from schemas.records import Root, Summary
    from sinks.feed.reader import FeedReader
    from streams.config.settings import Settings
    from streams.logs import LogAccess
    from streams.topology.flow import Topology

FRESH = 2.0
"""Seconds for which a status is returned again."""
CHECKED = 60.0
"""Seconds for which findings are returned again: checks start child processes and read the whole data folder."""
PATIENCE = 20.0
"""Seconds that a request waits until the feed is filled."""
SHARE = 10
"""An answer is returned again for this many times the time that it took: at most that part of a core is spent on it."""
NO_BODIES = "objects are not served here (serve.objects)"

Value = TypeVar("Value")


class Bodies(Protocol):
    """Access to the bytes of objects."""

    def open(self, summary: Summary) -> tuple[BinaryIO, int]:
        """Open the bytes that a summary describes, and return their number. Raises ObjectError."""
        ...

    def close(self) -> None:
        """Release what it holds."""
        ...


class Cached(Generic[Value]):
    """A value that is computed again only after some time: at least `fresh` seconds. For any thread."""

    def __init__(self, compute: Callable[[], Value], fresh: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._compute = compute
        self._fresh = fresh
        self._clock = clock
        self._computing = Lock()
        self._kept: tuple[Value, float] | None = None
        """The value, and the time until which it is returned again."""

    def get(self) -> Value:
        """Return the value; an older one while another thread computes it. Raises what computing it raises."""
        kept = self._kept
        if kept is not None and self._clock() < kept[1]:
            return kept[0]
        if not self._computing.acquire(blocking=kept is None):
            return kept[0]  # type: ignore[index]
        try:
            return self._again()
        finally:
            self._computing.release()

    def _again(self) -> Value:
        if self._kept is not None and self._clock() < self._kept[1]:
            return self._kept[0]  # computed while this thread waited
        begun = self._clock()
        value = self._compute()
        now = self._clock()
        self._kept = value, now + max(self._fresh, SHARE * (now - begun))
        return value


class GathererCollection:
    """Implements `sinks.gateway.ports.Collection`. Each call opens the log: a store is for one thread."""

    def __init__(
        self,
        found: Settings,
        bodies: Bodies | None = None,
        clock: Callable[[], float] = time.monotonic,
        *,
        broker: str = MAIN,
        restricted: bool = False,
    ) -> None:
        """`broker`: the one that is served; `restricted`: it accepts only some summaries, so there is no feed, which has all."""
        self._found = found
        self._broker = broker
        self._restricted = restricted
        self._bodies = bodies
        self._feed = FeedAccess(found)
        self._clock = clock
        self._status = Cached(self._read_status, FRESH, clock)
        self._findings = Cached(lambda: [Finding(*check) for check in checks(found)], CHECKED, clock)
        self._answers: tuple[float, int] | None = None
        """Time and number of answers to requests when the status was last read."""

    def status(self) -> Status:
        """See Collection."""
        return self._status.get()

    def why(self, url: str) -> Sequence[Event]:
        """See Collection; a path of this machine is a name too."""
        from streams.cli.commands.why import known_events

        if not self._found.kafka.brokers and self._is_absent():
            return ()
        try:
            events = known_events(self._found, url)
        except (Failure, ValueError):
            return ()  # what is no URL, or has a NUL, names nothing
        except Exception as error:
            raise CollectionError(_line(error)) from error
        return [Event(one.time, one.topic, one.event, one.reason, one.version) for one in events]

    def views(self) -> Views:
        """See Collection."""
        from streams.operations.views import written_out

        try:
            if not self._found.kafka.brokers and self._is_absent():
                return {}
            with open_log(self._found) as log:
                return written_out(log, self._broker)
        except CollectionError:
            raise
        except Exception as error:
            raise CollectionError(_line(error)) from error

    def findings(self) -> Iterable[Finding]:
        """See Collection."""
        return self._findings.get()

    def body(self, summary: Summary) -> tuple[BinaryIO, int]:
        """See Collection."""
        if self._bodies is None:
            raise ObjectError(NO_BODIES, 403)
        return self._bodies.open(summary)

    def feed(self) -> FeedReader:
        """See Collection."""
        from sinks.feed.errors import FeedMissing

        if self._restricted:
            raise ObjectError("this is the gateway of a Broker that accepts only some summaries, and the stream has all", 403)
        try:
            return self._feed.open(PATIENCE)
        except TimeoutError:
            raise CollectionError("the stream is being made: try again in a moment") from None
        except FeedMissing:
            how = "a worker of the stage feed (feed.enabled) that shares this data folder makes it"
            raise CollectionError(f"there is no stream here: {how}") from None
        except Exception as error:
            raise CollectionError(_line(error)) from error

    def close(self) -> None:
        """Release what access to bytes and to the feed holds."""
        self._feed.close()
        if self._bodies is not None:
            self._bodies.close()

    def _is_absent(self) -> bool:
        from streams.store import AbsentError, Store

        try:
            Store(self._found.data, readonly=True).close()
        except AbsentError:
            return True
        except Exception as error:
            raise CollectionError(_line(error)) from error
        return False

    def _read_status(self) -> Status:
        found, drawn = self._found, topology_of(self._found)
        try:
            if not found.kafka.brokers and self._is_absent():
                return _empty(f"{found.data}: no data folder yet (harvest gather ROOT makes it)")
            with open_log(found) as log:
                return self._with_rate(self._status_of(log, drawn), log)
        except CollectionError as error:
            return _empty(str(error))
        except Exception as error:  # noqa: BLE001 - the page shows what is wrong; a bug is raised again
            return _empty(_line(error))

    def _status_of(self, log: LogAccess, drawn: Topology) -> Status:
        found = self._found
        if found.kafka.brokers:
            from streams.kafka.client.status import cluster_status

            status = cluster_status(log, drawn, found.gatherer if "gatherer" in found.model_fields_set else "")
            return status._replace(more=(*status.more, *self._feed_notes(log)))
        from streams.embedded.status import folder_status
        from streams.logs import StoreLog

        assert isinstance(log, StoreLog)  # noqa: S101 - for mypy: `open_log` gives it where there is no Kafka
        return folder_status(log.store, drawn)

    def _feed_notes(self, log: LogAccess) -> list[str]:
        """Return a note if the feed that a worker fills in the data folder lacks a part of its topic."""
        from streams.operations.feed import feed_report

        try:
            whole, text = feed_report(self._found.data, log)
        except OSError:
            return ["the stream for other Gatherers cannot be read: harvest doctor says more"]
        return [] if whole else [f"the stream for other Gatherers: {text}"]

    def _with_rate(self, status: Status, log: LogAccess) -> Status:
        """Add the rate of answers since the status was last read, if there were any."""
        now, number = self._clock(), sum(log.ends("objects")) if "objects" in log.topics() else 0
        before, self._answers = self._answers, (now, number)
        if before is None or number <= before[1] or now <= before[0]:
            return status
        rate = f"{(number - before[1]) / (now - before[0]):.1f} answers a second"
        return status._replace(run=f"{status.run}; {rate}" if status.run else rate)


def collection_of(found: Settings, broker: str = MAIN) -> GathererCollection:
    """Return the collection of the settings; its objects are found by the summaries of a Broker. Raises Failure."""
    served = found.serve.objects and not found.kafka.brokers
    restricted = bool(broker_defined(found, broker).query)
    return GathererCollection(found, _bodies(found, broker) if served else None, broker=broker, restricted=restricted)


def _bodies(found: Settings, broker: str) -> Bodies:
    """Return access to the bytes of the objects of a data folder. Raises Failure."""
    import msgspec

    from streams.cli.wiring import blob_settings, essence_settings, fetch_settings, own_additions
    from streams.edges.object_body import BodyLimits, BodySources, ObjectBodies
    from streams.embedded import runs
    from streams.operations.registered import entry, summary_of
    from streams.sandbox.values import SandboxLimits
    from streams.store.bodies import open_bodies
    from streams.store.data_folder import known

    def roots() -> Sequence[Root]:
        with known(found.data) as store:
            return runs.roots(store) if store is not None else []

    def find(oid: str) -> Summary | None:
        with known(found.data) as store:
            kept = entry(store, broker, oid) if store is not None else None
        return summary_of(kept) if kept is not None else None

    added, fetch = own_additions(found), fetch_settings(found)
    essence, limits = essence_settings(found, found.gatherer, added), msgspec.convert(found.sandbox.model_dump(), SandboxLimits)
    # A client does not wait for a storage that does not answer.
    sources = BodySources(
        roots, open_bodies(found.data, blob_settings(found), patience=0, max_body=fetch.largest), found.data, find
    )
    return ObjectBodies(sources, BodyLimits.of(limits, essence, fetch.max_file), added)


def _empty(note: str) -> Status:
    return Status("", "", (), (), (), (), (printable(note),))


def _line(error: Exception) -> str:
    """Return the line for the user; raises an error that is a bug again."""
    mistake = explained(error)
    if mistake is None:
        raise error
    return printable(mistake[0])
