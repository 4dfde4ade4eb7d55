"""Hours in which the hosts of a root may be asked: `22:00-06:00 +01:00`, a window of each day at a fixed offset from UTC.

Without an offset the times are UTC. A window that ends before it starts passes midnight. Daylight saving time is not observed: a
name of a time zone would need its tables, which change. Pure: the time is an argument, in ms since the epoch.
"""

from __future__ import annotations

import re
from typing import NamedTuple

MINUTE = 60_000
DAY_MINUTES = 1_440
_FORM = re.compile(r"(\d\d):(\d\d)-(\d\d):(\d\d)(?: ?([+-])(\d\d):(\d\d))?", re.ASCII)


class Hours(NamedTuple):
    """A window of each day, in minutes after midnight UTC; `end` is outside of it."""

    start: int
    end: int

    def next_open(self, now: int) -> int:
        """Return the first time from `now` on (ms since the epoch) that is in the window: `now` itself, or the window's start."""
        minute = now // MINUTE % DAY_MINUTES
        if (minute - self.start) % DAY_MINUTES < (self.end - self.start) % DAY_MINUTES:
            return now
        return (now // MINUTE + (self.start - minute) % DAY_MINUTES) * MINUTE


def parse_hours(text: str) -> Hours:
    """Return the window that a text states. Raises ValueError with one line."""
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text[:40]!r} is not of the form 22:00-06:00 +01:00")
    hours = [int(found[group] or 0) for group in (1, 2, 3, 4, 6, 7)]
    for hour, minute in zip(hours[::2], hours[1::2], strict=True):
        if hour > 23 or minute > 59:
            raise ValueError(f"{text[:40]!r} has a time that does not exist")
    if hours[4] > 14:
        raise ValueError(f"{text[:40]!r}: an offset is at most 14 hours")
    offset = (hours[4] * 60 + hours[5]) * (-1 if found[5] == "-" else 1)
    start, end = ((hours[at] * 60 + hours[at + 1] - offset) % DAY_MINUTES for at in (0, 2))
    if start == end:
        raise ValueError(f"{text[:40]!r} is empty; without hours a root has no limit of time")
    return Hours(start, end)
