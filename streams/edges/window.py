"""Window over one partition of an edge's input: records in work, finished ones, and the offsets that may be committed.

Laws:
- An offset is committed when all below it are finished; finished records above it are committed beside it (`Offsets.done`), so that
  a restart repeats only records in flight.
- If the window is `ordered`, records of one key are worked on one at a time and in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from schemas.ports import Logged
from streams.store import Offsets

Read = Callable[[int, int], Sequence[Logged]]
"""Function from (offset, limit) to records."""


class Window:
    """One partition. `span`: maximum distance of a started record from the lowest unfinished one."""

    def __init__(self, committed: Offsets, span: int, *, ordered: bool) -> None:
        self._ordered = ordered
        self._next = committed.next
        self._done = set(committed.done)
        self._read = committed.next
        self._span = span
        self._flying: dict[int, bytes] = {}
        self._keys: set[bytes] = set()
        self._held: dict[int, Logged] = {}

    def take(self, limit: int, read: Read) -> list[Logged]:
        """Return at most `limit` records to start now."""
        taken: list[Logged] = []
        for offset in list(self._held):
            if len(taken) < limit and self._begin(self._held[offset]):
                taken.append(self._held.pop(offset))
        # Records that an earlier run finished may have been skipped since: they must not be started again.
        self._read = max(self._read, self._next)
        while len(taken) < limit and self._read < self._next + self._span:
            wanted = min(limit - len(taken), self._next + self._span - self._read)
            batch = read(self._read, wanted)
            for logged in batch:
                self._skip_to(logged.offset)
                self._read = logged.offset + 1
                if logged.offset in self._done:
                    continue
                if self._begin(logged):
                    taken.append(logged)
                else:
                    self._held[logged.offset] = logged
            if len(batch) < wanted:
                break
        return taken

    def _begin(self, logged: Logged) -> bool:
        if self._ordered:
            # The second record of a key waits, and the third waits behind the second.
            waiting = any(h.key == logged.key and h.offset < logged.offset for h in self._held.values())
            if logged.key in self._keys or waiting:
                return False
            self._keys.add(logged.key)
        self._flying[logged.offset] = logged.key
        return True

    def _skip_to(self, offset: int) -> None:
        """Count offsets that were trimmed as finished."""
        self._done.update(range(self._read, offset))

    def reach(self, end: int) -> bool:
        """Note that there are no records up to `end`, so they count as finished. False: it has read that far already."""
        if end <= self._read:
            return False
        self._skip_to(end)
        self._read = end
        self._settle()
        return True

    def finish(self, offset: int) -> bool:
        """Mark a record as finished; its outputs reach the log before `offsets()`. False: it is not of this window."""
        if offset not in self._flying:
            return False
        self._keys.discard(self._flying.pop(offset))
        self._done.add(offset)
        self._settle()
        return True

    def _settle(self) -> None:
        while self._next in self._done:
            self._done.remove(self._next)
            self._next += 1

    def offsets(self) -> Offsets:
        """Return the offsets that may be committed."""
        return Offsets(self._next, frozenset(self._done))

    @property
    def flying(self) -> int:
        """Return the number of records in work or waiting for their key."""
        return len(self._flying) + len(self._held)

    @property
    def position(self) -> int:
        """Return the next offset to read."""
        return self._read
