"""Roots that the kernel watches: a watch on each of their folders, and on the folder above each root.

Laws:
- A folder is watched before its entries are read, so that nothing falls between the two.
- What comes or goes is a change of its folder, whose listing decides. What comes is a change of itself too: it may have the name of
  something that is known.
- All folders of a tree that comes are changes, for the same reason.
- Watches of a tree that was moved away end.
- After notices were dropped, a root is watched again before it is visited: folders have come and gone unnoticed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress

from streams.watch import inotify
from streams.watch.inotify import ATTRIB, CLOSE_WRITE, CREATE, DELETE, MODIFY, MOVED_FROM, MOVED_TO, Inotify, Notice
from streams.watch.places import Place, Reach, joined

_Test = Callable[[bytes], bool]
_COMES, _GOES, _WRITTEN = CREATE | MOVED_TO, DELETE | MOVED_FROM, MODIFY | CLOSE_WRITE | ATTRIB


class EventTrees:
    """Watched trees. Raises OSError where the system has no instance of inotify left, as `Inotify`."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._inotify = Inotify()
        self.fd = self._inotify.fd
        self._places: dict[str, Place] = {}
        self._paths: dict[int, tuple[bytes, ...]] = {}
        """Paths of the watched folders by watch: several, if a folder is reached by several."""
        self._above: dict[int, set[str]] = {}
        """URLs of the roots that are entries of a watched folder, by watch."""
        self.overflowed = False
        """Whether the kernel has dropped notices since the last call of `take`."""
        self.full: set[str] = set()
        """URLs of the roots for whose new folders no watch was left, since the last call of `take`."""

    def __len__(self) -> int:
        return len(self._paths)

    def add(self, place: Place) -> None:
        """Watch a root. Raises OSError if there are not enough watches (ENOSPC): then some are left to `drop`."""
        self._places[place.url] = place
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            # The links above a root are followed, as when it is read.
            above = self._inotify.add(os.path.realpath(place.path.rpartition(b"/")[0] or b"/"))
            self._above.setdefault(above, set()).add(place.url)
        if place.is_folder:
            for _ in self._watch(place, place.path):
                pass

    @property
    def urls(self) -> frozenset[str]:
        """URLs of the roots."""
        return frozenset(self._places)

    def renew(self, place: Place) -> None:
        """Watch the folders that a root has now, and no others. Raises OSError as `add`.

        Watches are kept where they can be: the end of each one is a notice, and many would fill the queue of the kernel again.
        """
        found = set(self._watch(place, place.path)) if place.is_folder else set()
        others = [other for other in self._places.values() if other != place]
        self._forget(lambda path: place.has(path) and path not in found, lambda path: any(each.has(path) for each in others))

    def drop(self, place: Place) -> None:
        """End the watches of a root that no other root needs."""
        self._places.pop(place.url, None)
        for watch, urls in list(self._above.items()):
            urls.discard(place.url)
            if not urls:
                del self._above[watch]
                self._end(watch)
        self._forget(place.has, lambda path: any(other.has(path) for other in self._places.values()))

    def take(self) -> list[bytes]:
        """Return the paths that have changed since the last call, that of a folder with a slash at the end."""
        changed: dict[bytes, None] = {}
        left: set[bytes] = set()
        for notice in self._inotify.read():
            if notice.mask & inotify.OVERFLOW:
                self.overflowed = True
            elif notice.mask & inotify.IGNORED:
                self._paths.pop(notice.watch, None)
                self._above.pop(notice.watch, None)
            else:
                changed.update(dict.fromkeys(self._changes(notice, left)))
        if left:
            self._forget(lambda path: not left.isdisjoint(_and_above(path)))
        return list(changed)

    def close(self) -> None:
        """End all watches."""
        self._inotify.close()

    def _watch(self, place: Place, top: bytes) -> Iterator[bytes]:
        """Watch the folders from `top` down, and yield each. Raises OSError (ENOSPC)."""
        for path in self._reach.folders(place, top):
            with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
                watch = self._inotify.add(path)
                if path not in (before := self._paths.get(watch, ())):
                    self._paths[watch] = (*before, path)
                yield path

    def _changes(self, notice: Notice, left: set[bytes]) -> Iterator[bytes]:
        """Yield what a notice changes; `left` gets folders that were moved away."""
        yield from self._of_roots(notice)
        is_folder = bool(notice.mask & inotify.FOLDER)
        if notice.name and self._reach.ignores(notice.name, folder=is_folder):
            return
        for folder in self._paths.get(notice.watch, ()):
            path = joined(folder, notice.name)
            if not notice.name:
                yield _slashed(folder)
                continue
            if notice.mask & (_COMES | _GOES):
                yield _slashed(folder)
            if is_folder and notice.mask & _COMES:
                left.discard(path)
                yield from self._come(path)
            elif is_folder and notice.mask & MOVED_FROM:
                left.add(path)
            elif notice.mask & (_COMES | _WRITTEN):
                yield _slashed(path) if is_folder else path

    def _come(self, path: bytes) -> Iterator[bytes]:
        """Watch a tree that has come, and yield its folders."""
        places = [place for place in self._places.values() if place.has(path)]
        for place in places:
            try:
                for folder in self._watch(place, path):
                    yield _slashed(folder)
            except OSError:
                self.full.add(place.url)

    def _of_roots(self, notice: Notice) -> Iterator[bytes]:
        """Yield the roots that a notice from the folder above them is about."""
        for url in sorted(self._above.get(notice.watch, ())):
            place = self._places[url]
            if notice.name != place.path.rpartition(b"/")[2]:
                continue
            if not place.is_folder:
                yield place.path
            elif notice.mask & (_COMES | _GOES):
                yield _slashed(place.path)
                if notice.mask & _COMES:
                    yield from self._come(place.path)

    def _forget(self, goes: _Test, stays: _Test = lambda _: False) -> None:
        """End the watches of the paths that go and do not stay."""
        for watch, paths in list(self._paths.items()):
            kept = tuple(path for path in paths if not goes(path) or stays(path))
            if kept:
                self._paths[watch] = kept
            else:
                del self._paths[watch]
                self._end(watch)

    def _end(self, watch: int) -> None:
        if watch not in self._paths and watch not in self._above:
            self._inotify.remove(watch)


def _and_above(path: bytes) -> Iterator[bytes]:
    """Yield a path, and the paths of the folders above it."""
    while path:
        yield path
        path = path.rpartition(b"/")[0]


def _slashed(path: bytes) -> bytes:
    return path.rstrip(b"/") + b"/"
