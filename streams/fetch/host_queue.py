"""Requests that wait for their hosts: a queue for each host, and a heap of the times at which hosts are free again.

Strategy: a request begins only when its host and its address are free, so that what waits takes no task, no timer and no room among
the exchanges. Of one host, and of one address, one request is under way at a time. The times are those of `pace.py`, whose slots a
request then enters without waiting.

Laws:
- Requests of one host begin in the order in which they came.
- A request that would wait for longer than the patience, or than one pause of its host if that is longer (but at most a minute), is
  returned with its wait. So nothing that is next in turn is returned for a pause of up to a minute; with a longer one, the frontier
  hands it out only shortly before the pause is over. A request to resolve never is returned.
- A host whose address is in use waits for the end of that exchange.
"""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from streams.fetch.pace import LONGEST_START, Pace

T = TypeVar("T")
ROUNDING = 0.05
"""Seconds by which an estimate may exceed its limit: pauses are rounded."""
LONGEST_CROWD = 60.0
"""Longest wait in seconds that is estimated for an address with many hosts: they are then requested again."""
FREED = 32
"""Hosts that are tried when their address is free: the first that may begin takes it."""


@dataclass(frozen=True, slots=True, eq=False)
class Entry(Generic[T]):
    """A request on its way to a host: `item` is what the caller wants back."""

    item: T
    host: str
    address: str
    """Empty if it is unknown."""
    pause: float
    """Pause in seconds that its host asks for."""
    resolve: bool = False


@dataclass(slots=True)
class _Host(Generic[T]):
    waiting: deque[Entry[T]] = field(default_factory=deque)
    busy: bool = False


class HostQueue(Generic[T]):
    """Requests that wait, by host. `patience`: longest wait in seconds."""

    def __init__(self, pace: Pace, patience: float) -> None:
        self._pace = pace
        self._patience = patience
        self._hosts: dict[str, _Host[T]] = {}
        self._heap: list[tuple[float, int, str]] = []
        self._number = 0
        """Number of entries in the heap so far: hosts that are free at the same time have their turns in order."""
        self._busy: set[str] = set()
        """Addresses in use."""
        self._parked: dict[str, deque[str]] = defaultdict(deque)
        """Hosts that wait for an address in use."""
        self._late: list[tuple[Entry[T], float]] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, entry: Entry[T]) -> None:
        """Add a request."""
        host = self._hosts.get(entry.host) or _Host()
        ahead = len(host.waiting) + host.busy
        if self._is_late(entry, ahead):
            return
        self._hosts[entry.host] = host
        host.waiting.append(entry)
        self._count += 1
        if not ahead:
            self._push(entry.host, self._free_at(entry))

    def next(self) -> Entry[T] | None:
        """Return a request that begins now, or None. Its end is to be reported by `ended`."""
        now = self._pace.now()
        while self._heap and self._heap[0][0] <= now:
            name = heapq.heappop(self._heap)[2]
            host = self._hosts.get(name)
            if host is None or host.busy or not host.waiting:
                continue
            entry = host.waiting[0]
            if entry.address in self._busy:
                self._park(name, host, entry)
            elif (free := self._free_at(entry)) > now:
                self._push(name, free)
            else:
                host.waiting.popleft()
                self._count -= 1
                host.busy = True
                if entry.address:
                    self._busy.add(entry.address)
                return entry
        return None

    def ended(self, entry: Entry[T]) -> None:
        """Report that a request has ended, after its slots were left."""
        host = self._hosts[entry.host]
        host.busy = False
        self._recheck(host)
        if host.waiting:
            self._push(entry.host, self._free_at(host.waiting[0]))
        else:
            del self._hosts[entry.host]
        if entry.address:
            self._busy.discard(entry.address)
            self._free(entry.address, FREED)

    def late(self) -> Iterator[tuple[Entry[T], float]]:
        """Yield, once each, the requests that would wait for too long, with the estimated seconds."""
        late, self._late = self._late, []
        yield from late

    def next_time(self) -> float | None:
        """Return when a host may be free next, by the clock of the pace; None if nothing waits for a time."""
        return self._heap[0][0] if self._heap else None

    def drop(self, wanted: Callable[[T], bool]) -> None:
        """Remove the requests that are no longer wanted."""
        for name, host in list(self._hosts.items()):
            kept = deque(entry for entry in host.waiting if wanted(entry.item))
            self._count -= len(host.waiting) - len(kept)
            host.waiting = kept
            if not kept and not host.busy:
                del self._hosts[name]
        for address in [address for address in self._parked if address not in self._busy]:
            self._free(address, len(self._parked[address]))

    def _free_at(self, entry: Entry[T]) -> float:
        free = self._pace.host_free_at(entry.host, entry.pause)
        return max(free, self._pace.address_free_at(entry.address)) if entry.address else free

    def _push(self, name: str, free: float) -> None:
        self._number += 1
        heapq.heappush(self._heap, (free, self._number, name))

    def _is_late(self, entry: Entry[T], ahead: int) -> bool:
        """Return whether a request would wait for its host for too long, and then set it aside."""
        pause = max(entry.pause, self._pace.pause)
        wait = max(0.0, self._pace.host_free_at(entry.host, entry.pause) - self._pace.now()) + ahead * pause
        limit = max(self._patience, min(self._pace.pause_of(entry.host, pause), LONGEST_START))
        if entry.resolve or wait <= limit + ROUNDING:
            return False
        self._late.append((entry, wait))
        return True

    def _recheck(self, host: _Host[T]) -> None:
        """Set aside what would wait for too long now: the host may have asked for a longer wait."""
        kept: deque[Entry[T]] = deque()
        for entry in host.waiting:
            if self._is_late(entry, len(kept)):
                self._count -= 1
            else:
                kept.append(entry)
        host.waiting = kept

    def _park(self, name: str, host: _Host[T], entry: Entry[T]) -> None:
        """Have a host wait for its address, or set its requests aside if too many hosts wait for that."""
        parked = self._parked[entry.address]
        wait = min((len(parked) + 1) * self._pace.pause, LONGEST_CROWD)
        if wait <= max(self._patience, self._pace.pause) + ROUNDING or entry.resolve:
            parked.append(name)
            return
        kept = deque(each for each in host.waiting if each.resolve)
        self._late += [(each, wait) for each in host.waiting if not each.resolve]
        self._count -= len(host.waiting) - len(kept)
        host.waiting = kept
        if kept:
            self._push(name, self._free_at(kept[0]))
        else:
            del self._hosts[name]

    def _free(self, address: str, number: int) -> None:
        """Let some of the hosts that wait for an address try again."""
        parked = self._parked.get(address)
        free = self._pace.address_free_at(address)
        while parked and number > 0:
            name = parked.popleft()
            if name in self._hosts:
                self._push(name, free)
                number -= 1
        if not parked:
            self._parked.pop(address, None)
