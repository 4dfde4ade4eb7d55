"""The files and pages that a flow changes, and the state that a runner derives from them.

Results use short names: "a.zip#b.txt" is a member of a file below `Ground.folder`, "/x.html" a page of `Ground.site`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from processors.identity import file_url
from schemas.ports import Hit
from schemas.records import Summary
from tests.samples.make_corpus import DATE
from tests.samples.site_server import Site

OLD = 946_684_800
"""Unix time in seconds: a later file was written by a flow and has no fixed date yet."""


class Order(NamedTuple):
    """A command: its words, the roots that it visits, its settings, and whether one of its roots fails."""

    words: tuple[str, ...]
    roots: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    fails: bool = False


def gather(*roots: str | Path, options: Sequence[str | int] = (), fails: bool = False, **settings: str) -> Order:
    """Visit roots, known ones again."""
    return Order(tuple(map(str, options)), tuple(map(str, roots)), tuple(settings.items()), fails)


def harvest(*words: str | Path) -> Order:
    """Run another command."""
    return Order(tuple(map(str, words)))


class Found(NamedTuple):
    """The state of a runner, by short name, without versions, times and counters."""

    summaries: Mapping[str, Summary]
    """Summaries in the Gatherer's database."""
    removed: Mapping[str, str]
    """Removed summaries in the Gatherer's database, with the reason."""
    archive: Mapping[str, Summary]
    """Summaries of the Broker `main`."""
    others: Mapping[str, Mapping[str, Summary]]
    """Summaries of the other Brokers, by Broker."""
    streams: Mapping[str, Mapping[str, Summary]]
    """Summaries of the Brokers that have a stream, as it sends them: without roles and views."""
    views: Mapping[str, Mapping[str, str]]
    """Queries of all views by path, by Broker."""
    files: Mapping[str, str]
    """The latest type of every unnested file."""
    roots: Mapping[str, str]
    """The state of each root, such as active or paused."""
    rejected: Mapping[str, str]
    """Current dead letters: stage and reason."""
    hits: Mapping[str, Mapping[str, Hit]]
    """Hits of `main` by query, and all of each other Broker by its name; those of a view by BROKER/PATH.

    Scores are left out, since they depend on the engine.
    """

    def copies(self, ground: Ground) -> dict[str, list[str]]:
        """The names of the copies of each content that has any, by the name of the canonical one."""
        return {name: [ground.name(url) for url in one.copies] for name, one in self.archive.items() if one.copies}


Flow = Generator[Order, Found, None]
"""A generator that yields commands, and is sent the resulting state."""


class Ground:
    """A folder and a web site, at the same addresses for both runners."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.site = Site()
        self.prefixes = {file_url(os.fsencode(folder), folder=True): "", self.site.url: "/"}
        self._day = 0

    def clear(self) -> None:
        """Delete all files and pages, and the list of requests."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        self.site.files, self.site.redirects, self.site.fail = {}, {}, False
        self.site.asked.clear()
        self._day = 0

    def write(self, files: Mapping[str, bytes | str]) -> None:
        """Write files."""
        for name, content in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)

    def date(self) -> None:
        """Date files written since the last call one day after those before, so that dates do not depend on runner and time."""
        self._day += 1
        at = DATE + 86_400 * self._day
        for folder, _, names in os.walk(os.fsencode(self.folder)):
            for path in (os.path.join(folder, name) for name in names):
                if os.lstat(path).st_mtime > OLD:
                    os.utime(path, (at, at), follow_symlinks=False)

    def name(self, url: str) -> str:
        """The short name of a URL of this folder or site; "" for any other."""
        names = (short + url.removeprefix(prefix) or "./" for prefix, short in self.prefixes.items() if url.startswith(prefix))
        return next(names, "")
