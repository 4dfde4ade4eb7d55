"""Errors of an index, common to all engines; raised on opening, reading or writing it."""

from __future__ import annotations

from processors.query import QueryError


class IndexDamaged(RuntimeError):  # noqa: N818 - it names a state of the index, as FileNotFoundError does
    """There is no index that this version can read: rebuild it from the beginning of the Broker's topic."""


class IndexOutdated(IndexDamaged):
    """The index was made by another version: it is sound, but this version makes its own."""


class IndexMissing(FileNotFoundError):  # noqa: N818 - it names a state of the index, as FileNotFoundError does
    """There is no index yet."""


class IndexBusy(OSError):  # noqa: N818 - it names a state of the index, as FileNotFoundError does
    """Another process writes this index."""


class IndexUnreachable(OSError):  # noqa: N818 - it names a state of the index, as FileNotFoundError does
    """The server does not answer, refuses to serve, or is too busy: the request may be repeated."""


class IndexMoved(OSError):  # noqa: N818 - it names a state of the index, as FileNotFoundError does
    """Another index has replaced the one being written: `offsets` returns where to continue."""


class QueryRefused(QueryError):  # noqa: N818 - it names what became of the query
    """The engine refuses a request; of a query: it is too large for the engine."""

    def __init__(self, message: str) -> None:
        super().__init__(message, 0)
