"""Converts dates as programs and people write them to ISO 8601.

Only unambiguous dates are converted. Ambiguous ones (`3/5/24`, names of months in other languages, time zones whose abbreviation
has several meanings) stay as they were written. A time without a zone stays without one, because its place is unknown.
"""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta, timezone

from processors.essence.formats.dates import utc

LONGEST = 100
"""Characters; a longer value is not a date."""

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
        # ctime, and `date`, which puts the zone before the year (C17, 7.27.3.1; POSIX).
        rf"{_WEEKDAY}{_MONTH} {_DAY} {_TIME}{_ZONE} {_YEAR}",
        # Mail (RFC 5322, 3.3), and dates in prose.
        rf"{_WEEKDAY}{_DAY}[ -]{_MONTH},?[ -]{_YEAR}(?: {_TIME}{_ZONE})?",
        rf"{_WEEKDAY}{_MONTH} {_DAY},? {_YEAR}(?:,? {_TIME}{_ZONE})?",
        rf"{_YEAR} {_MONTH} {_DAY}",
        rf"{_MONTH},? {_YEAR}",
        # PDF (ISO 32000-1, 7.9.4), also written by PostScript programs.
        rf"D:{_YEAR}{_DIGITS}(?:(?P<hour>\d\d)(?P<minute>\d\d)(?P<second>\d\d)?(?P<zone>Z|[+-]\d\d(?:'?\d\d)?)?(?:00)?(?:'00)?'?)?",
        # Exif (CIPA DC-008, 4.6.6), and ISO 8601 with other separators.
        rf"{_YEAR}([:/.-])(?P<month>\d\d)\2(?P<day>\d\d)(?:[ T]{_TIME}{_ZONE})?",
        # With dots, the day comes first in every country.
        rf"(?P<day>\d{{1,2}})\.(?P<month>\d{{1,2}})\.{_YEAR}(?: {_TIME}{_ZONE})?",
        # Org ("Timestamps"): the name of the day is in any language; a repeater or a span may follow.
        rf"[<\[]{_YEAR}-(?P<month>\d\d)-(?P<day>\d\d)(?: [^\W\d]{{1,15}}\.?)?(?: {_TIME}(?:-\d{{1,2}}:\d\d)?)?{_REPEATERS}[>\]]",
    )
]
_SLASHED = re.compile(rf"(?P<month>\d{{1,2}})([/-])(?P<day>\d{{1,2}})\2{_YEAR}(?:,? {_TIME}{_ZONE})?", re.IGNORECASE)
"""A numeric month and day, in unknown order."""

_ZONES = {
    "Z": 0, "UT": 0, "UTC": 0, "GMT": 0, "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7,
    "WET": 0, "WEST": 1, "CET": 1, "CEST": 2, "MET": 1, "MEST": 2, "MEZ": 1, "MESZ": 2, "EET": 2, "EEST": 3, "JST": 9, "AEST": 10,
}  # fmt: skip
"""Hours ahead of UTC, by zone: those of RFC 5322, 4.3, and other abbreviations with a single meaning."""
_REMARK = re.compile(r"(?<=[+-]\d{4}) ?\([^()]{0,40}\)$")
"""The comment after a date in mail: the name of its zone (RFC 5322, 3.2.2)."""


def iso_date(value: str) -> str:
    """Convert a month, a day or a moment to ISO 8601, in UTC if it has a zone; return an ambiguous one unchanged."""
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
    """Return the date if only one order of day and month is valid, or both give the same date; else ""."""
    orders = {_written(parts), _written(parts | {"day": parts["month"], "month": parts["day"]})} - {""}
    return orders.pop() if len(orders) == 1 else ""


def _written(parts: dict[str, str | None]) -> str:
    """Return the date of the parts in ISO 8601; "" if it does not exist."""
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
    """Return the offset of a zone ahead of UTC. Raises ValueError for an unknown or ambiguous abbreviation."""
    if zone in _ZONES:
        return timedelta(hours=_ZONES[zone])
    if zone[:1] not in ("+", "-"):
        raise ValueError(zone)
    digits = re.sub(r"\D", "", zone)
    ahead = timedelta(hours=int(digits[:2]), minutes=int(digits[2:] or 0))
    return -ahead if zone[0] == "-" else ahead
