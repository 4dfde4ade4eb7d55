"""Formats cell values as a workbook displays them, by number format codes (ECMA-376-1, 18.8.30 and 18.8.31).

People search for the displayed value: a date, not the days since 1900. Months have English names, as in a file without a language.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

BUILT_IN = {
    1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%", 14: "m/d/yy", 15: "d-mmm-yy", 16: "d-mmm", 17: "mmm-yy",
    18: "h:mm AM/PM", 19: "h:mm:ss AM/PM", 20: "h:mm", 21: "h:mm:ss", 22: "m/d/yy h:mm", 37: "#,##0", 38: "#,##0", 39: "#,##0.00",
    40: "#,##0.00", 45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss",
}  # fmt: skip
"""Built-in formats, whose codes are not in the file."""
FIRST = datetime(1899, 12, 30, tzinfo=UTC)
DAYS = 2_958_466
"""First day number that is not a date (the year 10000)."""
SINCE_1904 = 1_462
"""Days between the first day of workbooks that count from 1904 and that of all others (ECMA-376-1, 18.17.4.1)."""
SPAN = {"h": 3_600, "m": 60, "s": 1}
"""Seconds of the units in brackets: [h] is elapsed hours, which may exceed 24."""

_PART = re.compile(
    r'"([^"]*)"|\\(.)|\[(?!h+\]|m+\]|s+\])[^\]]*\]|_.|\*.|'
    r"(\[[hms]+\]|AM/PM|A/P|y+|m+|d+|h+|s+|\.0+|[0#?][0#?,]*(?:\.[0#?]*)?|%|E[+-]0+)|(.)",
    re.IGNORECASE,
)
_SECTION = re.compile(r'((?:"[^"]*"|\\.|[^;"\\])*);?')


def shown(value: float, code: str, first: int = 0) -> str:
    """Return a number in a format; without one (General), eleven digits. `first`: days to add to the workbook's dates."""
    sections = _sections(code)
    if not sections:
        return f"{value:.11g}"
    negative = value < 0 and len(sections) > 1
    parts = sections[1] if negative else sections[0]
    marks = [mark for mark, _ in parts if mark]
    if any(mark[0] in "ymdhsYMDHSAa[" for mark in marks):
        first = first if any(mark[0] in "ymdYMD" for mark in marks) else 0
        # The last half second before the last day would be rounded up to a date out of range.
        return _date(value, parts, first) if 0 <= value < DAYS - first - 1 else f"{value:.11g}"
    if any(mark[0] in "Ee" for mark in marks) or ("", "/") in parts:
        # For exponents and fractions the plain number is better for search.
        return f"{value:.11g}"
    return _number(abs(value) if negative else value, parts)


@lru_cache(maxsize=256)
def _sections(code: str) -> tuple[tuple[tuple[str, str], ...], ...]:
    """Return the sections of a code, each with its marks and literals; none for General."""
    if not code or code.lower() in ("general", "@"):
        return ()
    found = [section for section in _SECTION.findall(code[:500]) if section]
    return tuple(
        tuple((mark or "", quoted or escaped or other or "") for quoted, escaped, mark, other in _PART.findall(section))
        for section in found[:2]
    )


def _number(value: float, parts: tuple[tuple[str, str], ...]) -> str:
    if any(mark == "%" for mark, _ in parts):
        value *= 100
    said, done = [], False
    for mark, literal in parts:
        if mark[:1] in ("0", "#", "?") and not done:
            done = True
            said.append(f"{value:{',' if ',' in mark else ''}.{min(len(mark.partition('.')[2]), 15)}f}")
        elif not mark or mark == "%":
            said.append(literal or mark)
    return "".join(said) if done else f"{value:.11g}"


def _date(value: float, parts: tuple[tuple[str, str], ...], first: int) -> str:
    seconds = round(value * 86_400)
    # Day 60 is 29 February 1900, which did not exist: the days before it are off by one (ECMA-376-1, 18.17.4.1).
    late = not first and 86_400 <= seconds < 60 * 86_400
    when = FIRST + timedelta(days=first + late, seconds=seconds)
    half = any(mark[:1] in "aA" for mark, _ in parts if mark)
    said: list[str] = []
    hours = False
    for at, (mark, literal) in enumerate(parts):
        kind = mark[:1].lower()
        after = next((m[:1].lower() for m, _ in parts[at + 1 :] if m), "")
        if kind == "[":
            said.append(f"{seconds // SPAN[mark[1].lower()]:0{len(mark) - 2}d}")
            hours = mark[1] in "hH"
            continue
        # An m means minutes after hours and before seconds.
        said.append(_minute(when, mark) if kind == "m" and (hours or after == "s") else _piece(when, mark, half=half) or literal)
        hours = kind == "h" if mark else hours
    return "".join(said)


def _minute(when: datetime, mark: str) -> str:
    return f"{when.minute:02d}" if len(mark) > 1 else str(when.minute)


def _piece(when: datetime, mark: str, *, half: bool) -> str:
    """Return the text of one date mark; "" for an unknown one."""
    hour = (when.hour % 12 or 12) if half else when.hour
    match mark.lower():
        case "":
            return ""
        case "yy":
            return f"{when.year % 100:02d}"
        case "m" | "d" | "h" | "s" as one:
            return str({"m": when.month, "d": when.day, "h": hour, "s": when.second}[one])
        case "mm" | "dd" | "hh" | "ss" as two:
            return f"{ ({'m': when.month, 'd': when.day, 'h': hour, 's': when.second}[two[0]]):02d}"
        case "mmm" | "mmmm" | "ddd" | "dddd" as name:
            return when.strftime({"mmm": "%b", "mmmm": "%B", "ddd": "%a", "dddd": "%A"}[name])
        case other:
            return str(when.year) if other[0] == "y" else ("PM" if when.hour >= 12 else "AM") if other[0] == "a" else ""
