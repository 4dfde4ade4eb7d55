"""Dead letters: the record of `Rejected.avsc`, with the bounds of its texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from schemas.record import Record

MAX_REASON = 200
"""Characters of a reason; also of that of other records."""
MAX_DETAIL = 2_000
"""Characters of what is added to a reason, such as a traceback."""


class Rejected(Record, frozen=True, kw_only=True):
    """A dead letter: the record that could not be processed, the reason, and the data for a retry."""

    stage: str
    reason: str
    time: int
    url: str = ""
    path: str = ""
    version: int = 0
    detail: str = ""
    topic: str = ""
    partition: int = -1
    offset: int = -1
    key: bytes | None = None
    value: bytes | None = None

    BOUNDS: ClassVar[Mapping[str, int]] = {"reason": MAX_REASON, "detail": MAX_DETAIL}

    def __post_init__(self) -> None:
        for name, bound in self.BOUNDS.items():
            if len(getattr(self, name)) > bound:
                raise ValueError(f"Rejected.{name}: at most {bound} characters")
