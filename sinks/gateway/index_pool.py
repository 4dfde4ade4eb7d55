"""Open indexes that requests share, one for each search at once.

An index that was swapped, made anew or deleted is opened again; one that fails is closed and used no more.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from schemas.ports import BrokerIndex
from sinks.gateway.ports import OpenIndex
from sinks.index.errors import IndexDamaged, IndexMissing

AGAIN = (0.05, 0.2)
"""Pauses in seconds before a question is repeated: the index may have been swapped at that moment."""

Answer = TypeVar("Answer")
Ask = Callable[[BrokerIndex], Answer]


class IndexPool:
    """Indexes that are opened when they are needed, and kept open."""

    def __init__(self, open_index: OpenIndex) -> None:
        self._open = open_index
        self._idle: list[BrokerIndex] = []
        self._lock = threading.Lock()

    def ask(self, ask: Ask[Answer]) -> Answer:
        """Return what `ask` returns for an open index. Raises QueryError, IndexDamaged, OSError, and what `ask` raises."""
        for pause in AGAIN:
            try:
                return self._asked(ask)
            except (IndexDamaged, IndexMissing):
                time.sleep(pause)
        return self._asked(ask)

    def _asked(self, ask: Ask[Answer]) -> Answer:
        index = self.take()
        try:
            answer = ask(index)
        except (IndexDamaged, OSError):
            # What failed for one may be gone for all.
            index.close()
            self.close()
            raise
        except Exception:
            self.give_back(index)
            raise
        self.give_back(index)
        return answer

    def take(self) -> BrokerIndex:
        """Return an index for one user; it has to be given back, or closed."""
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return self._open()

    def give_back(self, index: BrokerIndex) -> None:
        """Keep an index for others."""
        with self._lock:
            self._idle.append(index)

    def close(self) -> None:
        """Close the indexes that nobody uses."""
        with self._lock:
            idle, self._idle = self._idle, []
        for index in idle:
            index.close()
