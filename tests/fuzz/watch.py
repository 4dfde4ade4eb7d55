"""Counts work: executed lines of the project's code, calls of functions in all code, and lines that are new.

Nothing here measures time, so that a limit means the same on every machine and a run can be repeated.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, TypeVar

ROOT = Path(__file__).resolve().parents[2]
OURS = tuple(f"{ROOT / name}/" for name in ("processors", "schemas", "streams"))

Made = TypeVar("Made")
Local = Callable[[FrameType, str, Any], Any]


class Overrun(BaseException):
    """The work exceeded its limit and is stopped. Not an Exception, so that `except Exception` cannot catch it."""


class Watch:
    """Runs functions and counts their work. `fresh` is the number of lines that the last run was the first to reach."""

    def __init__(self) -> None:
        self.count = self.limit = self.fresh = 0
        self._known: dict[int, tuple[CodeType, Local | None]] = {}

    def run(self, work: Callable[[], Made], limit: int) -> Made:
        """Run `work` and return its result. Raises Overrun if it takes more than `limit` steps, and any exception of `work`."""
        self.count, self.limit, self.fresh = 0, limit, 0
        sys.settrace(self._call)
        try:
            return work()
        finally:
            sys.settrace(None)

    def _call(self, frame: FrameType, _event: str, _arg: object) -> Local | None:
        self.count += 1
        if self.count > self.limit:
            raise Overrun(f"more than {self.limit} steps")
        known = self._known.get(id(frame.f_code))
        if known is None:
            code = frame.f_code
            # The code object is stored with its id, so that the id is not reused.
            known = self._known[id(code)] = code, self._lines() if code.co_filename.startswith(OURS) else None
        return known[1]

    def _lines(self) -> Local:
        """The trace function for the lines of one function."""
        reached: set[int] = set()

        def local(frame: FrameType, event: str, _arg: object) -> Local:
            if event == "line":
                self.count += 1
                if self.count > self.limit:
                    raise Overrun(f"more than {self.limit} steps")
                if frame.f_lineno not in reached:
                    reached.add(frame.f_lineno)
                    self.fresh += 1
            return local

        return local
