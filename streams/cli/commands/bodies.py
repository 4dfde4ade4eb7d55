"""`harvest bodies`: the store of bodies over 64 kB of workers on Kafka."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from streams.cli.common import Config, Data, Failure, counted, folder, note, open_log, put, settings

app = typer.Typer(no_args_is_help=True, help="Check, fill and trim the store of bodies of workers on Kafka.")

Source = Annotated[Path, typer.Argument(metavar="FOLDER", help="The data folder that has the bodies.", parser=folder)]


@app.command()
def check(data: Data = None, config: Config = None) -> None:
    """Check that bodies can be stored and read; exit code 1 if not."""
    found = settings(config, data=data)
    from streams.cli.wiring import blob_settings
    from streams.store.object_storage import ObjectStorage

    if not found.blobs.url:
        raise Failure("blobs.url is not set: bodies are in the data folder, which harvest doctor checks", 2)
    ObjectStorage(blob_settings(found)).check(write=True)
    put("bodies can be stored and read")


@app.command()
def copy(source: Source, data: Data = None, config: Config = None) -> None:
    """Copy the bodies of a data folder into object storage, before workers start to use it; exit code 1 if one is damaged.

    The folder stays as it is. A copy that was interrupted is continued by the next one.
    """
    found = settings(config, data=data)
    from streams.cli.wiring import blob_settings
    from streams.operations import bodies
    from streams.store import open_bodies
    from streams.store.bodies import FOLDER

    if not found.blobs.url:
        raise Failure("blobs.url is not set: there is no object storage to copy to", 2)
    if not (source / FOLDER).is_dir():
        raise Failure(f"{source / FOLDER}: no such folder: there are no bodies in {source}")
    store = open_bodies(found.data, blob_settings(found), patience=found.blobs.timeout)
    try:
        store.check(write=True)
        copied = bodies.copy(source / FOLDER, store)
    finally:
        store.close()
    for digest in copied.damaged:
        note(f"{digest}: was changed in the folder, and is not copied; its object is rejected if it is needed again")
    put(f"{counted(copied.bodies, 'body', 'bodies')} copied, {copied.bytes:,} bytes")
    if copied.damaged:
        raise typer.Exit(1)


@app.command()
def trim(
    retention: Annotated[float | None, typer.Option(min=0, help="Seconds; default: the setting retention.")] = None,
    data: Data = None,
    config: Config = None,
) -> None:
    """Delete bodies that are two days older than the retention and that no record in the log names; run it once a day, say.

    Workers may run meanwhile. A data folder without Kafka needs no such command: harvest run and harvest gather trim it.
    """
    found = settings(config, data=data)
    if not found.kafka.brokers:
        raise Failure("kafka.brokers is not set: harvest run and harvest gather trim a data folder by themselves", 2)
    from streams.cli.wiring import blob_settings
    from streams.clock import now_ms
    from streams.operations import bodies
    from streams.store import open_bodies

    store = open_bodies(found.data, blob_settings(found), patience=found.blobs.timeout)
    try:
        store.check(write=False)
        with open_log(found) as log:
            gone = bodies.trim(log, store, found.retention if retention is None else retention, now_ms())
    finally:
        store.close()
    put(f"{counted(gone.blobs, 'body', 'bodies')} deleted, {gone.bytes:,} bytes")
