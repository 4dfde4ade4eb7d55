"""What is asked for of a topic of summaries when it is read once more: from a time on, of some Gatherers.

Laws:
- A removal names no Gatherer. It is one's whose OID it is, by the name and the URL that OIDs are made of; and where they are made
  of something else, as those of summaries that came from another Gatherer, the one's whose summary of that OID stands in what was
  read before, or in the index.
- From a time on means from the first record of that time or a later one, in each partition, to the end: a record that was
  imported with an older time behind it may be the removal of one before.
- `summaries` has no publish counters: there the version is what tells the newer of two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

import msgspec

from processors.identity import oid
from schemas.codec import DecodeError
from schemas.ports import Log, Logged
from schemas.records import Summary
from streams.operations.index_changes import Change, change
from streams.operations.latest_versions import Newest
from streams.topology.flow import SUMMARIES


class Source(Log, Protocol):
    """What is needed of a log: see `streams.logs.LogAccess`."""

    def since(self, topic: str, time_ms: int) -> Sequence[int]:
        """By partition, the first offset whose record has that time or a later one; the end, where none has."""
        ...


class Selection(NamedTuple):
    """What is asked for; without more, all that the topic holds: a Broker's archive, or `summaries`."""

    topic: str
    since: int | None = None
    """ms since the epoch."""
    gatherers: frozenset[str] = frozenset()

    @property
    def whole(self) -> bool:
        """Whether an index that holds this holds all that its sink would have put there."""
        return self == Selection(self.topic) and self.topic != SUMMARIES.name

    def begins(self, log: Source) -> list[int]:
        """Where each partition is read from."""
        return [0] * log.topics()[self.topic] if self.since is None else list(log.since(self.topic, self.since))


class Tally(msgspec.Struct):
    """What was done so far."""

    read: int = 0
    applied: int = 0
    """Records that were handed to the index, and taken."""
    refused: int = 0
    left: int = 0
    """Records still to be read, at the most: some may have been compacted away."""
    held: int = 0
    """Summaries in the index, at the end."""


Watch = Callable[[Tally], None]
"""Is told of each batch."""


def batches(log: Log, topic: str, partition: int, start: int, end: int, size: int) -> Iterator[tuple[Sequence[Logged], int]]:
    """The records of a range, so many at a time, each time with the offset behind them."""
    while start < end:
        batch = log.read(topic, partition, start, size, until=end)
        # Fewer than asked for: the others were compacted away.
        start = batch[-1].offset + 1 if len(batch) == size else end
        yield batch, start


class Chooser:
    """Tells what is asked for, of the records of a topic in their order. `held`: OIDs of those Gatherers that the index holds."""

    def __init__(self, selection: Selection, held: Callable[[], Iterable[str]] = tuple) -> None:
        self._selection = selection
        self._known = Newest()
        """OIDs of those Gatherers."""
        self._look = held
        self._looked = False

    def close(self) -> None:
        """Forget what was seen."""
        self._known.close()

    def choose(self, logged: Logged) -> Change | None:
        """What a record changes; None for what is not asked for, and for what is no change."""
        try:
            made = change(logged.value) if logged.value is not None else None
        except DecodeError:
            return None  # the sink that met it has made a dead letter of it
        if made is None or not self._asked(made):
            return None
        if self._selection.topic == SUMMARIES.name:
            made = msgspec.structs.replace(made, published=made.version)
        return made

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
            # Asked for once, and only where a removal cannot be told by itself.
            self._looked = True
            self._known.note((each, 0, 0) for each in self._look())
        return self._known.get(oid) is not None
