"""`harvest index rebuild`: a new index from the Broker's topic, beside the old one, which serves until the swap."""

from __future__ import annotations

import ctypes
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from streams.cli.common import Config, Data, Failure, counted, note, settings

if TYPE_CHECKING:
    from schemas.ports import Log
    from streams.settings import Settings

TOPIC = "broker.main"
AT_FDCWD = -100
RENAME_EXCHANGE = 2

app = typer.Typer(no_args_is_help=True, help="Look after the index.")


@app.command()
def rebuild(data: Data = None, config: Config = None) -> None:
    """Make the index anew from its topic, count it against the topic, and swap it for the old one."""
    found = settings(config, data=data)
    from streams.rebuilding import MismatchError

    try:
        count = _on_server(found) if found.index.url else _in_folder(found)
    except MismatchError as error:
        raise Failure(str(error)) from error
    note(f"{counted(count, 'summary', 'summaries')} indexed")


def _on_server(found: Settings) -> int:
    from streams import rebuilding
    from streams.indexes import alias
    from streams.logs import opened

    with opened(found) as log:
        _topic(log)
        stamp = datetime.now(tz=UTC).strftime("%Y%m%dt%H%M%S")
        return rebuilding.rebuild(log, TOPIC, found.index.url, alias(found), stamp)


def _in_folder(found: Settings) -> int:
    from streams.folder import index_folder

    path = index_folder(found.data)
    fresh = path.with_name(f"{path.name}.new")
    with _alone(found, path) as log:
        shutil.rmtree(fresh, ignore_errors=True)
        try:
            count = _build(log, fresh)
            _swap(fresh, path)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    return count


@contextmanager
def _alone(found: Settings, path: Path) -> Iterator[Log]:
    """The log, while nobody else writes the index in the folder."""
    if not found.kafka.brokers:
        from streams.store import Store

        Store(found.data, readonly=True).close()  # none is to be made where there is none
        # The runner's lock: its sink must not write into the folder that is swapped.
        with Store(found.data, runner=True) as store:
            yield store
        return
    from sinks.errors import IndexDamaged
    from sinks.tantivy_index import TantivyIndex
    from streams.logs import opened

    with opened(found) as log, ExitStack() as held:
        _topic(log)
        # The index's own lock, against a worker's sink. One that cannot be opened cannot be written by anybody.
        with suppress(IndexDamaged):
            held.enter_context(closing(TantivyIndex(path)))
        yield log


def _topic(log: Log) -> None:
    if TOPIC not in log.topics():
        raise Failure(f"{TOPIC}: no such topic (harvest topics apply)")


def _build(log: Log, fresh: Path) -> int:
    """Fill a new index from offset 0; gives how many summaries it holds. Raises MismatchError."""
    from sinks.tantivy_index import TantivyIndex
    from streams.rebuilding import Filler

    with closing(TantivyIndex(fresh)) as index:
        filler = Filler(log, TOPIC, index)
        filler.catch_up()
        return filler.counted()


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
