"""`harvest index rebuild`: a new index from the Broker's topic, beside the old one, which serves until the swap."""

from __future__ import annotations

import ctypes
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from streams.cli.common import Config, Data, Failure, counted, note, settings

if TYPE_CHECKING:
    from schemas.records import Removed, Summary
    from sinks.tantivy_index import TantivyIndex
    from streams.store import Store

BATCH = 2_000
AT_FDCWD = -100
RENAME_EXCHANGE = 2

app = typer.Typer(no_args_is_help=True, help="Look after the index.")


@app.command()
def rebuild(data: Data = None, config: Config = None) -> None:
    """Make the index anew from its topic, count it against the topic, and swap it for the old one."""
    folder = settings(config, data=data).data
    from streams.folder import index_folder
    from streams.store import Store, StoreError
    from streams.store.schema import FILE

    if not (folder / FILE).is_file():
        raise StoreError(f"{folder}: no data of harvest here")
    path = index_folder(folder)
    fresh = path.with_name(f"{path.name}.new")
    # The runner's lock: its sink must not write into the folder that is swapped.
    with Store(folder, runner=True) as store:
        shutil.rmtree(fresh, ignore_errors=True)
        try:
            count = _build(store, fresh)
            _swap(fresh, path)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    note(f"{counted(count, 'summary', 'summaries')} indexed")


def _build(store: Store, fresh: Path) -> int:
    """Fill a new index from offset 0; gives how many summaries it holds. Raises Failure if the topic holds another number."""
    from schemas.query import Every
    from sinks.tantivy_index import TantivyIndex

    index = TantivyIndex(fresh)
    try:
        held: set[str] = set()
        for partition, end in enumerate(store.ends("broker.main")):
            _fill(store, index, partition, end, held)
        count = index.count(Every())
    finally:
        index.close()
    if count != len(held):
        raise Failure(f"the new index has {counted(count, 'summary', 'summaries')}, its topic {len(held):,}: the old one stays")
    return count


def _fill(store: Store, index: TantivyIndex, partition: int, end: int, held: set[str]) -> None:
    from schemas.codec import DecodeError
    from schemas.records import Summary
    from streams.changes import change

    start = 0
    while start < end:
        batch = store.read("broker.main", partition, start, BATCH, until=end)
        start = batch[-1].offset + 1 if len(batch) == BATCH else end
        changes: list[Summary | Removed] = []
        for logged in batch:
            try:
                made = change(logged.value) if logged.value is not None else None
            except DecodeError:
                continue  # the sink that met it has made a dead letter of it
            if isinstance(made, Summary):
                held.add(made.oid)
            else:
                held.discard(logged.key.decode())
            if made is not None:
                changes.append(made)
        index.apply(changes, {partition: start})


def _swap(fresh: Path, path: Path) -> None:
    """Put the new folder in the place of the old one, in one step where the file system can; the old one is `fresh` then."""
    if not path.is_dir():
        fresh.rename(path)
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(AT_FDCWD, os.fsencode(fresh), AT_FDCWD, os.fsencode(path), RENAME_EXCHANGE) == 0:
        return
    old = path.with_name(f"{path.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    path.rename(old)
    fresh.rename(path)
    shutil.rmtree(old)
