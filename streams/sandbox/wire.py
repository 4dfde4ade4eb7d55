"""What goes between a parent and a child: requests and frames over a socket pair, progress over one shared page.

Wire: a head of length (32 bits) and kind (8 bits), little-endian, then that many bytes. A request's descriptor travels with its
head (SCM_RIGHTS). One request is under way at a time, so nothing ever follows it in the socket.

The page: a progress() costs no system call and does not wake the parent, and it outlives a crash. The parent's timer compares the
counter; the text is read when the child ends, or is about to. A child can write there what it likes: it can put off its deadline
(the limit for the whole task remains) and name a wrong culprit, nothing else.
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
"""Set in the kind of an answer that ends a task after which the child wants to be replaced."""
STRAINED = 0x40
"""Set in DONE if address space was short."""

FULL = 0.8
"""Part of the memory limit above which a failure is want of memory."""
EXIT_MEMORY = 77
"""Exit status of a child that had no memory left to say so."""

_COUNT = struct.Struct("<Q")
_LENGTH = struct.Struct("<I")
_SLOT = 8
_TEXTS = (16, 16 + 4 + MAX_CULPRIT)


class ProgressPage:
    """The shared page, as both sides see it."""

    def __init__(self, descriptor: int) -> None:
        """Map the page. Raises OSError."""
        self._map = mmap.mmap(descriptor, PAGE_SIZE)
        self._count = self._slot = 0

    @staticmethod
    def create() -> int:
        """The descriptor of a new page. Raises OSError."""
        descriptor = os.memfd_create("harvest-progress")
        os.ftruncate(descriptor, PAGE_SIZE)
        return descriptor

    def beat(self) -> None:
        """Child: say that it is alive."""
        self._count += 1
        _COUNT.pack_into(self._map, 0, self._count)

    def say(self, text: str) -> None:
        """Child: say what it works on from now on."""
        data = text.encode("utf-8", "surrogatepass")[:MAX_CULPRIT]
        # Into the slot that is not in use, so that a kill at this moment leaves the text before, and no mixture of two.
        self._slot = 1 - self._slot
        at = _TEXTS[self._slot]
        _LENGTH.pack_into(self._map, at, len(data))
        self._map[at + 4 : at + 4 + len(data)] = data
        self._map[_SLOT] = self._slot
        self.beat()

    @property
    def count(self) -> int:
        """Parent: changes whenever the child gave a sign of life."""
        count: int = _COUNT.unpack_from(self._map, 0)[0]
        return count

    @property
    def text(self) -> str:
        """Parent: what the child worked on. Never raises, whatever is there."""
        data = b""
        for _ in range(16):
            count = self.count
            at = _TEXTS[self._map[_SLOT] & 1]
            length: int = min(_LENGTH.unpack_from(self._map, at)[0], MAX_CULPRIT)
            data = self._map[at + 4 : at + 4 + length]
            # A child that lives may have gone on meanwhile.
            if self.count == count:
                break
        try:
            return data.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            return data.decode("utf-8", "replace")

    def close(self) -> None:
        """Unmap it."""
        self._map.close()
