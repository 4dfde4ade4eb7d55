"""What the administration page needs of the rest of Harvest; the command line hands it in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class AdministrationError(Exception):
    """An action cannot be carried out; the message is one line for the user.

    `status`: the HTTP status, 422 for a mistake of the user, 409 where the pipeline is in a state that does not allow it now.
    """

    def __init__(self, message: str, status: int = 422) -> None:
        super().__init__(message)
        self.status = status


class AdminRoot(NamedTuple):
    """A root with its options."""

    url: str
    paused: bool
    limits: str
    """Its limits as text, such as `depth 3, 1,000 URLs`; may be empty."""


class AdminBroker(NamedTuple):
    """A Broker: its definition, and what it holds."""

    name: str
    title: str
    query: str
    """Empty: it accepts all summaries."""
    sources: Sequence[str]
    ttl: int | None
    """Longest time-to-live in seconds; None: that of the summaries."""
    summaries: int | None
    """Number of summaries in its index; None: the index cannot be read."""
    problems: Sequence[str] = ()


class AdminView(NamedTuple):
    """A view of a Broker: a standing query with a path."""

    broker: str
    path: str
    query: str


class AdminRejection(NamedTuple):
    """An unresolved rejection. `name` is what `harvest rejected retry` takes."""

    name: str
    stage: str
    reason: str
    time: int
    """ms since the epoch."""


class RejectionGroup(NamedTuple):
    """The unresolved rejections of a reason, with the latest of them."""

    reason: str
    total: int
    latest: Sequence[AdminRejection]


class Registration(NamedTuple):
    """A server that has registered at this gateway's registry."""

    broker: str
    """The Broker that holds it."""
    url: str
    title: str


class Size(NamedTuple):
    """Size of a part of the data folder in bytes."""

    name: str
    size: int


class Task(NamedTuple):
    """Work that runs in the background, or has run."""

    name: str
    """The command, such as `harvest index rebuild --broker main`."""
    state: str
    """`running`, `done` or `failed`."""
    detail: str
    """The last line that the command has written; may be empty."""
    began: int
    """ms since the epoch."""


class Administration(Protocol):
    """The actions of the administration page, and what it lists.

    Every method may block, and is called from several threads at once. All raise CollectionError where the log or the data folder
    cannot be read, and the actions raise AdministrationError. Long lists are cut; the notes beside them say what is left out.
    An action returns one line on what it has done.
    """

    def roots(self) -> tuple[Sequence[AdminRoot], Sequence[str]]:
        """Return the roots in order of URL, and notes."""
        ...

    def add_root(self, name: str, depth: int | None, max_urls: int | None) -> str:
        """Add a root by its URL or absolute path, or visit a known one again. None: the limit of the settings."""
        ...

    def pause_root(self, name: str) -> str:
        """Pause a root."""
        ...

    def resume_root(self, name: str) -> str:
        """Resume a paused root."""
        ...

    def remove_root(self, name: str) -> str:
        """Remove a root: objects that no other root reaches are removed."""
        ...

    def brokers(self) -> Sequence[AdminBroker]:
        """Return the Brokers of the settings."""
        ...

    def rebuild(self, broker: str) -> str:
        """Begin to rebuild the index of a Broker in the background; one rebuild runs at a time."""
        ...

    def task(self) -> Task | None:
        """Return the work in the background, or the last that has ended; None if there was none since the start."""
        ...

    def views(self) -> Sequence[AdminView]:
        """Return the views of all Brokers."""
        ...

    def save_view(self, broker: str, path: str, query: str) -> str:
        """Create a view of a Broker; one that is there is not changed."""
        ...

    def rejections(self) -> tuple[Sequence[RejectionGroup], Sequence[str]]:
        """Return the unresolved rejections by reason, the most frequent first, and notes."""
        ...

    def retry(self, name: str) -> str:
        """Retry a rejection by its name."""
        ...

    def retry_reason(self, reason: str) -> str:
        """Retry all unresolved rejections of a reason."""
        ...

    def registrations(self) -> tuple[Sequence[Registration], Sequence[str]]:
        """Return the servers in the Brokers whose query is `type:Server`, and notes; a note says so if there is no such Broker."""
        ...

    def sizes(self) -> Sequence[Size]:
        """Return the sizes of the parts of the data folder."""
        ...

    def log(self, text: str) -> None:
        """Write a line to the log of the command."""
        ...
