"""Numbers and moments in queries: `pages:10..20`, `file-size:>1M`, `date:2024-01..2024-06`, `before:2024-03-05`.

Laws:
- A moment names a period: `2024-03` is all of March. A low bound begins its period, a high one ends it; `>` and `after:` begin
  behind it, `<` and `before:` end before it. Periods are of UTC.
- `parse` reads what `number_text` and `moment_texts` write as the same numbers.
"""

from __future__ import annotations

import calendar
import math
import re
from datetime import UTC, datetime, timedelta

from processors.query import values
from processors.query.mistakes import QueryError
from processors.query.words import attribute as known
from schemas.query import DATES, MomentRange, NumberRange, Query

_NUMBER = re.compile(r"([+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?)([kmgt]?)", re.ASCII | re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_MOMENT = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d))?Z?)?)?)?", re.ASCII | re.IGNORECASE)
_MONTH = re.compile(r"\d{4}-\d", re.ASCII)
"""Beginning of what is a moment for any attribute."""
_DAY = re.compile(r"\d{4}-\d+(?:-\d+)?", re.ASCII)
_DIGIT = re.compile(r"[+-]?\d", re.ASCII)
_COMPARED = re.compile(r"([<>]=?)(.*)", re.DOTALL)
_OTHERWISE = re.compile(r"(\d{4})[-/.]?(\d\d?|[a-z]{3,9})(?:[-/.]?(\d\d?))?", re.ASCII | re.IGNORECASE)
"""Other ways to write a day, for proposals."""
_GERMAN = re.compile(r"(\d\d?)\.(\d\d?)\.(\d{4})", re.ASCII)

_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PARTS = ("year", "month", "day", "hour", "minute", "second")
_LENGTHS = tuple(map(len, ("2024", "2024-03", "2024-03-05", "2024-03-05T10:00", "2024-03-05T10:00:00Z")))
FIRST = -62_135_596_800
"""First second of the year 1."""
LAST = 253_402_300_799
"""Last second of the year 9999."""


def read_range(run: str, name: str, at: int) -> Query | None:
    """Return the range that the value of an attribute is, None if it is no range. Raises QueryError; `at` is its position."""
    dated = known(name) in DATES
    compared = _COMPARED.fullmatch(run)
    if compared:
        sign, bound = compared.groups()
        return _compared(name, sign, bound, at + len(sign), dated=dated or bool(_MONTH.match(bound)))
    low, dots, high = run.partition("..")
    if not (dots and (_DIGIT.match(low) or _DIGIT.match(high) or (dated and low + high))):
        return None
    places = at, at + len(low) + len(dots)
    if dated or _MONTH.match(low) or _MONTH.match(high):
        first = period(low, places[0])[0] if low else None
        last = period(high, places[1])[1] if high else None
        if first is not None and last is not None and first > last:
            raise QueryError("the first moment is after the last one", at, f"{name}:{high}..{low}")
        return MomentRange(name, first, last)
    least, most = number(low, places[0]) if low else None, number(high, places[1]) if high else None
    if least is not None and most is not None and least > most:
        raise QueryError("the first number is greater than the last one", at, f"{name}:{high}..{low}")
    return NumberRange(name, least, most)


def _compared(name: str, sign: str, bound: str, at: int, *, dated: bool) -> Query:
    """Return the range of `>bound`, `>=bound`, `<bound` or `<=bound`."""
    if not bound:
        raise QueryError(f"a number or a day is missing after {sign}", at)
    if dated:
        first, last = period(bound, at)
        low, high = {">": (last + 1, None), ">=": (first, None), "<": (None, first - 1), "<=": (None, last)}[sign]
        return MomentRange(name, _within(low, at), _within(high, at))
    value = number(bound, at)
    next_one = math.nextafter(value, math.inf if sign == ">" else -math.inf)
    if math.isinf(next_one):
        raise QueryError("this number is too large", at)
    least, most = {">": (next_one, None), ">=": (value, None), "<": (None, next_one), "<=": (None, value)}[sign]
    return NumberRange(name, least, most)


def _within(second: int | None, at: int) -> int | None:
    if second is not None and not FIRST <= second <= LAST:
        raise QueryError("moments are of the years 0001 to 9999", at)
    return second


def document_date(special: str, text: str, at: int) -> MomentRange:
    """Return the range of the document's own date: `special` is "before", "after" or "during". Raises QueryError."""
    if special == "during":
        return _during(text, at)
    first, last = period(text, at)
    if special == "before":
        return MomentRange("", None, _within(first - 1, at))
    return MomentRange("", _within(last + 1, at), None)


