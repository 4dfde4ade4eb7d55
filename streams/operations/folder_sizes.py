"""What takes the bytes of a data folder, and which of them are history: for `harvest doctor`."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from streams.store import Store
from streams.topology.flow import Topology


class FolderSizes(NamedTuple):
    """Bytes of the parts of a data folder, the largest first: each entry of the folder, and each part of the store.

    `history`: bytes of the topics that a shorter retention would make smaller. They hold what no stage has read yet, too.
    """

    entries: list[tuple[str, int]]
    store: list[tuple[str, int]]
    history: int


def folder_sizes(folder: Path, store: Store, drawn: Topology) -> FolderSizes:
    """Return the sizes in a data folder. Reads the whole store. Raises OSError, StoreError."""
    entries = Counter({entry.name: _bytes_of(entry) for entry in os.scandir(folder)})
    old = {topic.name for topic in drawn.topics if topic.keep == "delete"}
    parts = store.parts()
    return FolderSizes(
        [(name, size) for name, size in entries.most_common() if size],
        [(f"{part.kind} {part.name}".strip(), part.bytes) for part in parts],
        sum(part.bytes for part in parts if part.kind == "topic" and part.name in old),
    )


def _bytes_of(entry: os.DirEntry[str]) -> int:
    """Return the bytes of a file, or of the files below a folder; a file that goes meanwhile has none."""
    if not entry.is_dir(follow_symlinks=False):
        return entry.stat(follow_symlinks=False).st_size
    total = 0
    for where, _, names in os.walk(entry.path):
        for name in names:
            try:
                total += os.lstat(os.path.join(where, name)).st_size
            except FileNotFoundError:
                continue
    return total
