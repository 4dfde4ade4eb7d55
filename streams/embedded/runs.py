"""Runs of a data folder: the last run, the roots, and the name of the Gatherer.

A run is stored in the transaction that appends its `seeded` events. An unfinished run over the same roots is continued by reading
on, without requesting visited URLs again. The Gatherer's name is stored by the first run, since every OID contains it.

Rows of `runner`, partition 0: `run` (Run), `id` (the last id given), `gatherer` (text), `p|root` (paused),
`s|root` (a source of a Broker, named by nobody by hand), `c|topic` (see `upkeep.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, cast

import msgspec

from processors.frontier.stage import outstanding
from schemas.codec import decode, encode
from schemas.ports import Rows
from schemas.records import CrawlEvent, Plan, Root
from streams.clock import now_ms
from streams.embedded.runner import RETRY_HORIZON, Embedded
from streams.faults import fault
from streams.logs import StoreLog
from streams.operations.roots import apply_plan_events, apply_root_events, root_events, seeded, unseeded
from streams.store import Offsets, Store, Transaction
from streams.store.data_folder import SPACE, gatherer
from streams.topology.flow import Topology


class Run(msgspec.Struct, frozen=True, array_like=True):
    """One run of `gather`: its id, its roots (encoded), and whether it is finished."""

    id: str
    roots: tuple[bytes, ...]
    finished: bool = False


class StartedRun(NamedTuple):
    """A run that begins or continues.

    `continued`: another process began it and did not finish it; `first`: it is the first run of its folder.
    """

    run: Run
    continued: bool
    first: bool


_run = msgspec.msgpack.Decoder(Run).decode


def last(store: Store) -> Run | None:
    """Return the last run of a data folder."""
    rows = store.rows(SPACE, 0)
    value = rows.get(b"run") if rows is not None else None
    return _run(value) if value is not None else None


def under_way(store: Store) -> bool:
    """Return whether a run must begin or continue before records from outside are applied.

    A service stores no run: its remaining work is in its queues. Without any root, nothing continues.
    """
    if not gatherer(store):
        return True
    if not roots(store):
        return False
    before = last(store)
    return (
        not before.finished if before is not None else any(outstanding(rows, now_ms() + RETRY_HORIZON) for rows in _frontier(store))
    )


def is_emptied(store: Store, drawn: Topology) -> bool:
    """Return whether there is no root while records are still to be read: of removed roots, or imported ones."""
    return not roots(store) and any(one.lag for one in StoreLog(store).lags(drawn))


def begin(runner: Embedded, asked: Sequence[Root]) -> StartedRun:
    """Begin a run over these roots, or continue the last one, if it was over them, is unfinished, and none of them was removed."""
    before = last(runner.store)
    known = {root.url for root in roots(runner.store)}
    if before is not None and not before.finished and _same(before, asked) and known.issuperset(root.url for root in asked):
        return StartedRun(before, continued=True, first=False)
    now = now_ms()
    with runner.store.transaction() as tx:
        run_id = _next_id(tx, now)
        named = [msgspec.structs.replace(root, run=run_id) for root in asked]
        run = Run(run_id, tuple(map(encode, named)))
        _seed(tx, named, runner.partitions, now)
        _note(tx, run)
        tx.rows(SPACE, 0).put(b"gatherer", runner.settings.essence.gatherer.encode())
    fault("run.seeded")
    return StartedRun(run, continued=False, first=before is None)


def _next_id(tx: Transaction, now: int) -> str:
    """Return an id above all earlier ones, whatever the clock does: newer runs of a root are recognized by it."""
    rows = tx.rows(SPACE, 0)
    known = max(int(rows.get(b"id") or 0), int(_run(value).id) if (value := rows.get(b"run")) else 0)
    identifier = f"{max(now, known + 1):013d}"
    rows.put(b"id", identifier.encode())
    return identifier


def name(runner: Embedded) -> None:
    """Store the Gatherer's name in the data folder."""
    with runner.store.transaction() as tx:
        tx.rows(SPACE, 0).put(b"gatherer", runner.settings.essence.gatherer.encode())


def finish(runner: Embedded, run: Run) -> None:
    """Mark the run as finished: the next one requests everything again."""
    with runner.store.transaction() as tx:
        _note(tx, msgspec.structs.replace(run, finished=True))
    fault("run.finished")


