"""Reading the sources again from the beginning, after the definition of a Broker has changed.

Strategy: the row `d|` has the fingerprint of the definition that the rows are made by. The runner asks `restart` when it takes
a partition: while the row is of another definition, or its reading is not complete, the topics that it returns are read from the
beginning. A tick that names ends at or behind what was read before completes the reading; then, on further ticks, what is held
from a source that the definition no longer names is swept.

Laws:
- A reading that was interrupted begins again; it is complete once a tick with such ends has been applied.
- What was published in an earlier reading is certain if its record was below the offset committed when this one began.
- What a record of a former source caused is certain if it was below the offset committed there, as far as the runner tells that.
- No row is the definition `assumed`: that of `main` in a folder of the version before.

Rows: `d|` (fingerprint, number of the reading, offsets committed when it began, whether it is complete, cursor of the sweep, and
those committed of former sources).
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from processors.broker.entry import PREFIX, Cause
from processors.broker.sources import is_source
from schemas.ports import Origin, Rows

KEY = b"d|"


class Reading(msgspec.Struct, frozen=True, array_like=True):
    """Row of the present reading of the sources."""

    fingerprint: str = ""
    number: int = 0
    base: dict[str, int] = {}
    """Offsets by topic that were committed when the reading began."""
    complete: bool = True
    cursor: bytes | None = None
    """The row after which the sweep goes on; None: there is nothing to sweep."""
    left: dict[str, int] = {}
    """Offsets by topic of former sources that were committed when the reading began."""

    def certain(self, cause: Cause | None, origin: Origin) -> bool:
        """Return whether the outputs of an earlier record are delivered, or are repeated by a redelivery of that record itself."""
        if cause is None:
            return False
        if self.number and is_source(cause.topic) and cause.topic not in self.base:
            # Its redelivery never comes.
            return cause.offset < self.left.get(cause.topic, 0)
        if cause.topic != origin.topic:
            return True
        earlier = cause.reading < self.number and cause.topic in self.base
        return cause.offset < (self.base[cause.topic] if earlier else origin.committed)

    @property
    def busy(self) -> bool:
        """Whether a tick is needed to go on."""
        return not self.complete or self.cursor is not None


FIRST = Reading()
_pack = msgspec.msgpack.encode
_reading = msgspec.msgpack.Decoder(Reading).decode


def load(rows: Rows) -> Reading:
    """Return the present reading."""
    value = rows.get(KEY)
    return _reading(value) if value is not None else FIRST


def save(rows: Rows, reading: Reading) -> None:
    """Write the present reading."""
    rows.put(KEY, _pack(reading))


def restart(rows: Rows, committed: Mapping[str, int], fingerprint: str, assumed: str, topics: tuple[str, ...]) -> tuple[str, ...]:
    """Return the topics that must be read from the beginning, as the partition is taken; notes in the rows that this begins.

    `committed`: offsets by topic, also of former sources; `topics`: those of the sources; `assumed`: the definition of rows that
    name none.
    """
    value = rows.get(KEY)
    known = _reading(value) if value is not None else FIRST
    if (known.fingerprint if value is not None else assumed) == fingerprint:
        return () if known.complete else topics
    base = {topic: committed.get(topic, 0) for topic in topics}
    if not known.complete:
        # What was published before the interrupted reading may be beyond what that one has reached.
        base = {topic: min(offset, known.base.get(topic, offset)) for topic, offset in base.items()}
    old = next(iter(rows.scan(PREFIX, limit=1)), None) is not None
    left = {topic: offset for topic, offset in committed.items() if is_source(topic) and topic not in base}
    save(rows, Reading(fingerprint, known.number + 1, base, complete=False, cursor=b"" if old else None, left=left))
    return topics


def completed(reading: Reading, ends: Mapping[str, int]) -> Reading:
    """Return the reading after a tick, whose ends are read: complete if all that was read before has been read again."""
    whole = all(ends.get(topic, 0) >= offset for topic, offset in reading.base.items())
    return replace(reading, complete=True) if whole else reading
