"""Hours of a root: its hosts are asked inside of the window only."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.frontier.plans.hours import DAY_MINUTES, MINUTE, parse_hours
from processors.frontier.rows import Table
from processors.frontier.stage import deadline, outstanding, restore
from schemas.records import Plan
from tests.processors.frontier.conftest import SITE, Partition, requests

HOUR = 60 * MINUTE
DAY = 24 * HOUR


@pytest.mark.parametrize(
    ("text", "hour", "opens"),
    [
        ("22:00-06:00", 23, 23),
        ("22:00-06:00", 5, 5),
        ("22:00-06:00", 6, 22),
        ("22:00-06:00 +01:00", 20, 21),
        ("22:00-06:00 +01:00", 5, 21),
        ("22:00-06:00 -02:00", 23, 24),
        ("08:00-18:00", 18, 32),
        ("00:00-01:00 +05:30", 0, 18.5),
    ],
)
def test_window_opens_at_its_start(text: str, hour: int, opens: float) -> None:
    """A time in the window is open; another one waits for the next start, in UTC."""
    assert parse_hours(text).next_open(3 * DAY + hour * HOUR) == 3 * DAY + opens * HOUR


@pytest.mark.parametrize("text", ["", "22-6", "22:00", "24:00-06:00", "22:00-06:60", "22:00-06:00 Europe/Berlin", "05:00-05:00"])
def test_malformed_hours_are_refused(text: str) -> None:
    """What is no window is refused."""
    with pytest.raises(ValueError, match="is"):
        parse_hours(text)


@given(st.integers(0, DAY_MINUTES - 1), st.integers(1, DAY_MINUTES - 1), st.integers(0, 10**13))
def test_next_open_is_in_the_window_and_the_first(start: int, length: int, now: int) -> None:
    """The next open time is at most a day away, in the window, and no earlier minute is."""
    end = (start + length) % DAY_MINUTES
    hours = parse_hours(f"{start // 60:02}:{start % 60:02}-{end // 60:02}:{end % 60:02}")
    opens = hours.next_open(now)
    assert now <= opens <= now + DAY
    assert hours.next_open(opens) == opens
    assert opens == now or opens // MINUTE % DAY_MINUTES == start


def test_host_is_asked_in_the_window_and_woken_at_its_start(partition: Partition) -> None:
    """Outside of the hours nothing is requested, not even robots.txt, and no run waits; the start of the window wakes the host."""
    partition.now = 3 * DAY + 12 * HOUR
    plan = Plan(hours="22:00-06:00 +01:00")
    assert not requests(partition.seed(plan))
    assert not outstanding(partition.rows, partition.now + MINUTE)
    assert deadline(partition.rows) == 3 * DAY + 21 * HOUR
    restore(partition.rows)
    assert deadline(partition.rows) == 3 * DAY + 21 * HOUR
    (page,) = requests(partition.resolve(partition.tick(3 * DAY + 21 * HOUR)))
    assert page.url == SITE
    assert Table(partition.rows).host("http://a.test").opens == 0


def test_queue_waits_once_the_window_has_ended(partition: Partition) -> None:
    """Links found at the end of the window are requested at the start of the next."""
    partition.now = 3 * DAY + 5 * HOUR
    (page,) = requests(partition.resolve(partition.seed(Plan(hours="22:00-06:00"))))
    partition.now += HOUR
    assert not requests(partition.link(page, f"{SITE}x"))
    assert [each.url for each in requests(partition.tick(3 * DAY + 22 * HOUR))] == [f"{SITE}x"]


def test_changed_hours_apply_at_once(partition: Partition) -> None:
    """A root whose hours are taken away is requested at once."""
    partition.now = 3 * DAY + 12 * HOUR
    assert not requests(partition.seed(Plan(hours="22:00-06:00")))
    assert requests(partition.seed(Plan(), run="2"))
