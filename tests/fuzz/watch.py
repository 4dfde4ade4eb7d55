"""Work, counted: lines of our code that ran and functions of all code that were called, and which lines were new.

Nothing here is a time, so that a limit means the same on every machine and a run can be had again.
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
    """A limit of the work was passed; what was at work is stopped there. No Exception: it must pass what catches those."""


class Watch:
    """Runs things and counts. `fresh` are the lines that no run before the last one had reached."""

    def __init__(self) -> None:
        self.count = self.limit = self.fresh = 0
        self._known: dict[int, tuple[CodeType, Local | None]] = {}

    def run(self, work: Callable[[], Made], limit: int) -> Made:
        """What `work` gives. Raises Overrun where it takes more than `limit`, and whatever it raises."""
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
            # The code is kept with its number, so that no other gets it.
            known = self._known[id(code)] = code, self._lines() if code.co_filename.startswith(OURS) else None
        return known[1]

    def _lines(self) -> Local:
        """What is called for each line of one function."""
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
