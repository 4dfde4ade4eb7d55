"""Dates as programs and people write them, in ISO 8601.

A date that can be read in one way only is written anew; what nobody can be sure of (`3/5/24`, names of months in other languages)
stays as it was written, and so does a time in a zone whose name several have. A time without a zone stays without one: it is that
of a place that nobody tells.
"""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta, timezone

from processors.essence.formats.dates import utc

LONGEST = 100
"""Characters of a date; longer ones are none."""

_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th|\.)?"
_YEAR = r"(?P<year>[1-9]\d{3})"
_TIME = r"(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.\d{1,9})?)?"
_ZONE = r"(?: ?(?P<zone>Z|UTC?|GMT|[+-]\d\d(?::?\d\d)?|(?![AP]M)[A-Z]{2,5}))?"
_DIGITS = r"(?P<month>\d\d)(?P<day>\d\d)"
_REPEATERS = r"(?: [.+-]{1,2}\d{1,3}[hdwmy]){0,2}"
_WEEKDAY = r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6},? )?"
_MONTH = rf"(?P<name>{'|'.join(f'{name[:3]}(?:{name[3:]})?' for name in _MONTHS)}|sept)\.?"

_FORMS = [
    re.compile(form, re.IGNORECASE)
    for form in (
        # ctime, and `date`, whose zone stands before the year (C17, 7.27.3.1; POSIX).
        rf"{_WEEKDAY}{_MONTH} {_DAY} {_TIME}{_ZONE} {_YEAR}",
        # Mail (RFC 5322, 3.3), and what people write.
        rf"{_WEEKDAY}{_DAY}[ -]{_MONTH},?[ -]{_YEAR}(?: {_TIME}{_ZONE})?",
        rf"{_WEEKDAY}{_MONTH} {_DAY},? {_YEAR}(?:,? {_TIME}{_ZONE})?",
        rf"{_YEAR} {_MONTH} {_DAY}",
        rf"{_MONTH},? {_YEAR}",
        # PDF (ISO 32000-1, 7.9.4), which PostScript's programs write, too.
        rf"D:{_YEAR}{_DIGITS}(?:(?P<hour>\d\d)(?P<minute>\d\d)(?P<second>\d\d)?(?P<zone>Z|[+-]\d\d(?:'?\d\d)?)?(?:00)?(?:'00)?'?)?",
        # Exif (CIPA DC-008, 4.6.6), and ISO 8601 with other marks.
        rf"{_YEAR}([:/.-])(?P<month>\d\d)\2(?P<day>\d\d)(?:[ T]{_TIME}{_ZONE})?",
        # With dots, the day is first wherever it is written.
        rf"(?P<day>\d{{1,2}})\.(?P<month>\d{{1,2}})\.{_YEAR}(?: {_TIME}{_ZONE})?",
        # Org ("Timestamps"): the day's name is in any language; a repeater or a span may follow.
        rf"[<\[]{_YEAR}-(?P<month>\d\d)-(?P<day>\d\d)(?: [^\W\d]{{1,15}}\.?)?(?: {_TIME}(?:-\d{{1,2}}:\d\d)?)?{_REPEATERS}[>\]]",
    )
]
_SLASHED = re.compile(rf"(?P<month>\d{{1,2}})([/-])(?P<day>\d{{1,2}})\2{_YEAR}(?:,? {_TIME}{_ZONE})?", re.IGNORECASE)
"""A month and a day in numbers, of which nobody knows which is first."""

_ZONES = {
    "Z": 0, "UT": 0, "UTC": 0, "GMT": 0, "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7,
    "WET": 0, "WEST": 1, "CET": 1, "CEST": 2, "MET": 1, "MEST": 2, "MEZ": 1, "MESZ": 2, "EET": 2, "EEST": 3, "JST": 9, "AEST": 10,
}  # fmt: skip
"""Hours that a zone is ahead of UTC: those of RFC 5322, 4.3, and others whose names no two zones have."""
_REMARK = re.compile(r"(?<=[+-]\d{4}) ?\([^()]{0,40}\)$")
"""What mail has behind a date: the name of its zone (RFC 5322, 3.2.2)."""


def iso_date(value: str) -> str:
    """A month, a day or a moment in ISO 8601: in UTC where it has a zone; as it was written where it is not sure."""
    value = value.strip()
    if len(value) > LONGEST:
        return value
    plain = _REMARK.sub("", " ".join(value.split()))
    for form in _FORMS:
        if match := form.fullmatch(plain):
            return _written(match.groupdict()) or value
    if slashed := _SLASHED.fullmatch(plain):
        return _only(slashed.groupdict()) or value
    return value


def _only(parts: dict[str, str | None]) -> str:
    """The date that has its day before or behind its month, where one of these orders makes none, or both the same; else ""."""
    orders = {_written(parts), _written(parts | {"day": parts["month"], "month": parts["day"]})} - {""}
    return orders.pop() if len(orders) == 1 else ""


def _written(parts: dict[str, str | None]) -> str:
    """The date of those parts; "" for one that there is not."""
    name = (parts.get("name") or "").lower()
    month = next((n for n, one in enumerate(_MONTHS, 1) if name and one.startswith(name[:3])), int(parts.get("month") or 0))
    try:
        if "day" not in parts:
            return f"{parts['year']}-{month:02}"
        day = date(int(parts["year"] or 0), month, int(parts["day"] or 0))
        if parts.get("hour") is None:
            return day.isoformat()
        hour, minute, second = (int(parts[name] or 0) for name in ("hour", "minute", "second"))
        at, zone = time(hour, minute, second), (parts.get("zone") or "").upper()
        if not zone:
            return f"{day}T{at}"
        moment = utc(datetime.combine(day, at, timezone(_offset(zone))))
        # ISO 8601 has years of four digits.
        return moment if moment[4:5] == "-" else ""
    except (ValueError, OverflowError):
        return ""


def _offset(zone: str) -> timedelta:
    """What a zone is ahead of UTC. Raises ValueError for one that is told by a name that several have."""
    if zone in _ZONES:
        return timedelta(hours=_ZONES[zone])
    if zone[:1] not in ("+", "-"):
        raise ValueError(zone)
    digits = re.sub(r"\D", "", zone)
    ahead = timedelta(hours=int(digits[:2]), minutes=int(digits[2:] or 0))
    return -ahead if zone[0] == "-" else ahead
