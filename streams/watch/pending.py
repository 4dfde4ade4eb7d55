"""Changes that wait until they rest, so that a burst becomes few visits.

Strategy: each path goes out once nothing more has happened to it for a pause. One that never rests goes out all the same after a
while: a folder soon, since files may come there for hours, a file that is written all the time (a log) once a minute. Many files of
one folder become a visit of that folder, whose listing shows what has changed; too many paths become visits of whole roots. A
folder with a long listing waits after a visit before it is visited again.

No clock: times are arguments, in seconds of any clock that never goes back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

FOLDER, FILE, ROOT = 2.0, 60.0, 60.0
"""Seconds after the first change after which a folder, file or whole root that never rests is visited."""
FILES = 100
"""Changed files of one folder above which the folder is visited instead."""


class Batch(NamedTuple):
    """What is to be visited: paths (that of a folder ends with a slash), and URLs of whole roots."""

    paths: tuple[bytes, ...]
    roots: tuple[str, ...]


class Pending:
    """Collects changes. `pause`: seconds of rest; `burst`: paths above which whole roots are visited.

    `rest`: returns the seconds between two visits of a folder.
    """

    def __init__(self, pause: float, burst: int, rest: Callable[[bytes], float] = lambda _: 0.0) -> None:
        self._pause = pause
        self._burst = burst
        self._rest = rest
        self._next: dict[bytes, float] = {}
        """Time of the next visit of each folder that was visited lately, and has to wait."""
        self._paths: dict[bytes, tuple[float, float]] = {}
        """First and last change of each path, in the order of the first."""
        self._files: dict[bytes, int] = {}
        """Number of waiting files by folder."""
        self._roots: dict[str, tuple[float, float]] = {}

    def __bool__(self) -> bool:
        return bool(self._paths or self._roots)

    @property
    def is_full(self) -> bool:
        """Whether more paths wait than are visited one by one."""
        return len(self._paths) > self._burst

    def add(self, paths: Iterable[bytes], now: float) -> None:
        """Note changes of files and folders."""
        for path in paths:
            folder = path[: path.rfind(b"/") + 1]
            if path.endswith(b"/"):
                self._paths[path] = (self._paths.get(path, (now, now))[0], now)
            elif self._files.get(folder, 0) < FILES or path in self._paths:
                self._files[folder] = self._files.get(folder, 0) + (path not in self._paths)
                self._paths[path] = (self._paths.get(path, (now, now))[0], now)
            else:
                self._paths[folder] = (self._paths.get(folder, (now, now))[0], now)

    def add_roots(self, roots: Iterable[str], now: float) -> None:
        """Note that whole roots are to be visited."""
        for url in roots:
            self._roots[url] = (self._roots.get(url, (now, now))[0], now)

    def paths(self) -> list[bytes]:
        """Return the paths that wait."""
        return list(self._paths)

    def clear_paths(self) -> None:
        """Drop all paths: their roots are visited instead."""
        self._paths.clear()
        self._files.clear()

    def take(self, now: float) -> Batch:
        """Return what is due, and drop it."""
        self._next = {path: at for path, at in self._next.items() if at > now}
        due = [path for path, when in self._paths.items() if path not in self._next and self._is_due(when, now, _most(path))]
        for path in due:
            del self._paths[path]
            if not path.endswith(b"/"):
                self._forget(path[: path.rfind(b"/") + 1])
            elif (rest := self._rest(path)) > self._pause:
                self._next[path] = now + rest
        roots = [url for url, when in self._roots.items() if self._is_due(when, now, ROOT)]
        for url in roots:
            del self._roots[url]
        return Batch(tuple(due), tuple(roots))

    def _forget(self, folder: bytes) -> None:
        if (left := self._files[folder] - 1) > 0:
            self._files[folder] = left
        else:
            del self._files[folder]

    def _is_due(self, when: tuple[float, float], now: float, most: float) -> bool:
        first, last = when
        return now - last >= self._pause or now - first >= most


def _most(path: bytes) -> float:
    return FOLDER if path.endswith(b"/") else FILE
