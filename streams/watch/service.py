"""Changes in local roots as events of a running service: what has changed is visited alone.

Strategy: after a turn, what the watcher has found is appended to `crawl`: paths as `changed`, whole roots as their next run. The
roots are looked up again when events have arrived, so that a root added beside the service is watched too.

Laws:
- Nothing is stored about what was seen: a service that starts visits each watched root once, which finds what changed before.
- Times of the settings hold for all roots that have none of their own, also for those that were added when they were others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from queue import Empty
from types import TracebackType
from typing import Self

from processors.essence.listing import chunks
from processors.frontier import stage
from processors.identity import file_url, frontier_key
from schemas.records import DOUBT, CrawlEvent, Link, Plan, Record, Root
from streams.clock import now_ms
from streams.embedded import Embedded, runs
from streams.embedded.outcomes import doubts
from streams.watch.pending import Batch
from streams.watch.places import Place, Reach, place_of
from streams.watch.watcher import Watcher, WatchSettings

BEGIN = 2.0
"""Seconds that a service waits at its start until its roots are watched; it begins without, if that takes longer."""
LOOK = 1.0
"""Seconds between two looks for new roots, and between two checks whether anything is left to do."""

Terms = Callable[[Root, Plan], Root]
"""Returns a root with the times that hold for it now, by its plan and the settings."""


def changed_events(paths: Iterable[bytes], now: int) -> list[tuple[int | None, Record]]:
    """Return the events `changed` for paths (that of a folder ends with a slash), as `Embedded.append` takes them."""
    hosts: dict[str, list[Link]] = {}
    for path in paths:
        folder = path.endswith(b"/")
        url = file_url(path, folder=folder)
        hosts.setdefault(frontier_key(url), []).append(Link(url=url, kind="folder" if folder else "file"))
    return [
        (None, CrawlEvent(kind="changed", host=host, time=now, url=host, links=links))
        for host, found in hosts.items()
        for links in chunks(sorted(found, key=lambda link: link.url))
    ]


class RootWatch:
    """Watches the local roots of a runner in a `with` block. `seen` is called after every turn; `say` takes lines for the user."""

    def __init__(self, runner: Embedded, settings: WatchSettings, terms: Terms, say: Callable[[str], object]) -> None:
        self._runner = runner
        self._terms = terms
        self._say = say
        self._off = settings.method == "off"
        self._watcher = Watcher(settings, Reach(runner.settings.essence.select, runner.folder))
        self._look = self._check = 0.0
        self._ends: Sequence[int] = ()
        self._idle = ""
        self._doubted = 0
        """Number of rejections for a doubt at the last look."""

    def __enter__(self) -> Self:
        self._renew_terms()
        if not self._off:
            self._watcher.start()
            self._begin(self._look_up_roots())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._watcher.close()

    def _begin(self, places: Iterable[Place]) -> None:
        """Wait a moment until the roots are watched. What is to be gathered anyway after that need not be visited besides."""
        left, awaited = {place.url for place in places}, runs.awaited(self._runner.store)
        until = time.monotonic() + BEGIN
        with suppress(Empty):
            while left and self._watcher.error is None:
                batch = self._watcher.batches.get(timeout=max(0.0, until - time.monotonic()))
                left.difference_update(batch.roots)
                self._append(batch._replace(roots=tuple(url for url in batch.roots if url not in awaited)))

    def seen(self) -> None:
        """Append what has changed. Raises the error that ended the watching, and StoreError."""
        if self._watcher.error is not None:
            raise self._watcher.error
        with suppress(Empty):
            while True:
                self._say(self._watcher.lines.get_nowait())
        with suppress(Empty):
            while True:
                self._append(self._watcher.batches.get_nowait())
        if not self._off and time.monotonic() >= self._look:
            self._look = time.monotonic() + LOOK
            self._look_up_roots()
        self._look_for_work()

    def idle(self) -> str:
        """Return a line about what is waited for if nothing was left to do at the last look, "" otherwise."""
        return self._idle

    def _look_for_work(self) -> None:
        if time.monotonic() >= self._check:
            self._check = time.monotonic() + LOOK
            self._idle = self._waits() if self._runner.finished() else ""
            if self._idle:
                self._name_doubts()

    def _name_doubts(self) -> None:
        """Name the removals in doubt, if there are others since the last time. All rows are read, so only while nothing is done."""
        number = sum(count for reason, count in self._runner.tally.rejected.items() if reason.startswith(DOUBT))
        if number != self._doubted:
            self._doubted = number
            for doubt in doubts(self._runner.store):
                # A gather is refused beside this service.
                self._say(doubt.line_with("harvest roots add"))

    def _waits(self) -> str:
        known, polled = self._watcher.watched, self._watcher.polled
        watching = f"watching {known:,} {'root' if known == 1 else 'roots'}{f' ({polled:,} polled)' if polled else ''}"
        due = [at for rows in self._runner.frontier_rows() if (at := stage.deadline(rows)) is not None]
        refresh = f"next refresh {day(min(due), now_ms())}" if due else "no refresh is due"
        return ", ".join(["idle", *([watching] if known else []), refresh])

    def _look_up_roots(self) -> list[Place]:
        """Have all local roots watched that are not paused, and return them; none if no event has arrived since the last call."""
        ends = self._runner.store.ends("crawl")
        if ends == self._ends:
            return []
        self._ends = ends
        paused = runs.paused(self._runner.store)
        found = [place_of(root) for root in runs.roots(self._runner.store) if root.url not in paused]
        places = [place for place in found if place is not None]
        self._watcher.watch(places)
        return places

    def _renew_terms(self) -> None:
        """Have roots visited whose times are others now; those that are watched, and not to be gathered yet, are visited anyway."""
        store = self._runner.store
        plans, paused, awaited = runs.plans(store), runs.paused(store), runs.awaited(store)
        for root in runs.roots(store):
            renewed = self._terms(root, plans.get(root.url, Plan()))
            visited = not self._off and place_of(root) is not None and root.url not in awaited
            if renewed != root and root.url not in paused and not visited:
                runs.ask(store, renewed)

    def _append(self, batch: Batch) -> None:
        store = self._runner.store
        if batch.paths:
            self._runner.append({"crawl": changed_events(batch.paths, now_ms())})
        if batch.roots:
            known, plans = {root.url: root for root in runs.roots(store)}, runs.plans(store)
            for url in batch.roots:
                if url in known:
                    runs.ask(store, self._terms(known[url], plans.get(url, Plan())))


def day(at: int, now: int) -> str:
    """Return a time in ms since the epoch as a day of the year, as a time of this day, or with its year if that is another one."""
    when, today = datetime.fromtimestamp(at / 1000).astimezone(), datetime.fromtimestamp(now / 1000).astimezone()
    if when.date() == today.date():
        return f"at {when:%H:%M}"
    return f"{when.day} {when:%b}{'' if when.year == today.year else f' {when.year}'}"
