"""Files of Debian packages, labeled by their paths.

The Debian Policy, the Filesystem Hierarchy Standard and the TeX Directory Structure define the content of folders.
"""

from __future__ import annotations

import fnmatch
import gzip
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from tests.bench import corpora
from tests.bench.packages import complete, files

NAMES = (
    "manpages-dev",
    "perl-modules-5.36",
    "libglib2.0-dev",
    "autoconf",
    "lmodern",
    "xfonts-base",
    "cmucl-docs",
    "libpython3.11-testsuite",
    "tcllib",
)
MOST = 200
"""Maximum number of files with one label."""
GZIP = ".gz"


def placed(folder: Path, places: dict[str, str]) -> Iterator[tuple[Path, str]]:
    """Files with the labels of their paths, decompressed; at most `MOST` of each label, chosen by the digests of their names."""
    target, mark = folder / "opened" / "debian", complete(folder / "opened", "debian")
    if not mark.is_file():
        shutil.rmtree(target, ignore_errors=True)
        _chosen(folder, target, places)
        mark.touch()
    for path in files(target):
        yield path, _label(str(path.relative_to(target)), places)


def _label(path: str, places: dict[str, str]) -> str:
    return next((label for glob, label in places.items() if fnmatch.fnmatchcase(path, glob)), "")


def _chosen(folder: Path, target: Path, places: dict[str, str]) -> None:
    """Copy the chosen files of the packages, each under its own path."""
    target.mkdir(parents=True)
    whole = folder / "packages"
    for package in corpora.unpacked(corpora.packages(folder, NAMES), whole):
        below: dict[str, list[bytes]] = {}
        for path in files(package):
            name = str(path.relative_to(package))
            # The label is that of the decompressed file.
            label = _label(name.removesuffix(GZIP), places)
            below.setdefault(label, []).append(os.fsencode(name))
        for label, names in below.items():
            for one in corpora.chosen(names, MOST) if label else ():
                _copied(package / os.fsdecode(one), target / os.fsdecode(one).removesuffix(GZIP))
    shutil.rmtree(whole)


def _copied(path: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path) if path.suffix == GZIP else path.open("rb") as body, target.open("wb") as copy:
        shutil.copyfileobj(body, copy)
