"""The embedded store: log, rows and offsets in SQLite, large bodies in a folder of blobs."""

from streams.store.blobs import FolderBlobs
from streams.store.database import Store
from streams.store.errors import AbsentError, DiskFull, LockedError, NewerError, StoreError
from streams.store.murmur2 import partition
from streams.store.rows import TableRows
from streams.store.transaction import Offsets, Transaction

__all__ = [
    "AbsentError",
    "DiskFull",
    "FolderBlobs",
    "LockedError",
    "NewerError",
    "Offsets",
    "Store",
    "StoreError",
    "TableRows",
    "Transaction",
    "partition",
]
