"""The protocol between a parent and a child: requests and frames over a socket pair, progress over one shared page.

Wire: a header of length (32 bits) and kind (8 bits), little-endian, then that many bytes. A request's descriptor travels with its
header (SCM_RIGHTS). One request is in progress at a time, so nothing ever follows it in the socket.

The page: a progress() costs no system call and does not wake the parent, and its text survives a crash. The parent's timer compares
the counter; the text is read when the child has ended or is about to. A child can write anything there: it can postpone its
deadline (the limit for the whole task remains) and name a wrong culprit, nothing else.
"""

from __future__ import annotations

import mmap
import os
import struct

from streams.sandbox.values import MAX_CULPRIT

HEAD = struct.Struct("<IB")
PAGE_SIZE = 32_768

TASK, TASK_WITH_BODY, LAYERS = 0, 1, 2
"""Kinds of requests."""
READY, FRAME, DONE, FAILED, MEMORY, FLOODED = 0, 1, 2, 3, 4, 5
"""Kinds of answers."""
LAST = 0x80
"""Flag in the kind of an answer that ends a task: the child should be replaced after it."""
STRAINED = 0x40
"""Flag in DONE: address space was short."""

FULL = 0.8
"""Fraction of the memory limit above which a failure counts as out of memory."""
EXIT_MEMORY = 77
"""Exit status of a child that had too little memory left to report it."""

_COUNT = struct.Struct("<Q")
_LENGTH = struct.Struct("<I")
_SLOT = 8
_TEXTS = (16, 16 + 4 + MAX_CULPRIT)


class ProgressPage:
    """The shared page, used by both sides."""

    def __init__(self, descriptor: int) -> None:
        """Map the page. Raises OSError."""
        self._map = mmap.mmap(descriptor, PAGE_SIZE)
        self._count = self._slot = 0

    @staticmethod
    def create() -> int:
        """Create a page and return its descriptor. Raises OSError."""
        descriptor = os.memfd_create("harvest-progress")
        os.ftruncate(descriptor, PAGE_SIZE)
        return descriptor

    def beat(self) -> None:
        """Child: signal that it is alive."""
        self._count += 1
        _COUNT.pack_into(self._map, 0, self._count)

    def say(self, text: str) -> None:
        """Child: set the text of the item that is processed from now on."""
        data = text.encode("utf-8", "surrogatepass")[:MAX_CULPRIT]
        # Written to the unused slot, so that a kill at this moment leaves the previous text, not a mixture of two.
        self._slot = 1 - self._slot
        at = _TEXTS[self._slot]
        _LENGTH.pack_into(self._map, at, len(data))
        self._map[at + 4 : at + 4 + len(data)] = data
        self._map[_SLOT] = self._slot
        self.beat()

    @property
    def count(self) -> int:
        """Parent: a counter that changes with every sign of life of the child."""
        count: int = _COUNT.unpack_from(self._map, 0)[0]
        return count

    @property
    def text(self) -> str:
        """Parent: the last text of the child. Never raises, whatever the page contains."""
        data = b""
        for _ in range(16):
            count = self.count
            at = _TEXTS[self._map[_SLOT] & 1]
            length: int = min(_LENGTH.unpack_from(self._map, at)[0], MAX_CULPRIT)
            data = self._map[at + 4 : at + 4 + length]
            # A running child may have written meanwhile.
            if self.count == count:
                break
        try:
            return data.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            return data.decode("utf-8", "replace")

    def close(self) -> None:
        """Unmap the page."""
        self._map.close()
