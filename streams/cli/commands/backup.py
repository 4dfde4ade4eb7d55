"""`harvest backup` and `harvest restore`: a data folder to a folder of backups and back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streams.cli.common import Config, Data, Failure, counted, folder, note, settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from processors.broker.definition import Broker
    from streams.config.settings import Settings

TO = "Folder of backups; made if it is not there."
FROM = "A folder of backups, whose latest is taken, or one backup in it."
Keep = Annotated[int, typer.Option("--keep", metavar="N", min=1, help="Backups to keep in the folder, this one included.")]
NAMED = 3
"""Lost bodies that are named."""


def backup(
    to: Annotated[Path, typer.Argument(metavar="FOLDER", help=TO, parser=folder)],
    keep: Keep = 1,
    data: Data = None,
    config: Config = None,
) -> None:
    """Back up the data folder, also while it is in use: the log, all rows and offsets of one moment, and its large bodies.

    Bodies in object storage (blobs.url) are copied too; those that the folder has already are not copied again. Exit code 1 also
    if bodies are missing.
    """
    found = settings(config, data=data)
    _refuse_kafka(found)
    from importlib.metadata import version

    from streams.cli.wiring import blob_settings
    from streams.operations.backup import make_backup

    made = make_backup(found.data, to, version=version("harvest"), keep=keep, blobs=blob_settings(found))
    held = made.manifest
    bodies = f"{counted(held.bodies, 'body', 'bodies')} of {held.body_bytes:,} bytes, {made.copied:,} of them new"
    note(f"{made.folder}: store of {made.store_bytes:,} bytes, {bodies}")
    if made.lost:
        more = f" and {len(made.lost) - NAMED:,} more" if len(made.lost) > NAMED else ""
        lost = f"{', '.join(made.lost[:NAMED])}{more}"
        raise Failure(
            f"{found.blobs.url or found.data}: bodies that the log names are missing or damaged, the backup is without them: {lost}"
        )


def restore(
    backup: Annotated[Path, typer.Argument(metavar="BACKUP", help=FROM, parser=folder)],
    data: Data = None,
    config: Config = None,
) -> None:
    """Make a new data folder of a backup, verified, with the index made anew.

    With blobs.url its bodies go into the object storage.
    """
    found = settings(config, data=data)
    _refuse_kafka(found)
    from streams.cli.wiring import blob_settings
    from streams.config.topology import brokers_of
    from streams.operations import restore as restoring

    def brokers(folder: Path) -> Sequence[Broker]:
        elsewhere = found.brokers is not None
        return brokers_of(found if elsewhere else found.model_copy(update={"brokers": folder}))

    done = restoring.restore(backup, found.data, brokers, blob_settings(found))
    held = done.manifest
    bodies = counted(held.bodies, "body", "bodies")
    indexed = counted(sum(done.indexed.values()), "summary", "summaries")
    note(f"{found.data}: as of {held.made}, gatherer {held.gatherer or '-'}, {bodies}, {indexed} indexed")
    if found.index.url:
        note(f"the index on {found.index.url} is as it was: harvest index rebuild makes it anew")


def _refuse_kafka(found: Settings) -> None:
    """Refuse where the data are on Kafka. Raises Failure."""
    if found.kafka.brokers:
        raise Failure(
            "kafka.brokers is set: the topics there are the data, and their replicas the first backup; harvest topics list"
            " names them, harvest export TOPIC FILE writes one to a file, harvest import FILE reads it back"
        )
