"""Numbers and moments among the values of a summary, and their cells: integers for one column of an index.

A cell has 63 bits: 19 of a digest of the kind and of the attribute's name, then 44 of an image of the value that keeps its order.
So the numbers and moments of all attributes lie in one unsigned column, and a range of one attribute is a range of that column.

Laws:
- A range is answered by cells, here as in every engine: a summary matches if one of its `cells` lies within the `bounds`.
- Moments are exact to the second; one without a zone is in UTC. Numbers are compared by their images, which are rounded down to 33
  significant bits: integers up to 2**33 are exact, and two numbers that differ by less than 2**-32 of themselves may be equal.
- An excluded bound of at most 15 digits (`>0.1`, which arrives as the next float) excludes all numbers of its own image.
- Names share a digest once in 2**19: a summary may then be found for the value of another attribute, by all engines alike.
"""

from __future__ import annotations

import math
import re
import struct
import sys
from calendar import monthrange
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import lru_cache
from hashlib import blake2b
from typing import Literal

from processors.query.words import DAY, attribute
from schemas.query import DATES, LINKS, MomentRange, NumberRange

Kind = Literal["number", "moment"]

LONGEST = 100
"""Maximum length in characters of a value that is a number or a moment."""
MAX_CELLS = 1_000
"""Maximum number of cells of a summary; further values are left out."""
MAX_SIZE = 2**63 - 1

OWN = ("date", "modification-date", "creation-date", "last-modification-time")
"""Attributes with the document's own date, the most telling first."""
SIZE = "file-size"

IMAGE_BITS, DIGEST_BITS = 44, 19
_ROUNDED = 64 - IMAGE_BITS
_LAST_IMAGE = (1 << IMAGE_BITS) - 1
_SIGN = 1 << 63

_EPOCH = date(1970, 1, 1).toordinal()
_BEGIN = (1 - _EPOCH) * 86_400
"""The first second of the year 1, in seconds since the epoch."""
_END = (date.max.toordinal() - _EPOCH + 1) * 86_400 - 1
"""The last second of the year 9999."""
_OFFSET = 86_400 - _BEGIN
"""Added to seconds for an image. It leaves a day before the year 1, so that a bound that ends there has an image, and no moment."""

_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_YEAR = re.compile(r"\d{4}", re.ASCII)
_ISO = re.compile(
    r"(\d{4})-(\d\d)(?:-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,]\d+)?)?(?: ?(?:Z|UTC?|GMT|([+-])(\d\d)(?::?(\d\d))?))?)?)?",
    re.ASCII | re.IGNORECASE,
)
_BOUND = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d))?Z?)?)?)?", re.ASCII | re.IGNORECASE)
_WEEKDAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)(?:[a-z]{0,6},)?"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}"
_TIME = r"\d{1,2}:\d\d(?::\d\d)?"
_ZONE = r"(?:[+-]\d{4}|Z|UTC?|GMT|[ECMP][SD]T)"
_MAIL = re.compile(
    rf"(?:{_WEEKDAY} ?)?"
    rf"(?:\d{{1,2}}[ -]{_MONTH}[ -](?:\d{{4}}|\d\d) {_TIME}(?: ?{_ZONE})?(?: ?\([^()]*\))?|{_MONTH} \d{{1,2}} {_TIME} \d{{4}})",
    re.ASCII | re.IGNORECASE,
)
"""Dates of mail (RFC 5322, 3.3 and 4.3), and the three forms of HTTP (RFC 9110, 5.6.7). With other names of zones they are none."""


def number(text: str) -> float | None:
    """Return the number that a value is as a whole; None if it is none, or not finite. Separators of thousands are refused."""
    text = text.strip()
    if len(text) > LONGEST or not _NUMBER.fullmatch(text):
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def moment(text: str) -> int | None:
    """Return the first second, since the epoch, of the month, day or moment that a value is as a whole; None if it is none.

    Accepts ISO 8601, and the dates of mail and HTTP.
    """
    text = text.strip()
    if len(text) > LONGEST:
        return None
    if found := _ISO.fullmatch(text):
        return _iso(found)
    # Most values are words, and this is the cheapest test that they fail.
    plain = " ".join(text.split()) if ":" in text else ""
    if not _MAIL.fullmatch(plain):
        return None
    try:
        when = parsedate_to_datetime(plain)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return _known((when if when.tzinfo else when.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC))


def _iso(found: re.Match[str]) -> int | None:
    *parts, sign, ahead, minutes = found.groups()
    first = _second(*parts)
    if first is None or int(ahead or 0) > 23 or int(minutes or 0) > 59:
        return None
    offset = timedelta(hours=int(ahead or 0), minutes=int(minutes or 0))
    return _known(timedelta(seconds=first) + (offset if sign == "-" else -offset))


def _known(since: timedelta) -> int | None:
    """Return a time since the epoch in whole seconds; None outside of the years 1 to 9999."""
    seconds = since // timedelta(seconds=1)
    return seconds if _BEGIN <= seconds <= _END else None


def _second(year: str, month: str | None, day: str | None, *clock: str | None) -> int | None:
    """Return the first second of a period in UTC; None if it does not exist. A leap second is the one after it."""
    hour, minute, second = (int(part or 0) for part in clock)
    if hour > 23 or minute > 59 or second > 60:
        return None
    try:
        days = date(int(year), int(month or 1), int(day or 1)).toordinal() - _EPOCH
    except ValueError:
        return None
    return ((days * 24 + hour) * 60 + minute) * 60 + second


