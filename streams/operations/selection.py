"""The part of a topic of summaries that a replay reads: records from a time on, of some Gatherers.

Laws:
- A removal names no Gatherer. It belongs to the selected Gatherer whose name, with the removal's URL, gives its OID. If the OID is
  made otherwise, as for summaries imported from another Gatherer, it belongs to the Gatherer whose summary of that OID was read
  before, or is in the index.
- "From a time on" means from the first record of that time or a later one, in each partition, to the end: a later record that was
  imported with an older time may be the removal of an earlier one.
- `summaries` has no publish counters: there the version decides which of two is newer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

import msgspec

from processors.broker.definition import Broker
from processors.broker.settling import filtered
from processors.identity import oid
from schemas.codec import DecodeError
from schemas.ports import Log, Logged
from schemas.records import Summary
from streams.operations.index_changes import Change, change
from streams.operations.latest_versions import LatestVersions
from streams.topology.flow import SUMMARIES


class Source(Log, Protocol):
    """The log operations that a selection needs: see `streams.logs.LogAccess`."""

    def since(self, topic: str, time_ms: int) -> Sequence[int]:
        """Return, by partition, the first offset whose record has that time or a later one; the end if there is none."""
        ...


class Selection(NamedTuple):
    """What is asked for; without more, all that the topic holds: a Broker's archive, or `summaries`."""

    topic: str
    since: int | None = None
    """ms since the epoch."""
    gatherers: frozenset[str] = frozenset()
    broker: Broker = Broker()
    """The Broker whose index is made: its filter and its time-to-live apply to records of `summaries`."""

    @property
    def whole(self) -> bool:
        """Whether an index of this selection holds everything that its sink would have put there."""
        return self.since is None and not self.gatherers and self.topic != SUMMARIES.name

    def begins(self, log: Source) -> list[int]:
        """Return the first offset to read in each partition."""
        return [0] * log.topics()[self.topic] if self.since is None else list(log.since(self.topic, self.since))


class ReplayProgress(msgspec.Struct):
    """Progress of a replay or rebuild."""

    read: int = 0
    applied: int = 0
    """Changes that the index accepted."""
    refused: int = 0
    left: int = 0
    """Upper limit of the records still to be read: some may have been compacted away."""
    held: int = 0
    """Summaries in the index, at the end."""


Watch = Callable[[ReplayProgress], None]
"""Called with the progress of each batch."""


def batches(log: Log, topic: str, partition: int, start: int, end: int, size: int) -> Iterator[tuple[Sequence[Logged], int]]:
    """Yield the records of a range, at most `size` at a time, each batch with the offset behind it."""
    while start < end:
        batch = log.read(topic, partition, start, size, until=end)
        # A short batch means that the other records were compacted away.
        start = batch[-1].offset + 1 if len(batch) == size else end
        yield batch, start


class Selector:
    """Selects records of a topic, given in order. `held` returns the OIDs of the selected Gatherers in the index."""

    def __init__(self, selection: Selection, held: Callable[[], Iterable[str]] = tuple) -> None:
        self._selection = selection
        self._accepts = selection.broker.filter()
        self._known = LatestVersions()
        """OIDs of the selected Gatherers that cannot be computed from name and URL."""
        self._look = held
        self._looked = False

    def close(self) -> None:
        """Release the memory of known OIDs."""
        self._known.close()

    def choose(self, logged: Logged) -> Change | None:
        """Return the change of a selected record; None for any other record, and for a value that is no change."""
        try:
            made = change(logged.value) if logged.value is not None else None
        except DecodeError:
            return None  # the sink that read it has written a dead letter for it
        if made is None or not self._asked(made):
            return None
        if self._selection.topic != SUMMARIES.name:
            return made
        if isinstance(made, Summary):
            if self._accepts is not None and not self._accepts(made):
                made = filtered(made)
            elif (ttl := self._selection.broker.ttl) is not None and ttl < made.ttl:
                made = msgspec.structs.replace(made, ttl=ttl)
        return msgspec.structs.replace(made, published=made.version)

    def _asked(self, made: Change) -> bool:
        names = self._selection.gatherers
        if not names:
            return True
        if isinstance(made, Summary):
            if made.gatherer in names and oid(made.gatherer, made.url) != made.oid:
                self._known.note([(made.oid, 0, 0)])
            return made.gatherer in names
        return any(oid(name, made.url) == made.oid for name in names) or self._knows(made.oid)

    def _knows(self, oid: str) -> bool:
        if self._known.get(oid) is None and not self._looked:
            # Read once, and only if a removal's OID does not identify its Gatherer.
            self._looked = True
            self._known.note((each, 0, 0) for each in self._look())
        return self._known.get(oid) is not None