def ask(store: Store, root: Root, plan: Plan | None = None, *, source: bool = False) -> None:
    """Add a root from outside a runner; a runner gathers it when it reads the event. `plan`: its options; None: as they are.

    `source`: a Broker names it; it goes when no Broker does, unless it is named by hand.
    """
    now = now_ms()
    with store.transaction() as tx:
        _mark(tx, root.url, source=source)
        _seed(tx, [msgspec.structs.replace(root, run=_next_id(tx, now))], store.topics()["crawl"], now, plan)


def drop(store: Store, root: Root) -> None:
    """End a root from outside a runner: objects that no other root reaches expire."""
    now = now_ms()
    with store.transaction() as tx:
        _mark(tx, root.url, source=False)
        for partition, event in unseeded(msgspec.structs.replace(root, run=_next_id(tx, now)), store.topics()["crawl"], now):
            tx.append("crawl", partition or 0, cast("CrawlEvent", event).host.encode(), encode(event), now)


def named(store: Store, asked: Sequence[Root]) -> None:
    """Note that roots were named by hand: they stay when no Broker has them as sources."""
    theirs = sources(store)
    if found := [root.url for root in asked if root.url in theirs]:
        with store.transaction() as tx:
            for url in found:
                _mark(tx, url, source=False)


def sources(store: Store) -> frozenset[str]:
    """Return the URLs of the roots that are there only as sources of Brokers."""
    rows = store.rows(SPACE, 0)
    return frozenset(key[2:].decode() for key, _ in rows.scan(b"s|")) if rows is not None else frozenset()


def _mark(tx: Transaction, url: str, *, source: bool) -> None:
    rows = tx.rows(SPACE, 0)
    if source:
        rows.put(b"s|" + url.encode(), b"")
    else:
        rows.delete(b"s|" + url.encode())


def paused(store: Store) -> frozenset[str]:
    """Return the URLs of the roots that are not visited until they are resumed."""
    rows = store.rows(SPACE, 0)
    return frozenset(key[2:].decode() for key, _ in rows.scan(b"p|")) if rows is not None else frozenset()


def pause(store: Store, url: str, *, on: bool) -> None:
    """Pause a root, or resume it. The store must be that of a runner."""
    with store.transaction() as tx:
        rows = tx.rows(SPACE, 0)
        if on:
            rows.put(b"p|" + url.encode(), b"")
        else:
            rows.delete(b"p|" + url.encode())


def roots(store: Store) -> list[Root]:
    """Return the roots of a data folder, in order of URL: those of the frontier, and those appended since."""
    known = (cast("Root", decode(value)) for rows in _frontier(store) for _, value in rows.scan(b"g|"))
    return apply_root_events(known, _unread(store))


def awaited(store: Store) -> frozenset[str]:
    """Return the URLs of the roots whose next run has been asked for, and not been read by the frontier."""
    return frozenset(event.url for event in _unread(store) if event.kind == "seeded")


def plans(store: Store) -> dict[str, Plan]:
    """Return the plans of the roots of a data folder, by URL of the root: those of the frontier, and those appended since."""
    known = {key[2:].decode(): cast("Plan", decode(value)) for rows in _frontier(store) for key, value in rows.scan(b"o|")}
    return apply_plan_events(known, _unread(store))


def _unread(store: Store) -> Iterator[CrawlEvent]:
    """Yield events about roots that the frontier has not read yet."""
    return root_events(store, store.offsets("frontier").get(("crawl", 0), Offsets()).next)


def _frontier(store: Store) -> Iterator[Rows]:
    """Yield the frontier's rows of each partition, for reading."""
    found = (store.rows("frontier", partition) for partition in range(store.topics()["crawl"]))
    return (rows for rows in found if rows is not None)


def _seed(tx: Transaction, named: Sequence[Root], partitions: int, now: int, plan: Plan | None = None) -> None:
    for root in named:
        for partition, event in seeded(root, partitions, now, plan):
            tx.append("crawl", partition or 0, cast("CrawlEvent", event).host.encode(), encode(event), now)


def _note(tx: Transaction, run: Run) -> None:
    tx.rows(SPACE, 0).put(b"run", msgspec.msgpack.encode(run))


def _same(run: Run, asked: Sequence[Root]) -> bool:
    return {_limits(cast("Root", decode(r))) for r in run.roots} == {_limits(root) for root in asked}


def _limits(root: Root) -> tuple[object, ...]:
    return root.url, root.depth, root.urls, root.ttl, root.refresh, root.accept > 0
