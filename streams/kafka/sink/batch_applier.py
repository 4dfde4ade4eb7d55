"""Applies one batch to what a sink fills: changes, dead letters for invalid or refused records, and the offsets after them.

Laws:
- Dead letters for records that are no change are acknowledged before the changes are applied; those for refused changes, before the
  offsets.
- Applying a batch again changes nothing: any part of it may be repeated from the beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import msgspec

from schemas.codec import DecodeError
from schemas.ports import Follower, Logged
from streams.faults import fault
from streams.kafka.sink.buffer import Read
from streams.kafka.sink.dead_letter_producer import DeadLetterProducer, Letter
from streams.operations.index_changes import Change, change, newest_changes
from streams.topology.routing import refused_letter


class Applier:
    """Applies batches, from any thread; for a `whole` engine one call at a time, as changes and offsets are one commit.

    `plain` converts a value to single-object encoding. `stage`: the stage that dead letters are from.
    """

    def __init__(
        self,
        index: Follower,
        letters: DeadLetterProducer,
        *,
        whole: bool,
        plain: Callable[[bytes], bytes],
        stage: str = "index",
    ) -> None:
        self._stage = stage
        self._index = index
        self.letters = letters
        self._whole = whole
        self._single = plain
        self.saw: Callable[[str, int], None] = lambda *_: None
        """Callback with an outcome and a number of changes: applied, refused, or to be applied again (retried)."""

    def apply(self, batches: Mapping[int, Sequence[Read]]) -> Mapping[int, int]:
        """Apply a batch; return the offsets after it. Raises OSError or ClusterError: then the batch must be read again."""
        reads = [read for batch in batches.values() for read in batch]
        records = [self._plain(read.logged) for read in reads]
        by_place = {(read.logged.partition, read.logged.offset): read for read in reads}
        changes, poison = newest_changes(records, records[-1].time, self._stage)
        found = ((letter, by_place[letter.partition, letter.offset]) for letter in poison)
        self._send([(msgspec.structs.replace(letter, value=read.logged.value), read.headers) for letter, read in found])
        fault("index.apply")
        ends = {partition: batch[-1].logged.offset + 1 for partition, batch in batches.items()}
        # Without the offsets: refused changes must be in `rejected` before the offsets pass them.
        try:
            failed = self._index.apply(changes, ends if self._whole else {})
        except OSError:
            self.saw("retried", len(changes))
            raise
        refused = ((one.reason, by_place[_place(records, one.change)]) for one in failed)
        self._send([(refused_letter(self._stage, why, read.logged), read.headers) for why, read in refused])
        if failed and self._whole:
            # The feed stores no offsets with a batch of which it refuses something.
            self._index.apply([], ends)
        self.saw("refused", len(failed))
        self.saw("applied", len(changes) - len(failed))
        fault("index.applied")
        return self._written(ends) if self._whole else ends

    def _send(self, letters: Sequence[Letter]) -> None:
        """Send the dead letters of a batch together, since each send waits for the broker. Raises ClusterError."""
        if letters:
            self.letters.send(letters)

    def remember(self, ends: Mapping[int, int]) -> Mapping[int, int]:
        """Store the offsets in the index, and return them. Raises OSError."""
        self._index.apply([], ends)
        return self._written(ends)

    def _written(self, ends: Mapping[int, int]) -> Mapping[int, int]:
        """Return the offsets, which the index has stored."""
        fault("index.passed")
        return ends

    def _plain(self, logged: Logged) -> Logged:
        if logged.value is None:
            return logged
        # What is no record stays as it is: `newest_changes` makes a dead letter of it.
        with suppress(DecodeError):
            return logged._replace(value=self._single(logged.value))
        return logged


def _place(records: Sequence[Logged], applied: Change) -> tuple[int, int]:
    """Return partition and offset of the record that was applied, not of an older equal one (`index_changes.py`)."""
    for record in reversed(records):
        with suppress(DecodeError):
            if record.value is not None and change(record.value) == applied:
                return record.partition, record.offset
    raise KeyError(applied.oid)
