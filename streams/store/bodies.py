"""Opens the store of bodies that the settings name: object storage, or a folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from streams.store.blobs import BodyStore, FolderBlobs
from streams.store.object_storage import BlobSettings

FOLDER = "blobs"
"""Folder of the data folder with bodies."""
CACHE = "blobs-cache"
"""Folder of the data folder with local copies of bodies in object storage."""


def open_bodies(
    data: Path,
    settings: BlobSettings,
    *,
    owner: bool = False,
    clock: Callable[[], int] | None = None,
    patience: float | None = None,
    max_body: int = 1 << 50,
) -> BodyStore:
    """Return the store of bodies of a data folder. Raises StoreError, OSError.

    owner, clock: as for `FolderBlobs`; patience, max_body: as for `ObjectBlobs`.
    """
    if not settings.url:
        return FolderBlobs(data / FOLDER, owner=owner, clock=clock)
    # Imported here: it loads nothing that a folder needs.
    from streams.store.object_blobs import ObjectBlobs  # noqa: PLC0415

    own = {} if clock is None else {"clock": clock}
    return ObjectBlobs(settings, data / CACHE, patience=patience, max_body=max_body, **own)
