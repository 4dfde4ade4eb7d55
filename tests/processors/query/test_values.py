from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.essence.summarize._dates import iso_date
from processors.query.values import (
    IMAGE_BITS,
    LONGEST,
    MAX_CELLS,
    MAX_SIZE,
    Kind,
    bounds,
    cell,
    cells,
    moment,
    number,
    own_date,
    period,
    size,
    year,
)
from processors.query.words import searchable_values
from schemas.query import MomentRange, NumberRange
from schemas.records import Summary

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST, LAST = -62_135_596_800, 253_402_300_799
SECONDS = st.integers(FIRST, LAST)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
NAMES = st.sampled_from(["pages", "file-size", "date", "", "Pages ", "größe"]) | st.text(max_size=8)
DECIMALS = st.decimals(-10_000, 10_000, places=3).map(float) | st.integers(-(2**31), 2**31).map(float)


def seconds(*parts: int) -> int:
    """Return a moment in UTC in seconds since the epoch."""
    return int(datetime(*parts, tzinfo=UTC).timestamp())  # type: ignore[arg-type, misc]


def at(second: int) -> datetime:
    """Return the moment of a second since the epoch."""
    return EPOCH + timedelta(seconds=second)


def within(query: NumberRange | MomentRange, found: set[int]) -> bool:
    """Return whether cells match a range."""
    low, high = bounds(query)
    return any(low <= each <= high for each in found)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12.0),
        (" -3.5\n", -3.5),
        ("+007", 7.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("1e3", 1000.0),
        ("2.5E-1", 0.25),
        ("-0", 0.0),
        ("", None),
        (".", None),
        ("1,024", None),
        ("1 024", None),
        ("1_000", None),
        ("12 pages", None),
        ("0x10", None),
        ("nan", None),
        ("inf", None),
        ("1e999", None),
        ("１２", None),
        ("1" * (LONGEST + 1), None),
    ],
)
def test_numbers_are_whole_values(text: str, value: float | None) -> None:
    """A value is a number if all of it is one; separators, units, other digits and infinity make it none."""
    assert number(text) == value


@given(st.text() | st.text("0123456789+-.eET:Z ", max_size=20))
def test_any_text_is_read_without_errors(text: str) -> None:
    """No text raises an error; numbers are finite, moments are of the years 1 to 9999, periods are in order."""
    value, first, both = number(text), moment(text), period(text)
    assert value is None or math.isfinite(value)
    assert first is None or FIRST <= first <= LAST
    assert both is None or both[0] <= both[1]
    found = cells({"a": [text], "date": [text]})
    assert all(0 <= each < 2**63 for each in found)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2024-03", seconds(2024, 3, 1)),
        ("2024-03-05", seconds(2024, 3, 5)),
        ("2024-03-05T09:30", seconds(2024, 3, 5, 9, 30)),
        ("2024-03-05T09:30:07", seconds(2024, 3, 5, 9, 30, 7)),
        ("2024-03-05 09:30:07.999", seconds(2024, 3, 5, 9, 30, 7)),
        ("2024-03-05T09:30:07,5Z", seconds(2024, 3, 5, 9, 30, 7)),
        (" 2024-03-05t09:30z ", seconds(2024, 3, 5, 9, 30)),
        ("2024-03-05T09:30:07+01:00", seconds(2024, 3, 5, 8, 30, 7)),
        ("2024-03-05 09:30:07 -0530", seconds(2024, 3, 5, 15, 0, 7)),
        ("2024-03-05T09:30+02", seconds(2024, 3, 5, 7, 30)),
        ("2024-03-05 09:30:07 UTC", seconds(2024, 3, 5, 9, 30, 7)),
        ("2016-12-31T23:59:60Z", seconds(2017, 1, 1)),
        ("0001-01-01", FIRST),
        ("9999-12-31T23:59:59", LAST),
        ("Tue, 5 Mar 2024 09:30:07 +0100", seconds(2024, 3, 5, 8, 30, 7)),
        ("Tue,  5 Mar 2024 09:30 -0000 (a comment)", seconds(2024, 3, 5, 9, 30)),
        ("5 Mar 94 09:30 EST", seconds(1994, 3, 5, 14, 30)),
        ("Sun, 06 Nov 1994 08:49:37 GMT", seconds(1994, 11, 6, 8, 49, 37)),
        ("Sunday, 06-Nov-94 08:49:37 GMT", seconds(1994, 11, 6, 8, 49, 37)),
        ("Sun Nov  6 08:49:37 1994", seconds(1994, 11, 6, 8, 49, 37)),
    ],
)
def test_dates_are_moments(text: str, value: int) -> None:
    """ISO 8601, and the dates of mail and of HTTP, are moments; the first second of a month, a day or a minute."""
    assert moment(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2024",
        "20240305",
        "2024-3-5",
        "2024-13",
        "2024-00",
        "2024-02-30",
        "0000-01-01",
        "2024-03-05T",
        "2024-03-05T24:00",
        "2024-03-05T09",
        "2024-03-05T09:60",
        "2024-03-05T09:30+24:00",
        "2024-03-05 to 2024-03-06",
        "0001-01-01T00:00+01:00",
        "9999-12-31T23:59:59-01:00",
        "3/5/24",
        "May 2024",
        "about 5 Mar 2024 09:30",
        "5 Mar 2024 25:30:00 GMT",
        "5 Mar 2024 09:30 CST6CDT",
        "Tue, 31 Feb 2024 09:30:07 GMT",
        "Tue, 5 Mar 2024 09:30:07 +9999",
        f"Tue, 5 Mar 2024 09:30 ({'x' * LONGEST})",
    ],
)
def test_other_texts_are_no_moments(text: str) -> None:
    """A year alone, days that do not exist, parts of a text, other years and ambiguous dates are no moments."""
    assert moment(text) is None


