"""What a flow changes, and what it finds: files and pages of its own, and all that a runner has come to of them.

Names are short in all that is found: "a.zip#b.txt" is a member of a file below `Ground.folder`, "/x.html" a page of `Ground.site`.
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
"""s: files that are younger were written by a flow just now."""


class Order(NamedTuple):
    """A command: its words, the roots that are visited by it, the settings given with it, and whether one of its roots fails."""

    words: tuple[str, ...]
    roots: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    fails: bool = False


def gather(*roots: str | Path, options: Sequence[str | int] = (), fails: bool = False, **settings: str) -> Order:
    """Visit roots, the known ones again."""
    return Order(tuple(map(str, options)), tuple(map(str, roots)), tuple(settings.items()), fails)


def harvest(*words: str | Path) -> Order:
    """Another command."""
    return Order(tuple(map(str, words)))


class Found(NamedTuple):
    """What a runner has come to, by name; versions, times and counters are left out."""

    summaries: Mapping[str, Summary]
    """The Gatherer's database ..."""
    removed: Mapping[str, str]
    """... and what was in it, with the reason."""
    archive: Mapping[str, Summary]
    """That of the Broker `main` ..."""
    pages: Mapping[str, Summary]
    """... and of the one that has a filter."""
    files: Mapping[str, str]
    """The type of every file that was unnested, the last time."""
    roots: Mapping[str, str]
    """Whether they are active."""
    rejected: Mapping[str, str]
    """The dead letters that stand: stage and reason."""
    hits: Mapping[str, Mapping[str, Hit]]
    """What the index finds, by query; the score is each engine's own."""

    def copies(self, ground: Ground) -> dict[str, list[str]]:
        """The names of the copies of each content that has any, by that of the canonical one."""
        return {name: [ground.name(url) for url in one.copies] for name, one in self.archive.items() if one.copies}


Flow = Generator[Order, Found, None]
"""Gives what is to be done, and gets what has become of it."""


class Ground:
    """A folder and a web site, at the same addresses whoever plays."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.site = Site()
        self.prefixes = {file_url(os.fsencode(folder), folder=True): "", self.site.url: "/"}
        self._day = 0

    def clear(self) -> None:
        """Nothing is there any more, and nothing was ever asked."""
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
        """What was written since the last call is dated a day later than what was written before it, whoever plays, and when."""
        self._day += 1
        at = DATE + 86_400 * self._day
        for folder, _, names in os.walk(os.fsencode(self.folder)):
            for path in (os.path.join(folder, name) for name in names):
                if os.lstat(path).st_mtime > OLD:
                    os.utime(path, (at, at), follow_symlinks=False)

    def name(self, url: str) -> str:
        """The name of what is here; "" for what is not."""
        names = (short + url.removeprefix(prefix) or "./" for prefix, short in self.prefixes.items() if url.startswith(prefix))
        return next(names, "")
