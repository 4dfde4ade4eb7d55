"""The embedded store: log, rows and offsets in SQLite, large bodies in a folder or in object storage."""

from streams.store.blobs import BodyStore, FolderBlobs
from streams.store.bodies import open_bodies
from streams.store.database import Store
from streams.store.errors import AbsentError, DiskFull, LockedError, NewerError, StoreError
from streams.store.murmur2 import partition
from streams.store.rows import TableRows
from streams.store.transaction import Offsets, Transaction

__all__ = [
    "AbsentError",
    "BodyStore",
    "DiskFull",
    "FolderBlobs",
    "LockedError",
    "NewerError",
    "Offsets",
    "Store",
    "StoreError",
    "TableRows",
    "Transaction",
    "open_bodies",
    "partition",
]