@given(SECONDS, st.integers(-1439, 1439))
def test_written_moments_are_read(second: int, zone: int) -> None:
    """A moment is read from ISO 8601 in any zone, and from a mail's date, as the same second."""
    assert moment(at(second).isoformat()) == second
    assert moment(at(second).isoformat()[:19] + "Z") == second
    try:
        local = at(second).astimezone(timezone(timedelta(minutes=zone)))
    except OverflowError:
        return
    assert moment(local.isoformat(" ")) == second
    if local.year >= 1000:
        assert moment(format_datetime(local)) == second


@given(st.integers(seconds(1000, 1, 2), seconds(9999, 12, 30)), st.sampled_from(["%c", "%a, %d %b %Y %H:%M:%S +0200"]))
def test_agrees_with_dates_of_summaries(second: int, form: str) -> None:
    """A date that summarizing converts to ISO 8601 is the same moment before and after the conversion."""
    text = at(second).strftime(form)
    assert moment(text) == moment(iso_date(text)) is not None


@pytest.mark.parametrize(
    ("text", "first", "behind"),
    [
        ("2024", seconds(2024, 1, 1), seconds(2025, 1, 1)),
        ("2024-02", seconds(2024, 2, 1), seconds(2024, 3, 1)),
        ("2023-12", seconds(2023, 12, 1), seconds(2024, 1, 1)),
        ("2024-03-05", seconds(2024, 3, 5), seconds(2024, 3, 6)),
        ("2024-03-05T09:30", seconds(2024, 3, 5, 9, 30), seconds(2024, 3, 5, 9, 31)),
        ("2024-03-05T09:30Z", seconds(2024, 3, 5, 9, 30), seconds(2024, 3, 5, 9, 31)),
        ("2024-03-05t09:30:00z", seconds(2024, 3, 5, 9, 30), seconds(2024, 3, 5, 9, 30, 1)),
        ("2024-03-05T09:30:07", seconds(2024, 3, 5, 9, 30, 7), seconds(2024, 3, 5, 9, 30, 8)),
        ("0001", FIRST, seconds(2, 1, 1)),
        ("9999", seconds(9999, 1, 1), LAST + 1),
        ("9999-12", seconds(9999, 12, 1), LAST + 1),
    ],
)
def test_bounds_are_periods(text: str, first: int, behind: int) -> None:
    """A bound is the period from its first to its last second."""
    assert period(text) == (first, behind - 1)


@pytest.mark.parametrize(
    "text",
    ["", "24", "2024-13", "2024-1", "2024-02-30", "0000", "2024-03-05T24:00", "2024-03-05T9", "2024Z", " 2024", "1e3", "２０２４"],
)
def test_other_bounds_are_refused(text: str) -> None:
    """A text that is no period, or one that does not exist, is none."""
    assert period(text) is None


