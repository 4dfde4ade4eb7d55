"""What the gateway needs of the rest of Harvest; the command line hands it in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import BinaryIO, NamedTuple, Protocol

from processors.query.terms import Views
from schemas.ports import BrokerIndex
from schemas.records import Summary
from sinks.feed.reader import FeedReader

OpenIndex = Callable[[], BrokerIndex]
"""Opens the index of the Broker for reading. Raises IndexMissing, IndexDamaged, IndexUnreachable."""


class ObjectError(Exception):
    """The bytes of an object, or the feed, cannot be served; the message is one line for the user.

    `status`: the HTTP status, 404 if there is no such file or member any more, 409 if it was changed after it was gathered, 403 if
    it may not be served, 413 if it is too large, 502 if it cannot be taken out of its archive, 503 if a later try may succeed.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class CollectionError(Exception):
    """The log cannot be read now; the message is one line for the user. It may be repeated later: 503."""


class Event(NamedTuple):
    """Event that concerned a URL, from the log."""

    time: int
    """ms since the epoch."""
    topic: str
    event: str
    reason: str
    version: int


class Finding(NamedTuple):
    """Result of a check of the machine, of its safety layers or of the data folder."""

    check: str
    ok: bool
    detail: str


class Root(NamedTuple):
    """State of a root."""

    url: str
    state: str
    """A word: `active`, `paused`, `failed`, `in doubt`."""
    detail: str
    """The reason of a failure or a doubt; may be empty."""


class Host(NamedTuple):
    """State of a host that is being gathered, or of the local files (then the name is empty)."""

    name: str
    waiting: int
    """Number of URLs that wait to be requested."""
    outstanding: int
    """Number of requests without an answer yet."""
    detail: str
    """The last error; may be empty."""


class Stage(NamedTuple):
    """Progress of a stage: `lag` is the number of records that it has not read yet."""

    name: str
    lag: int


class Rejection(NamedTuple):
    """Number of rejected records with a reason, and an example."""

    reason: str
    total: int
    url: str


class Status(NamedTuple):
    """What the pipeline is doing. Long lists are cut; `more` counts what is left out of each."""

    gatherer: str
    run: str
    """What the current run is doing, or how the last one ended: a sentence, or empty if it is not known here."""
    roots: Sequence[Root]
    hosts: Sequence[Host]
    stages: Sequence[Stage]
    rejections: Sequence[Rejection]
    more: Sequence[str] = ()
    """Notes on what is left out or not known here."""


class Collection(Protocol):
    """The Gatherer's side, for reading. Every method may block, and is called from several threads at once."""

    def status(self) -> Status:
        """Return what the pipeline is doing. A log that cannot be read, or is not there, gives an empty status with a note."""
        ...

    def why(self, url: str) -> Sequence[Event]:
        """Return the events that concerned a URL (of a member: object#path), in order; empty if none is known.

        Raises CollectionError.
        """
        ...

    def views(self) -> Views:
        """Return the views of the Broker that is served, for `view:PATH` in a query. Raises CollectionError."""
        ...

    def findings(self) -> Iterable[Finding]:
        """Iterate over the findings of `harvest doctor`."""
        ...

    def body(self, summary: Summary) -> tuple[BinaryIO, int]:
        """Open the bytes that a summary describes, of a local file or a member of an archive, and return their number.

        The file can be sought in; the caller closes it. Reading raises OSError once the local file is changed. Raises ObjectError.
        """
        ...

    def feed(self) -> FeedReader:
        """Open the feed, which has everything that the Gatherer's database has; the caller closes it.

        Raises CollectionError, and ObjectError (403) where the Broker that is served accepts only some summaries.
        """
        ...
