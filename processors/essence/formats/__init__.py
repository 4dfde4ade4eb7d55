"""Readers of file formats that both unnesters and summarizers use."""

from __future__ import annotations

from schemas.records import MAX_REASON


class FormatError(ValueError):
    """The input is damaged, or beyond a limit; the message is a reason of at most 200 characters."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason[:MAX_REASON])