@given(NAMES, FLOATS | st.just(math.inf) | st.just(-math.inf), FLOATS)
def test_cells_keep_the_order_of_numbers(name: str, one: float, other: float) -> None:
    """Cells of an attribute's numbers are in the order of the numbers."""
    low, high = sorted((one, other))
    assert cell(name, "number", low) <= cell(name, "number", high)
    assert 0 <= cell(name, "number", low) < 2**63


@given(st.integers(-(2**33), 2**33))
def test_integers_are_exact(value: int) -> None:
    """Integers up to 2**33 have cells of their own."""
    assert cell("a", "number", value) < cell("a", "number", value + 1) or value == 2**33


def test_zeros_are_equal() -> None:
    """The negative zero is the positive one."""
    assert cell("a", "number", -0.0) == cell("a", "number", 0.0)


@given(SECONDS, SECONDS)
def test_cells_keep_the_order_of_moments(one: int, other: int) -> None:
    """Cells of moments are in the order of the moments, and exact."""
    assert (one < other) == (cell("date", "moment", one) < cell("date", "moment", other))


@given(NAMES, st.sampled_from(["number", "moment"]), FLOATS | st.integers(-(2**70), 2**70).map(float))
def test_digest_is_that_of_name_and_kind(name: str, kind: Kind, value: float) -> None:
    """The upper half of a cell depends on name and kind alone, whatever the value."""
    assert cell(name, kind, value) >> IMAGE_BITS == cell(name, kind, 0) >> IMAGE_BITS < 2**19
    assert cell(f" {name.upper() if name.isascii() else name} ", kind, value) == cell(name, kind, value)


def test_names_and_kinds_are_kept_apart() -> None:
    """The cells of many names and of both kinds have different upper halves, as far as 19 bits allow."""
    kinds: tuple[Kind, ...] = ("number", "moment")
    digests = {cell(f"name{at}", kind, 5) >> IMAGE_BITS for at in range(50) for kind in kinds}
    assert len(digests) == 100


@given(st.lists(DECIMALS, max_size=5), st.none() | DECIMALS, st.none() | DECIMALS)
def test_ranges_of_numbers_are_comparisons(numbers: Sequence[float], low: float | None, high: float | None) -> None:
    """Integers up to 2**31 and decimals of few digits are found in a range as plain numbers are compared, bounds included."""
    found = cells({"pages": [f" {each!r}" for each in numbers]})
    expected = any((low is None or low <= each) and (high is None or each <= high) for each in numbers)
    assert within(NumberRange("Pages", low, high), found) == expected
    assert not within(NumberRange("lines", low, high), found)


SPECIAL = st.sampled_from([0.0, 0.1, 0.3, 10.0, -0.1, 3.14, 1e6, 2.0**40])


@given(DECIMALS | SPECIAL, DECIMALS | SPECIAL)
def test_excluded_bounds_exclude(value: float, bound: float) -> None:
    """`>` and `<`, whose bounds are the next floats, are comparisons: a bound of at most 15 digits is excluded."""
    found = cells({"pages": [repr(value)]})
    assert within(NumberRange("pages", math.nextafter(bound, math.inf), None), found) == (value > bound)
    assert within(NumberRange("pages", None, math.nextafter(bound, -math.inf)), found) == (value < bound)


@given(st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False))
def test_a_number_is_within_itself(value: float) -> None:
    """Every number as it is written in at most 15 digits is within the range from itself to itself."""
    short = float(f"{value:.15g}")
    if math.isfinite(short):
        assert within(NumberRange("a", short, short), {cell("a", "number", short)})


@given(st.lists(SECONDS, max_size=5), st.none() | SECONDS, st.none() | SECONDS)
def test_ranges_of_moments_are_comparisons(moments: Sequence[int], low: int | None, high: int | None) -> None:
    """Dates are found in a range as plain moments are compared, bounds included."""
    found = cells({"issued": [at(each).isoformat() for each in moments]})
    expected = any((low is None or low <= each) and (high is None or each <= high) for each in moments)
    assert within(MomentRange("issued", low, high), found) == expected