def _during(text: str, at: int) -> MomentRange:
    """Return the range of `2024-03`, or of `2024-01..2024-06`."""
    low, dots, high = text.partition("..")
    if not dots or not (low or high):
        return MomentRange("", *period(text, at))
    first = period(low, at)[0] if low else None
    last = period(high, at + len(low) + len(dots))[1] if high else None
    if first is not None and last is not None and first > last:
        raise QueryError("the first moment is after the last one", at, f"during:{high}..{low}")
    return MomentRange("", first, last)


def number(text: str, at: int) -> float:
    """Return a number; k, M, G and T are powers of 1,024. Raises QueryError."""
    found = _NUMBER.fullmatch(text)
    if not found:
        plain = re.sub(r"(?<=[kmgt])i?b$|(?<=\d)b$|[,_']", "", text, flags=re.IGNORECASE)
        raise QueryError("a number is written 10, 1.5 or 2M", at, plain if _NUMBER.fullmatch(plain) else "")
    value = float(found[1]) * 1024.0 ** _POWERS[found[2].lower()]
    if math.isinf(value):
        raise QueryError("this number is too large", at)
    return value


def period(text: str, at: int) -> tuple[int, int]:
    """Return the first and the last second of a period. Raises QueryError."""
    if known_period := values.period(text.upper()):
        return known_period
    if found := _MOMENT.fullmatch(text):
        _check({name: int(part) for name, part in zip(_PARTS, found.groups(), strict=True) if part}, at)
    raise QueryError(_unread(text), at, _proposed(text))


def _check(parts: dict[str, int], at: int) -> None:
    year, month, day = (parts.get(name, 1) for name in _PARTS[:3])
    if not year:
        raise QueryError("there is no year 0", at)
    if not 1 <= month <= 12:
        raise QueryError(f"there is no month {month}: months are 01 to 12", at)
    days = calendar.monthrange(year, month)[1]
    if not 1 <= day <= days:
        raise QueryError(f"there is no day {day} in {year:04}-{month:02}: it has {days} days", at)
    if parts.get("hour", 0) > 23 or parts.get("minute", 0) > 59 or parts.get("second", 0) > 59:
        raise QueryError("hours are 00 to 23, minutes and seconds 00 to 59", at)


def _month(name: str) -> int:
    """Return the number of a month with an English name, 0 if there is none of that name."""
    return next((at for at, month in enumerate(_MONTHS, 1) if month.startswith(name.lower())), 0)


def _unread(text: str) -> str:
    found = _OTHERWISE.fullmatch(text)
    if found and found[2].isalpha() and not _month(found[2]):
        return f"there is no month {found[2]}"
    return "a moment is written 2024-03-05 or 2024-03-05T10:00"


def _proposed(text: str) -> str:
    """Return a day or month written in another way as this language writes it; "" if it is none."""
    found, german = _OTHERWISE.fullmatch(text), _GERMAN.fullmatch(text)
    year, month, day = found.groups() if found else german.groups()[::-1] if german else ("", "", "")
    if not year or not month:
        return ""
    made = f"{year}-{_month(month) if month.isalpha() else int(month):02}" + (f"-{int(day):02}" if day else "")
    try:
        period(made, 0)
    except QueryError:
        return ""
    return made


def check_day(run: str, name: str, at: int) -> None:
    """Raise QueryError if the value of one of DATES has the form of a month or a day, but there is none of that number."""
    if known(name) in DATES and _DAY.fullmatch(run):
        period(run, at)


def number_text(value: float) -> str:
    """Return a number as `number` reads it."""
    value = float(value)
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def moment_texts(first: int | None, last: int | None, *, years: bool) -> tuple[str, str]:
    """Return the shortest names of periods of one length, of which one begins with the first second and one ends with the last.

    A bound that is None has the name ""; `years` tells whether years may be among them.
    """
    for length in _LENGTHS[0 if years else 1 :]:
        begin, end = _name(first, length), _name(last, length)
        if (first is None or period(begin, 0)[0] == first) and (last is None or period(end, 0)[1] == last):
            return begin, end
    raise ValueError("a moment outside of the years 1 to 9999")


def _name(second: int | None, length: int) -> str:
    """Return the name of the period that has a second, in so many characters."""
    if second is None:
        return ""
    return (_EPOCH + timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%SZ").rjust(len("2024-03-05T10:00:00Z"), "0")[:length]
