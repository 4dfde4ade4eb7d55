"""A sink of an embedded runner: a thread that applies a topic to what the sink fills, which stores the offsets."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path

from schemas.records import Rejected
from streams.store import Store
from streams.topology.flow import REJECTED

POLL = 0.5
"""Seconds between two reads of the topic."""


class SinkThread(ABC):
    """Applies a topic. `error` is the exception that ended its thread, if any."""

    def __init__(self, folder: Path, name: str, topic: str) -> None:
        self.topic = topic
        self._folder = folder
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)
        self._nudged = threading.Event()
        self._stop = False
        self._applied: dict[int, int] = {}
        """Committed offsets, by partition."""
        self._opened = False
        self._letters: list[Rejected] = []
        self.error: BaseException | None = None
        self.wake: Callable[[], object] = lambda: None
        self.saw: Callable[[int], None] = lambda _: None
        """Called with the number of changes that were applied."""

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def nudge(self) -> None:
        """Apply the records that have been read: the runner has no other work."""
        self._nudged.set()

    def caught_up(self, ends: Sequence[int]) -> bool:
        """Return whether what is filled exists and contains everything below these offsets."""
        return self._opened and all(self._applied.get(p, 0) >= end for p, end in enumerate(ends))

    def opened(self) -> bool:
        """Return whether what is filled exists and the thread is running."""
        return self._opened and self.error is None

    def applied(self, partition: int) -> int:
        """Return the offset of a partition that has been committed."""
        return self._applied.get(partition, 0)

    def close(self) -> None:
        """Apply the records that have been read, and end the thread."""
        self._stop = True
        self._nudged.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _main(self) -> None:
        try:
            with Store(self._folder, readonly=True) as store:
                self._run(store)
        except BaseException as error:  # noqa: BLE001 - handed to the runner, which raises it
            self.error = error
        finally:
            self.wake()

    @abstractmethod
    def _run(self, store: Store) -> None:
        """Open what is filled, and apply the topic until `_stop`."""

    def _started(self) -> None:
        """Report that what is filled is open."""
        self._opened = True
        self.wake()

    def _bury(self) -> None:
        """Append the dead letters. They are durable before the offsets behind their records are committed."""
        if self._letters:
            with Store(self._folder) as store:
                store.append(REJECTED.name, [(REJECTED.key(letter).encode(), letter) for letter in self._letters])
            self._letters.clear()
