"""Dates and times of formats, in UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta


def utc(when: datetime) -> str:
    """A moment in ISO 8601, UTC; one without a zone passes for UTC. Raises OverflowError at the ends of time."""
    return (when.astimezone(UTC) if when.tzinfo else when).strftime("%Y-%m-%dT%H:%M:%SZ")


_DATE = re.compile(r"(?:D:)?(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?(?:([+-])(\d\d)'?(\d\d)?)?")


def pdf_date(value: str) -> datetime | None:
    """Return a date (ISO 32000-1, 7.9.4) in UTC; None if it cannot be parsed."""
    match = _DATE.match(value)
    if match is None:
        return None
    try:
        numbers = [int(part) if part else at for part, at in zip(match.groups()[:6], (1, 1, 1, 0, 0, 0), strict=True)]
        when = datetime(*numbers, tzinfo=UTC)  # type: ignore[arg-type, misc]
        off = timedelta(hours=int(match[8] or 0), minutes=int(match[9] or 0))
        return when + off if match[7] == "-" else when - off
    except (ValueError, OverflowError):
        return None
