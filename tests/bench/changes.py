"""Changes, adds, removes and renames files of a tree, a given number of each, for a second run to detect."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from typing import NamedTuple

from tests.bench.corpora import chosen

PLAIN = (b".html", b".txt", b".md", b"copyright")
"""Endings of file names whose content may be changed without breaking the format."""


class Expected(NamedTuple):
    """The number of objects that `harvest gather` has to report."""

    added: int
    changed: int
    removed: int


def change(paths: Sequence[bytes], count: int) -> Expected:
    """Change, add, remove and rename `count` files each. Raises ValueError, before any change, if there are too few files."""
    plain = [path for path in paths if path.endswith(PLAIN) and stat.S_ISREG(os.lstat(path).st_mode) and os.path.getsize(path)]
    if len(plain) < 3 * count:
        raise ValueError(f"{len(plain)} files that may be changed, not {3 * count}")
    picked = chosen(plain, 3 * count)
    for number, path in enumerate(picked[:count]):
        with open(path, "ab") as file:
            file.write(b"\nChanged.\n")
        folder, name = os.path.split(path)
        with open(os.path.join(folder, b"added-%d.txt" % number), "wb") as file:
            file.write(b"Added beside %s.\n" % name)
    for path in picked[count : 2 * count]:
        os.unlink(path)
    for path in picked[2 * count :]:
        folder, name = os.path.split(path)
        os.rename(path, os.path.join(folder, b"renamed-" + name))
    return Expected(added=2 * count, changed=count, removed=2 * count)
