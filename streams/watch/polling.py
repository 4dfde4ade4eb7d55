"""Roots whose folders are read now and then, and compared with what they were.

A folder is kept as one number, made of its entries with size, times and inode, as a listing has them: whatever changes the listing
changes the number, also two changes in one second. Subfolders count by name and inode alone, since they have numbers of their own.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from streams.watch.places import Place, Reach

_MISSING = 0


class PolledTrees:
    """Polled trees. `stop`: whether to give up a reading."""

    def __init__(self, reach: Reach, stop: Callable[[], bool] = lambda: False) -> None:
        self._reach = reach
        self._stop = stop
        self._trees: dict[tuple[str, bytes], dict[bytes, int]] = {}
        """Numbers of folders by path, for each place and top."""
        self._places: dict[str, Place] = {}

    def __len__(self) -> int:
        return sum(map(len, self._trees.values()))

    @property
    def urls(self) -> frozenset[str]:
        """URLs of the roots of which a part is polled."""
        return frozenset(url for url, _ in self._trees)

    def add(self, place: Place, top: bytes | None = None) -> None:
        """Poll a root, or its part from the folder `top` down. The first reading is compared with the state of now."""
        at = place.path if top is None else top
        self._places[place.url] = place
        self._trees[place.url, at] = self._read(place, at)

    def drop(self, place: Place) -> None:
        """Poll a root no more."""
        self._places.pop(place.url, None)
        for key in [key for key in self._trees if key[0] == place.url]:
            del self._trees[key]

    def take(self) -> list[bytes]:
        """Read everything, and return the paths that have changed since, that of a folder with a slash at the end."""
        changed: dict[bytes, None] = {}
        for (url, top), before in list(self._trees.items()):
            now = self._read(self._places[url], top)
            if self._stop():
                break
            self._trees[url, top] = now
            changed.update(dict.fromkeys(path for path, number in now.items() if before.get(path) != number))
        return list(changed)

    def _read(self, place: Place, top: bytes) -> dict[bytes, int]:
        """Return the number of each folder by its path; of a root that is a file, its own."""
        if not place.is_folder:
            return {place.path: _number_of_file(place.path)}
        numbers = {top.rstrip(b"/") + b"/": _MISSING}
        for path in self._reach.folders(place, top):
            if self._stop():
                break
            numbers[path.rstrip(b"/") + b"/"] = self._number(path)
        return numbers

    def _number(self, path: bytes) -> int:
        number = 1
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    number ^= self._number_of(entry)
        except OSError:
            return _MISSING
        return number

    def _number_of(self, entry: os.DirEntry[bytes]) -> int:
        if self._reach.ignores(entry.name, folder=entry.is_dir(follow_symlinks=False)):
            return 0
        try:
            found = entry.stat(follow_symlinks=False)
        except OSError:
            return hash(entry.name)
        if entry.is_dir(follow_symlinks=False):
            return hash((entry.name, found.st_ino, found.st_mode))
        return hash((entry.name, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino))


def _number_of_file(path: bytes) -> int:
    try:
        found = os.stat(path, follow_symlinks=False)
    except OSError:
        return _MISSING
    return hash((found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino))