@given(SECONDS)
def test_ranges_outside_of_time_are_empty(second: int) -> None:
    """Nothing is before the year 1 nor after 9999; such a bound stays within the cells of its attribute."""
    found = {cell("", "moment", second)}
    for query in (
        MomentRange("", None, FIRST - 1),
        MomentRange("", LAST + 1, None),
        MomentRange("", 2**60),
        MomentRange("", None, -(2**60)),
    ):
        assert not within(query, found)
        assert {bound >> IMAGE_BITS for bound in bounds(query)} == {cell("", "moment", 0) >> IMAGE_BITS}
    assert within(MomentRange("", FIRST, LAST), found)


def test_open_range_has_all_of_an_attribute() -> None:
    """A range without bounds is from the first to the last cell of the attribute."""
    low, high = bounds(NumberRange("a"))
    assert (low >> IMAGE_BITS, high >> IMAGE_BITS) == (cell("a", "number", 0) >> IMAGE_BITS,) * 2
    assert high - low == 2**IMAGE_BITS - 1


def test_cells_are_of_all_attributes() -> None:
    """Cells are of each value that is a number or a moment, except links, and of the document's own date."""
    values = {"pages": ["12", "many", "14"], "issued": ["2024-03"], "date": ["1994"], "url-references": ["7"]}
    assert cells(values) == {
        cell("pages", "number", 12),
        cell("pages", "number", 14),
        cell("issued", "moment", seconds(2024, 3, 1)),
        cell("date", "number", 1994),
        cell("date", "moment", seconds(1994, 1, 1)),
        cell("", "moment", seconds(1994, 1, 1)),
    }


def test_cells_are_limited() -> None:
    """A summary has at most MAX_CELLS cells; that of its own date is always among them."""
    found = cells({"rows": [str(row) for row in range(2 * MAX_CELLS)], "date": ["2024-03-05"]})
    assert len(found) == MAX_CELLS
    assert cell("", "moment", seconds(2024, 3, 5)) in found


def summary(**attributes: str) -> dict[str, list[str]]:
    """Return the searchable values of a summary with these attributes."""
    made = {name.replace("_", "-"): (value,) for name, value in attributes.items()}
    return searchable_values(
        Summary(oid="0", url="http://h/", object_url="http://h/", gatherer="g", version=1, time=1, type="HTML", attributes=made)
    )


def test_day_of_timestamp_is_no_further_moment() -> None:
    """The day that the analysis adds to a timestamp, so that it is found as a word, does not count as midnight."""
    values = summary(date="2024-03-05T09:00:00Z")
    assert values["date"] == ["2024-03-05T09:00:00Z", "2024-03-05"]
    assert not within(MomentRange("date", None, seconds(2024, 3, 5, 8)), cells(values))
    assert within(MomentRange("date", seconds(2024, 3, 5, 9), seconds(2024, 3, 5, 9)), cells(values))


@pytest.mark.parametrize(
    ("attributes", "own"),
    [
        ({}, None),
        ({"date": "soon"}, None),
        ({"issued": "2024-03-05"}, None),
        ({"creation_date": "1999-01-01", "last_modification_time": "2024-03-05T00:00:00Z"}, seconds(1999, 1, 1)),
        ({"creation_date": "1999-01-01", "modification_date": "2003-04-05"}, seconds(2003, 4, 5)),
        ({"date": "1994", "modification_date": "2003-04-05"}, seconds(1994, 1, 1)),
        ({"date": "soon", "last_modification_time": "2024-03-05T01:02:03Z"}, seconds(2024, 3, 5, 1, 2, 3)),
        ({"date": "0001-01-01"}, FIRST),
    ],
)
def test_own_date_is_that_of_first_attribute(attributes: dict[str, str], own: int | None) -> None:
    """A document's own date is the first moment of the most telling attribute; its year has four digits."""
    values = summary(**attributes)
    assert own_date(values) == own
    assert year(values) == ("" if own is None else f"{at(own).year:04}")


@given(SECONDS)
def test_year_is_that_of_the_calendar(second: int) -> None:
    """The year of a document is the year of its own date in UTC."""
    assert year({"date": [at(second).isoformat()]}) == f"{at(second).year:04}"


@pytest.mark.parametrize(
    ("values", "found"), [([], 0), (["2551"], 2551), (["big", "12"], 12), (["-5"], 0), (["1e300"], MAX_SIZE), (["1.9"], 1)]
)
def test_size_is_a_number_of_bytes(values: list[str], found: int) -> None:
    """The size is the first number of its attribute, as an integer of 63 bits; 0 if there is none."""
    assert size({"file-size": values}) == found
