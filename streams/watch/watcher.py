"""The thread that watches local roots: events where the file system reports changes, readings of the folders elsewhere.

Strategy: the thread is given the roots to watch, and returns batches of what is to be visited. A root is visited as a whole once it
is watched: what changed before that, or while nothing was running, is found so. After that its changes are visited alone.

Laws:
- A root that cannot be watched by events is polled: there are not enough watches or instances, or its file system is silent.
- Notices that the kernel has dropped, and bursts, end in a visit of the whole root: no change is lost.
- A root is watched anew when a file system is mounted on it, or below it, or unmounted there, and when it is another folder.
"""

from __future__ import annotations

import errno
import os
import select
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Literal

import msgspec

from streams.watch.events import EventTrees
from streams.watch.mounts import Mounts
from streams.watch.pending import Batch, Pending
from streams.watch.places import Place, Reach
from streams.watch.polling import PolledTrees

SETTLE = 0.05
"""Seconds from a notice to the reading of all that have come with it."""
TICK = 0.1
"""Seconds between two looks whether waiting changes rest."""
CHECK = 5.0
"""Seconds between two looks at the mounted file systems."""
SHARE = 3
"""Polled folders are read again after so many times as long as a reading takes."""
ENTRIES, MOST = 1_000, 60.0
"""Entries that the listings of one folder have in a second, over time; the longest rest between two of them, in seconds."""
WATCHES, INSTANCES = (
    ("fs.inotify.max_user_watches", "user.max_inotify_watches"),
    ("fs.inotify.max_user_instances", "user.max_inotify_instances"),
)
"""Names of the limits (sysctl) of watches and of instances: that of a user, and that in a user namespace (a container)."""

Method = Literal["auto", "events", "poll", "off"]


class WatchSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How local roots are watched; times are in seconds."""

    method: Method = "auto"
    interval: float = 2.0
    pause: float = 0.5
    burst: int = 10_000


class Watcher:
    """Watches on a thread of its own, from `start` to `close`."""

    def __init__(self, settings: WatchSettings, reach: Reach) -> None:
        self._settings = settings
        self._pending = Pending(settings.pause, settings.burst, _rest)
        self._wanted: SimpleQueue[dict[str, Place]] = SimpleQueue()
        self._places: dict[str, Place] = {}
        self._mounts: dict[str, object] = {}
        """The mounts that each root depends on, and which folder it is."""
        self._missed: set[str] = set()
        """URLs of the roots of which notices were dropped, until they are visited."""
        self._stopping = threading.Event()
        self._events: EventTrees | None = None
        self._polled = PolledTrees(reach, self._stopping.is_set)
        self._reach = reach
        self._next_poll = self._next_check = 0.0
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._thread = threading.Thread(target=self._work, name="watch", daemon=True)
        self.batches: SimpleQueue[Batch] = SimpleQueue()
        """What is to be visited."""
        self.lines: SimpleQueue[str] = SimpleQueue()
        """What the user should know."""
        self.error: BaseException | None = None
        """The error that has ended the thread."""
        self.watched = self.polled = 0
        """Number of roots that are watched now, and of those among them of which a part is polled."""

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def watch(self, places: Iterable[Place]) -> None:
        """Watch these places from now on, and no others."""
        self._wanted.put({place.url: place for place in places})
        self._notify()

    def close(self) -> None:
        """End the thread and all watches."""
        self._stopping.set()
        self._notify()
        if self._thread.is_alive():
            self._thread.join()
        os.close(self._wake)

    def _notify(self) -> None:
        with suppress(BlockingIOError):
            os.eventfd_write(self._wake, 1)

    # ---- the thread ----------------------------------------------------------------------------------------------

    def _work(self) -> None:
        try:
            if self._settings.method in ("auto", "events"):
                self._open()
            while not self._stopping.is_set():
                self._wait()
                self._round(time.monotonic())
        except BaseException as error:  # noqa: BLE001 - it is raised where the runner looks for batches
            self.error = error
        finally:
            if self._events is not None:
                self._events.close()

    def _open(self) -> None:
        try:
            self._events = EventTrees(self._reach)
        except OSError as error:
            limit = f" (raise {_lowest(INSTANCES)})" if error.errno == errno.EMFILE else ""
            self.lines.put(f"changes cannot be reported by the system: {error.strerror}{limit}; roots {self._polls}")

    def _wait(self) -> None:
        """Wait for notices, a call of `watch`, or the time of the next look."""
        until = self._next_check
        if self._polled.urls:
            until = min(until, self._next_poll)
        timeout = TICK if self._pending else max(0.0, until - time.monotonic())
        poll = select.poll()
        for fd in (self._wake, *((self._events.fd,) if self._events is not None else ())):
            poll.register(fd, select.POLLIN)
        if poll.poll(timeout * 1000):
            with suppress(BlockingIOError):
                os.eventfd_read(self._wake)
            self._stopping.wait(SETTLE)

    def _round(self, now: float) -> None:
        """Look for changes, and pass on those that are due."""
        self._apply(now)
        if now >= self._next_check:
            self._check_mounts(now)
            self._next_check = now + CHECK
        if self._events is not None:
            self._take_events(self._events, now)
        if self._polled.urls and now >= self._next_poll:
            self._poll()
        if self._pending.is_full:
            self._visit(self._roots_of(self._pending.paths()))
            self._pending.clear_paths()
        batch = self._pending.take(time.monotonic())
        if self._events is not None:
            self._renew(self._events, self._missed.intersection(batch.roots))
        if any(batch):
            self.batches.put(batch)

    def _apply(self, now: float) -> None:
        """Watch what was asked for last."""
        wanted = None
        with suppress(Empty):
            while True:
                wanted = self._wanted.get_nowait()
        if wanted is None:
            return
        for place in [each for url, each in self._places.items() if wanted.get(url) != each]:
            self._drop(place)
        mounts = Mounts.read()
        for place in [each for url, each in wanted.items() if url not in self._places]:
            self._start(place, mounts)

    def _start(self, place: Place, mounts: Mounts) -> None:
        """Watch a place, and have it visited."""
        self._places[place.url] = place
        self._mounts[place.url] = _standing(place, mounts)
        auto = self._settings.method == "auto"
        if self._events is None or (auto and mounts.is_silent(place.path)):
            self._polled.add(place)
        else:
            try:
                self._events.add(place)
            except OSError as error:
                self._fall_back(place, error)
            else:
                for point in mounts.silent_below(place.path) if auto else ():
                    self._polled.add(place, point)
        self._count()
        self._next_poll = time.monotonic() + self._settings.interval
        self.batches.put(Batch((), (place.url,)))

    def _drop(self, place: Place) -> None:
        """Watch a place no more."""
        self._places.pop(place.url, None)
        self._mounts.pop(place.url, None)
        self._polled.drop(place)
        if self._events is not None:
            self._events.drop(place)
        self._count()

    def _fall_back(self, place: Place, error: OSError) -> None:
        """Poll a place for which there are not enough watches."""
        if self._events is not None:
            self._events.drop(place)
        self._polled.add(place)
        limit = ""
        if error.errno == errno.ENOSPC:
            limit = f" (raise {_lowest(WATCHES)}; a folder takes one)"
        self.lines.put(f"{place.url}: not all of its folders can be watched{limit}; they {self._polls}")

    def _take_events(self, events: EventTrees, now: float) -> None:
        self._pending.add(events.take(), now)
        if events.overflowed:
            events.overflowed = False
            self._missed |= events.urls
            self._visit(events.urls)
        for url in events.full & set(self._places):
            # Changes of before this reading would not be found by the next one.
            self._fall_back(self._places[url], OSError(errno.ENOSPC, ""))
            self._visit([url])
            self._count()
        events.full.clear()

    def _renew(self, events: EventTrees, urls: Iterable[str]) -> None:
        """Watch roots again that are to be visited because notices were dropped."""
        for place in [self._places[url] for url in urls if url in self._places and url in events.urls]:
            try:
                events.renew(place)
            except OSError as error:
                self._fall_back(place, error)
                self._count()
        self._missed.difference_update(urls)

    def _poll(self) -> None:
        begun = time.monotonic()
        changed = self._polled.take()
        ended = time.monotonic()
        self._next_poll = ended + max(self._settings.interval, SHARE * (ended - begun))
        self._pending.add(changed, ended)

    def _check_mounts(self, now: float) -> None:
        mounts = Mounts.read()
        for place in list(self._places.values()):
            if self._mounts[place.url] != _standing(place, mounts):
                self._drop(place)
                self._start(place, mounts)

    def _visit(self, urls: Iterable[str]) -> None:
        self._pending.add_roots(urls, time.monotonic())

    def _roots_of(self, paths: Iterable[bytes]) -> set[str]:
        """Return the URLs of the roots that have some of these paths."""
        left, found = dict(self._places), set[str]()
        for path in paths:
            for url in [url for url, place in left.items() if place.has(path.rstrip(b"/") or b"/")]:
                found.add(url)
                del left[url]
        return found

    def _count(self) -> None:
        self.watched, self.polled = len(self._places), len(self._polled.urls)

    @property
    def _polls(self) -> str:
        return f"are read every {self._settings.interval:g} s instead, or as often as that takes a quarter of the time"


def _rest(folder: bytes) -> float:
    """Return the seconds between two visits of a folder: a listing has all of its entries, and is kept in the log."""
    with suppress(OSError), os.scandir(folder) as entries:
        return min(MOST, sum(1 for _ in entries) / ENTRIES)
    return 0.0


def _standing(place: Place, mounts: Mounts) -> object:
    """Return the mounts that a root depends on, and of a folder its identity: it may be another one, by a link above it, say."""
    found = None
    if place.is_folder:
        with suppress(OSError):
            stated = os.stat(place.path)
            found = (stated.st_dev, stated.st_ino)
    return mounts.about(place.path), found


def _lowest(limits: tuple[str, ...]) -> str:
    """Return the name and value of the limit that is reached first."""
    values: dict[str, int] = {}
    for name in limits:
        with suppress(OSError, ValueError):
            values[name] = int(Path("/proc/sys", *name.split(".")).read_text("ascii"))
    if not values:
        return limits[0]
    lowest = min(values, key=lambda name: values[name])
    return f"{lowest}, which is {values[lowest]:,}"
