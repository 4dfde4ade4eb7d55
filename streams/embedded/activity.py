"""Hosts and roots of a data folder, read beside its runner, from the rows of the frontier.

Every scan is bounded; a note says where a number is of a part only. URLs that links named but that were never admitted (limits,
traps) have no rows, so the refused URLs of a root are those that robots.txt or the fetch edge refused.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import islice

import msgspec

from processors.frontier.rows import Table
from processors.frontier.state import HostState
from processors.schemes import SCHEMES
from schemas.ports import Rows
from streams.embedded import runs
from streams.operations.activity import HostActivity, RootActivity
from streams.operations.status import left_out
from streams.store import Store

HOSTS = 20_000
"""Maximum number of hosts whose rows are read in a partition."""
QUEUES = 2_000
"""Maximum number of queues that are counted in a partition."""
QUEUED = 50_000
"""Maximum number of URLs that are counted in the queues of a partition."""
ROOTS = 1_000
"""Maximum number of roots."""
URLS = 100_000
"""Maximum number of URLs whose states are counted, over all partitions."""
SHOWN = 200
"""Maximum number of hosts."""

WAITING = ("queued", "asked", "waiting")

_host = msgspec.msgpack.Decoder(HostState).decode


def host_activity(store: Store, pause: float, now: int) -> tuple[list[HostActivity], list[str]]:
    """Return the hosts, those with most requests in flight first, and notes. `pause`: the setting, in seconds; `now`: in ms."""
    found: dict[str, HostActivity] = {}
    notes: dict[str, None] = {}
    for rows in _frontier(store):
        queues, cut = _queues(rows)
        states = dict(islice(_states(rows), HOSTS))
        if cut or len(states) == HOSTS:
            notes["hosts: only in part, there are many, or their queues are long"] = None
        for name in queues.keys() - states.keys():
            states[name] = Table(rows).host(name)
        for name, state in states.items():
            one = _activity(name, state, queues[name], pause, now)
            if one.queue or one.in_flight or one.errors or one.next:
                found[name] = one
    ordered = sorted(found.values(), key=lambda one: (-one.in_flight, -one.queue, one.host))
    return ordered[:SHOWN], [*notes, *left_out("hosts", len(ordered) - SHOWN)]


def _activity(name: str, state: HostState, queue: int, pause: float, now: int) -> HostActivity:
    until = max(state.next_allowed, state.opens, state.rests)
    longest = max(state.delay / 1000, state.slowed / 1000, pause)
    return HostActivity(name, longest, queue, len(state.flying), state.failures, until if until > now else None)


def _queues(rows: Rows) -> tuple[Counter[str], bool]:
    """Return the length of each queue, and whether some are left out: one look-up for each."""
    found: Counter[str] = Counter()
    after, left = b"", QUEUED
    while head := next(rows.scan(b"q|", after=after, limit=1), None):
        if left <= 0 or len(found) == QUEUES:
            return found, True
        host = head[0][2:-18]
        number = sum(1 for _ in rows.scan(b"q|" + host + b"\0", limit=left))
        found[host.decode("utf-8", "replace")] = number
        left -= number
        after = b"q|" + host + b"\x01"
    return found, left <= 0


def _states(rows: Rows) -> Iterator[tuple[str, HostState]]:
    """Yield the hosts with their states; a folder of this machine is none."""
    for scheme in SCHEMES.values():
        if scheme.paced:
            for key, value in rows.scan(f"s|{scheme.name}:".encode(), limit=HOSTS):
                yield key[2:].decode("utf-8", "replace"), _host(value)


def root_activity(store: Store) -> tuple[list[RootActivity], list[str]]:
    """Return the roots that the frontier knows, in order of URL, and notes."""
    known: Counter[str] = Counter()
    states: defaultdict[str, Counter[str]] = defaultdict(Counter)
    partitions = list(_frontier(store))
    roots = {key[2:].decode("utf-8", "replace") for rows in partitions for key, _ in rows.scan(b"g|", limit=ROOTS + 1)}
    shown = sorted(roots)[:ROOTS]
    most = URLS // max(len(partitions), 1)
    cut = False
    for rows in partitions:
        table = Table(rows)
        for root in shown:
            known[root] += table.counted(root)
        read = 0
        for _, _, row in islice(table.all(), most):
            read += 1
            for root in row.roots:
                states[root][row.state] += 1
        cut = cut or read == most
    paused = runs.paused(store)
    found = [_root(root, known[root], states[root], paused=root in paused) for root in shown]
    notes = [f"roots: waiting, done, failed and refused are those of {URLS:,} URLs"] if cut else []
    if len(roots) > ROOTS:
        notes.append(f"roots: the first {ROOTS:,} only")
    return found, notes


def _root(url: str, known: int, states: Counter[str], *, paused: bool) -> RootActivity:
    waiting = sum(states[state] for state in WAITING)
    return RootActivity(url, paused, known, waiting, states["ok"], states["failed"], states["refused"])


def _frontier(store: Store) -> Iterator[Rows]:
    """Yield the rows of each partition of the frontier that has some."""
    for number in range(store.topics().get("crawl", 0)):
        if (rows := store.rows("frontier", number)) is not None:
            yield rows