def period(text: str) -> tuple[int, int] | None:
    """Return the first and the last second of a year, month, day, minute or second; None if it is none, or does not exist."""
    found = _BOUND.fullmatch(text)
    first = _second(*found.groups()) if found else None
    if found is None or first is None:
        return None
    year, month, day, hour, _, second = found.groups()
    if hour:
        return first, first + (0 if second else 59)
    if day:
        return first, first + 86_399
    end = int(month or 12)
    last = date(int(year), end, monthrange(int(year), end)[1])
    return first, (last.toordinal() - _EPOCH + 1) * 86_400 - 1


def cell(name: str, kind: Kind, value: float) -> int:
    """Return the cell of a number, or of a moment in seconds since the epoch, of an attribute."""
    return _first_cell(name, kind) + (_number_image(value) if kind == "number" else _moment_image(value))


@lru_cache(4_096)
def _first_cell(name: str, kind: Kind) -> int:
    digest = blake2b(f"{kind} {attribute(name)}".encode(), digest_size=3).digest()
    return int.from_bytes(digest) >> (24 - DIGEST_BITS) << IMAGE_BITS


def _ordered_bits(value: float) -> int:
    """Return the bits of a float64 (IEEE 754, 5.10) as an unsigned integer of the same order; both zeros are one."""
    (bits,) = struct.unpack(">Q", struct.pack(">d", value + 0.0))
    return int(bits ^ (2 * _SIGN - 1) if bits & _SIGN else bits | _SIGN)


def _number_image(value: float) -> int:
    return _ordered_bits(value) >> _ROUNDED


def _moment_image(value: float) -> int:
    return min(max(int(value) + _OFFSET, 0), _LAST_IMAGE)


def cells(values: Mapping[str, Sequence[str]]) -> set[int]:
    """Return the cells of the values that `words.searchable_values` returned for a summary.

    Its own date is among them, under the name "". Links are identifiers, and never numbers.
    """
    own = own_date(values)
    found = set[int]() if own is None else {cell("", "moment", own)}
    for name, texts in values.items():
        for made in _cells(name, texts) if name not in LINKS else ():
            found.add(made)
            if len(found) == MAX_CELLS:
                return found
    return found


def _cells(name: str, texts: Sequence[str]) -> Iterator[int]:
    for text in texts:
        if (value := number(text)) is not None:
            yield cell(name, "number", value)
    for seconds in _moments(name, texts):
        yield cell(name, "moment", seconds)


def _moments(name: str, texts: Sequence[str]) -> Iterator[int]:
    """Iterate over the moments among the values of an attribute; a year alone is one in an attribute of DATES."""
    dates = name in DATES
    # The days of timestamps, which the analysis adds as words, are not further moments.
    days = {text[:DAY] for text in texts if text[DAY : DAY + 1] == "T"} if dates else set[str]()
    for text in texts:
        if text in days:
            continue
        if (seconds := moment(text)) is not None:
            yield seconds
        elif dates and _YEAR.fullmatch(text.strip()) and (years := period(text.strip())):
            yield years[0]


def bounds(query: NumberRange | MomentRange) -> tuple[int, int]:
    """Return the first and the last cell of a range; the first is above the last if no value can be within it."""
    kind: Kind = "number" if isinstance(query, NumberRange) else "moment"
    low, high = (_first_image, _last_image) if kind == "number" else (_moment_image, _moment_image)
    start = _first_cell(query.attribute, kind)
    first = 0 if query.low is None else low(query.low)
    last = _LAST_IMAGE if query.high is None else high(query.high)
    return start + first, start + last


def _first_image(low: float) -> int:
    """Return the least image within a low bound. If the bound is the float after a number that was typed, that one is excluded."""
    before = math.nextafter(low, -math.inf)
    return _number_image(before) + 1 if _is_typed(before) and not _is_decimal(low) else _number_image(low)


def _last_image(high: float) -> int:
    """Return the greatest image within a high bound; see `_first_image`."""
    behind = math.nextafter(high, math.inf)
    return _number_image(behind) - 1 if _is_typed(behind) and not _is_decimal(high) else _number_image(high)


def _is_typed(value: float) -> bool:
    """Return whether a float is a number as people type it: an image without rounding, or a decimal."""
    return math.isfinite(value) and (not _ordered_bits(value) % (1 << _ROUNDED) or _is_decimal(value))


def _is_decimal(value: float) -> bool:
    """Return whether a float is that of a decimal of at most 15 digits (DBL_DIG): the floats beside it then are not."""
    return not value or (abs(value) >= sys.float_info.min and float(f"{value:.15g}") == value)


def own_date(values: Mapping[str, Sequence[str]]) -> int | None:
    """Return the document's own date in seconds since the epoch: the first moment of the first of OWN that has one."""
    return next((seconds for name in OWN for seconds in _moments(name, values.get(name, ()))), None)


def year(values: Mapping[str, Sequence[str]]) -> str:
    """Return the year of the document's own date, in four digits; "" if it has none."""
    own = own_date(values)
    return "" if own is None else year_of(own)


def year_of(second: int) -> str:
    """Return the year of a second since the epoch, in four digits. The second is of the years 1 to 9999."""
    return f"{date.fromordinal(second // 86_400 + _EPOCH).year:04}"


def size(values: Mapping[str, Sequence[str]]) -> int:
    """Return the size of a document in bytes, by its attribute SIZE; 0 if it has none."""
    found = next((value for text in values.get(SIZE, ()) if (value := number(text)) is not None), 0)
    return min(max(int(found), 0), MAX_SIZE)
