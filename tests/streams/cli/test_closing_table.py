"""The end of `harvest gather`: which rows the closing table has, and how often a reason is stated."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from streams.cli.output.root_failures import failure_lines, other_reasons
from streams.cli.output.run_report import RunReport
from streams.fetch.answers import ALLOW
from tests.samples.site_server import Site

REFUSED = f"127.0.0.1 is loopback; {ALLOW}"
DOWN = "status 500"
ROOTS = [("http://a/", REFUSED), ("http://b/", DOWN), ("http://c/", REFUSED), ("http://d/", DOWN)]


def report(**counts: Any) -> RunReport:
    """A report with these counts; all others are zero or empty."""
    zero: dict[str, Any] = dict.fromkeys(RunReport.__struct_fields__, 0)
    empty: dict[str, Any] = {"refused": {}, "rejected": {}, "unselected": {}, "brokers": {}, "waiting": []}
    empty |= {"ratio": None, "seconds": 0.25}
    return RunReport(**(zero | empty | counts))


def test_rows_that_are_zero_are_left_out() -> None:
    """The table has the rows that count something and the seconds; a table of zeros is empty."""
    assert report(unchanged=1_200, copies=3).rows() == [("objects unchanged", "1,200"), ("copies held", "3"), ("seconds", "0.2")]
    assert report().rows() == []


def test_reason_and_its_count_are_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """In a table that is no terminal's, a reason and its count are on one line, however long the reason is."""
    report(rejected={"a reason " * 30: 2}).print()
    assert re.search(r"(?m)^rejected: (a reason ){30} +2$", capsys.readouterr().err)


def test_verbose_table_has_all_rows() -> None:
    """With `verbose` the table has the same rows for every run, zeros included."""
    rows = dict(report().rows(verbose=True))
    assert len(rows) == 14
    assert (rows["objects fetched"], rows["summaries to bytes in"]) == ("0", "-")
    assert rows.keys() == dict(report(objects=1, added=1, ratio=0.5).rows(verbose=True)).keys()


@pytest.mark.parametrize(
    ("ratio", "row", "remark"),
    [
        (0.1234, "12.3%", ""),
        (1.0, "100.0%", ""),
        (1.4556, "", "(1.46 times the bytes)"),
        (12.913, "", "(13 times the bytes)"),
        (None, "", ""),
    ],
)
@pytest.mark.parametrize("verbose", [False, True])
def test_share_above_100_per_cent_is_in_words(ratio: float | None, row: str, remark: str, verbose: bool) -> None:
    """The share of the summaries is a percentage up to 100, and above a sentence below the table, in no row."""
    table = report(objects=1, ratio=ratio)
    assert dict(table.rows(verbose=verbose)).get("summaries to bytes in", "") == (row or "-" * (verbose and ratio is None))
    assert [text.partition("objects ")[2].partition(",")[0] for text in table.remarks()] == [remark] * bool(remark)


def test_refused_address_is_one_line() -> None:
    """All URLs at a refused address are one line, with their number; every other root has a line of its own."""
    lines = list(failure_lines(ROOTS, {REFUSED: 4}, {REFUSED: 1, DOWN: 2}, " (hint)"))
    assert lines == [f"http://a/ and 4 more URLs: {REFUSED}", f"http://b/: {DOWN} (hint)", f"http://d/: {DOWN} (hint)"]


def test_number_of_refused_roots_needs_no_count() -> None:
    """Roots that were refused in an earlier run are counted though this one has not counted them."""
    assert list(failure_lines(ROOTS[::2], {}, {})) == [f"http://a/ and 1 more URL: {REFUSED}"]


def test_reason_is_no_row_where_a_line_states_it() -> None:
    """A reason is left out of the table if lines about roots state it for all of its URLs, or if it is a refused address."""
    assert other_reasons({REFUSED: 7, DOWN: 2, "robots.txt": 1}, ROOTS) == {"robots.txt": 1}
    assert other_reasons({DOWN: 3}, ROOTS) == {DOWN: 3}
    assert other_reasons({REFUSED: 7}, []) == {REFUSED: 7}


def test_gather_of_a_refused_address_prints_one_line(harvest: Any, site: Site) -> None:
    """A run whose only root is at a refused address prints one line: the root and the reason, and no table of zeros."""
    said = harvest("gather", site.url, code=1).stderr
    assert said == f"harvest: {site.url}: {REFUSED}\n"
    assert not site.asked


@pytest.mark.slow
def test_site_at_an_address_refused_later_is_one_line(harvest: Any, site: Site) -> None:
    """If the address of a known site is not allowed any more, the reason is stated once, with the number of its URLs."""
    (first,) = harvest.lines("gather", site.url, "--pause", "0", "--allow", "127.0.0.1")
    said = harvest("gather", "--pause", "0", code=1).stderr
    assert said.count("loopback") == 1
    (more,) = re.findall(rf"(?m)^harvest: {re.escape(site.url)} and (\d+) more URLs: ", said)
    assert int(more) >= first["objects"] - 1


def test_name_of_a_refused_address_is_stated(harvest: Any) -> None:
    """The reason of a host that is named, not numbered, has its name and the address that it leads to."""
    said = harvest("gather", "http://localhost:1/", code=1).stderr
    assert re.fullmatch(rf"harvest: http://localhost:1/: localhost: \S+ is loopback; {re.escape(ALLOW)}\n", said)


def test_verbose_option_prints_zeros(harvest: Any, tree: Path) -> None:
    """`gather` prints no row that is zero, with --verbose all rows, and --verbose with --quiet or --json is a usage error."""
    assert not re.search(r"(?m) 0$", harvest("gather", tree).stderr)
    assert re.search(r"(?m)^objects removed +0$", harvest("gather", tree, "--verbose").stderr)
    for other in ("--quiet", "--json"):
        assert "--verbose" in harvest("gather", tree, "-v", other, code=2).stderr
