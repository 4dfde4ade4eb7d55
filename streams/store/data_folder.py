"""Paths and identity of a data folder, without opening it for writing. Imports little.

| part | is |
| --- | --- |
| `store.sqlite` | log, rows, offsets (`streams/store`) |
| `blobs/` | bodies over 64 kB |
| `index/NAME/` | the index of a Broker |
| `feed/` | the Gatherer's database as one stream; it is made anew where it is missing |
| `statistics/`, `statistics-elsewhere/` | words of Brokers, for searches over several of them (`streams/routing`) |
| `runner.lock`, `writers.lock` | locks of writers |
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from streams.store import AbsentError, Store, StoreError

SPACE = "runner"
"""Name of the rows that belong to no stage: `run` and `gatherer` (see `streams/embedded/runs.py`)."""

STATISTICS = "statistics"
"""Folder of the words of Brokers, one file each."""


@contextmanager
def known(folder: Path) -> Iterator[Store | None]:
    """Open the store of a data folder for reading; None if there is none, or an incomplete one. Raises StoreError."""
    with ExitStack() as stack:
        try:
            store = stack.enter_context(Store(folder, readonly=True))
        except AbsentError:
            store = None
        yield store


def index_folder(folder: Path, broker: str) -> Path:
    """Return the folder of a Broker's index."""
    return folder / "index" / broker


def gatherer(store: Store) -> str:
    """Return the Gatherer's name that a data folder has stored; "" before its first run. Raises StoreError."""
    rows = store.rows(SPACE, 0)
    try:
        return ((rows.get(b"gatherer") if rows is not None else None) or b"").decode()
    except UnicodeDecodeError as error:
        raise StoreError(f"the data folder is damaged: the gatherer's name: {error}") from error
