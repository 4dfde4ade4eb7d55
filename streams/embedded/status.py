"""What the pipeline of a data folder is doing, read beside its runner: the run, roots, sites with their queues, stages, rejections.

All of it is bounded, but for removals in doubt, which are looked for in the rows of all URLs: callers cache the answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice

import msgspec

from processors.frontier.state import HostState
from processors.schemes import SCHEMES, scheme_of
from schemas.ports import Rows
from sinks.gateway.ports import Host, Root, Status
from streams.embedded import runs
from streams.embedded.outcomes import doubts, failures, known
from streams.logs import StoreLog
from streams.operations.status import SHOWN, joined, left_out, rejections, shown_roots, stages
from streams.store import Store
from streams.store.data_folder import gatherer
from streams.store.locks import runner_of
from streams.topology.flow import Topology

QUEUES = 2_000
"""Maximum number of sites and folders whose queues are counted."""
QUEUED = 10_000
"""Maximum number of URLs that are counted of each."""
SITES = 20_000
"""Maximum number of sites of each scheme whose requests in flight are counted; of local files, of folders."""
SUSPECTS = 20
"""Maximum number of roots whose reason of failure is looked for: that reads the log."""

_host = msgspec.msgpack.Decoder(HostState).decode


def folder_status(store: Store, drawn: Topology) -> Status:
    """Return the status of a data folder."""
    log = StoreLog(store)
    roots, notes_of_roots = shown_roots(_roots(store))
    hosts, notes_of_hosts = _hosts(store)
    behind, notes_of_stages = stages(log, drawn)
    rejected, notes_of_rejections = rejections(log)
    more = joined(notes_of_roots, notes_of_hosts, notes_of_stages, notes_of_rejections)
    return Status(gatherer(store), _run(store), roots, hosts, behind, rejected, more)


def _run(store: Store) -> str:
    """Return what the run of a data folder is doing, or how the last one ended, as a sentence without its period."""
    last, process = runs.last(store), runner_of(store.folder)
    if process and (last is None or last.finished):
        return f"the pipeline is running (process {process})"
    if last is None:
        return "no run yet"
    # The id of a run is the time at which it began.
    begun = f"{datetime.fromtimestamp(int(last.id) / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    if process:
        return f"a run over {_counted(len(last.roots))}, begun {begun}, is going on (process {process})"
    if last.finished:
        return f"the last run, over {_counted(len(last.roots))}, begun {begun}, is complete"
    return f"the last run, over {_counted(len(last.roots))}, begun {begun}, was interrupted: harvest gather goes on with it"


def _counted(number: int) -> str:
    return "1 root" if number == 1 else f"{number:,} roots"


# ---- roots -----------------------------------------------------------------------------------------------------------


def _roots(store: Store) -> Iterator[Root]:
    """Yield every root with its state."""
    there, paused = runs.roots(store), runs.paused(store)
    doubted = {doubt.root: doubt.line.partition(": ")[2] for doubt in doubts(store)}
    suspects = list(islice((root for root in there if _is_suspect(store, root.url)), SUSPECTS))
    failed = dict(failures(store, suspects))
    for root in there:
        if root.url in doubted:
            yield Root(root.url, "in doubt", doubted[root.url])
        elif root.url in failed:
            yield Root(root.url, "failed", failed[root.url])
        else:
            yield Root(root.url, "paused" if root.url in paused else "active", "")


def _is_suspect(store: Store, url: str) -> bool:
    """Return whether a root was requested without success; it may have moved, though."""
    row = known(store, url)
    return row is not None and row.state in ("failed", "refused", "gone")


# ---- sites -----------------------------------------------------------------------------------------------------------


def _hosts(store: Store) -> tuple[list[Host], list[str]]:
    """Return the sites with queues, requests in flight or errors, the longest queue first, and notes. Local files are one site."""
    waiting: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    details: dict[str, str] = {}
    notes = []
    for partition in range(store.topics()["crawl"]):
        if (rows := store.rows("frontier", partition)) is None:
            continue
        for key, number in islice(_queues(rows), QUEUES):
            waiting[_site(key)] += number
            if number >= QUEUED or len(waiting) >= QUEUES:
                notes = ["queues: only in part, they are long"]
        for key, state in _states(rows):
            asked[_site(key)] += len(state.flying)
            if state.failures and _site(key):
                details[key] = f"failed {state.failures:,} times in a row" if state.failures > 1 else "the last request failed"
    names = sorted({*(+waiting), *(+asked), *details}, key=lambda name: (-waiting[name], name))
    found = [Host(name, waiting[name], asked[name], details.get(name, "")) for name in names[:SHOWN]]
    return found, notes + left_out("sites", len(names) - len(found))


def _site(key: str) -> str:
    """Return the name of a site by its key in the frontier: empty for a folder of this machine."""
    return "" if scheme_of(key).realm == "machine" else key


def _queues(rows: Rows) -> Iterator[tuple[str, int]]:
    """Yield the keys of sites with queues, and the number of URLs in each, up to a limit: one look-up for each site."""
    after = b""
    while head := next(rows.scan(b"q|", after=after, limit=1), None):
        host = head[0][2:-18]
        yield host.decode("utf-8", "replace"), sum(1 for _ in rows.scan(b"q|" + host + b"\0", limit=QUEUED))
        after = b"q|" + host + b"\x01"


def _states(rows: Rows) -> Iterator[tuple[str, HostState]]:
    """Yield the states of sites: of each scheme some, so that many local folders hide no site."""
    for scheme in SCHEMES:
        for key, value in rows.scan(f"s|{scheme}:".encode(), limit=SITES):
            yield key[2:].decode("utf-8", "replace"), _host(value)
