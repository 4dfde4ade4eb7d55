"""A data folder from outside: where its parts are, and what it remembers about itself. Light to import.

| part | is |
| --- | --- |
| `store.sqlite` | log, rows, offsets (`streams/store`) |
| `blobs/` | bodies over 64 kB |
| `index/NAME/` | the index of a Broker |
| `runner.lock`, `writers.lock` | who may write |
"""

from __future__ import annotations

from pathlib import Path

from streams.store import Store

SPACE = "runner"
"""The rows that belong to no stage: `run` and `gatherer` (see `streams/embedded/runs.py`)."""


def index_folder(folder: Path, broker: str = "main") -> Path:
    """Where the index of a Broker is."""
    return folder / "index" / broker


def gatherer(store: Store) -> str:
    """The Gatherer's name that a data folder remembers; "" before its first run."""
    rows = store.rows(SPACE, 0)
    return ((rows.get(b"gatherer") if rows is not None else None) or b"").decode()
