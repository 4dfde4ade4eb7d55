"""Which folders and names of a root are watched: those that the walk of a gather enters.

Laws:
- No link is followed. The data folder is not entered, by whatever path it is reached.
- Names that selection drops by themselves (stop list, backups, the insides of version control) cause no visit, and such folders
  take no watch. Rules that compare a name with its neighbours are left to the listing.
- Folders deeper than the limit of the root are not entered.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from processors.essence.selection import Selection, by_name
from processors.identity import file_path
from processors.schemes import scheme_of
from schemas.records import Root


class Place(NamedTuple):
    """A root as it is watched: its path without a slash at the end (but for `/`), and the greatest depth of folders; -1: any."""

    url: str
    path: bytes
    depth: int

    @property
    def is_folder(self) -> bool:
        """Whether the root is a folder; otherwise it is one file."""
        return self.url.endswith("/")

    def has(self, path: bytes) -> bool:
        """Return whether a path is the root's or below it."""
        return path == self.path or path.startswith(self.path.rstrip(b"/") + b"/")


def place_of(root: Root) -> Place | None:
    """Return the place of a root on this machine; None for a root elsewhere."""
    if scheme_of(root.url).realm != "machine":
        return None
    return Place(root.url, file_path(root.url).rstrip(b"/") or b"/", root.depth)


class Reach:
    """Decides which names and folders are watched. `data`: the data folder."""

    def __init__(self, select: Selection, data: Path) -> None:
        self._select = select
        self._own_name = os.path.basename(os.path.realpath(os.fsencode(data)))
        found = os.stat(data)
        self._own = (found.st_dev, found.st_ino)

    def ignores(self, name: bytes, *, folder: bool) -> bool:
        """Return whether selection drops a name whatever is beside it."""
        return bool(by_name(name, self._select, folder=folder))

    def enters(self, path: bytes, name: bytes) -> bool:
        """Return whether a folder that is no link is watched."""
        if self.ignores(name, folder=True):
            return False
        return name != self._own_name or not self._is_own(path)

    def folders(self, place: Place, top: bytes) -> Iterator[bytes]:
        """Yield the folder `top` of a place, and all below that are watched, each before its entries are read.

        Folders that cannot be read are left out; so is whatever vanishes meanwhile.
        """
        if top != place.path and not self.enters(top, top.rpartition(b"/")[2]):
            return
        waiting = [(top, _depth(place, top))]
        while waiting:
            path, depth = waiting.pop()
            if 0 <= place.depth < depth:
                continue
            yield path
            waiting += [(each, depth + 1) for each in self._below(path)]

    def _below(self, path: bytes) -> list[bytes]:
        try:
            with os.scandir(path) as entries:
                names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:
            return []
        return [inner for name in names if self.enters(inner := joined(path, name), name)]

    def _is_own(self, path: bytes) -> bool:
        try:
            found = os.stat(path, follow_symlinks=False)
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self._own


def joined(folder: bytes, name: bytes) -> bytes:
    """Return the path of an entry of a folder."""
    return folder.rstrip(b"/") + b"/" + name


def _depth(place: Place, path: bytes) -> int:
    return path[len(place.path) :].strip(b"/").count(b"/") + 1 if path != place.path else 0
