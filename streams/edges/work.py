"""An object on its way through a child: its outputs so far, and how often and for how long it was tried."""

from __future__ import annotations

from typing import BinaryIO

from schemas.ports import Logged
from schemas.records import FetchedObject
from streams.edges.frame_validation import FrameValidator
from streams.edges.parse_job import Frame
from streams.edges.tries import RetryState

ALONE = 1 << 19
"""Bytes of a body above which it travels alone, as an open file."""


class Work(RetryState):
    """An object on its way through a child."""

    def __init__(self, logged: Logged, obj: FetchedObject, belief: FrameValidator) -> None:
        super().__init__()
        self.logged = logged
        self.obj = obj
        self.belief = belief
        self.blob = obj.blob
        """Digest of a body in the blob store."""
        self.body: BinaryIO | None = None
        """The same, while it is open."""
        self.length = obj.size if obj.blob else len(logged.value or b"")
        """Bytes that travel."""
        self.frames: list[Frame] = []
        self.size = 0
        self.staged = False
        self.ended = False
        self.damaged = False
        """Whether its body differs from the stored one."""
        self.lost = 0

    def close(self) -> None:
        """Close the body."""
        if self.body is not None:
            self.body.close()
            self.body = None

    @property
    def alone(self) -> bool:
        """Return whether its body travels as an open file."""
        return bool(self.blob) and self.length > ALONE

    @property
    def owner(self) -> str:
        """Return the owner of its staged records."""
        return f"essence {self.logged.partition} {self.logged.offset}"
