"""`harvest search` with its options, on an index in memory; the answers themselves are those of the engines."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import pytest
from click import unstyle

from processors.identity import oid
from processors.query import parse
from processors.query.facets import FACETS, chosen
from schemas.ports import BrokerIndex, Sort
from schemas.records import Summary
from streams.operations import indexes
from tests.streams.cli.index_double import SCORE, IndexDouble

GATHERER = "lab"


def summary(name: str, title: str, kind: str = "HTML", **attributes: str) -> Summary:
    """Return a summary of a page of one site."""
    url = f"http://www.example.org/{name}"
    values = {attribute: (value,) for attribute, value in {"title": title, **attributes}.items()}
    return Summary(
        oid=oid(GATHERER, url),
        url=url,
        object_url=url,
        gatherer=GATHERER,
        version=1,
        time=1,
        type=kind,
        md5="0" * 32,
        attributes=values,
    )


WHALES = (
    summary("a", "white whales of the ocean", author="Herman Melville", date="1851-10-18"),
    summary("b", "grey whales of the coast", author="Herman Melville"),
    summary("c", "a whale in the ocean", kind="PDF", author="Jules Verne", date="1870-03-20"),
    summary("d", "squid in the ocean", kind="PDF"),
    summary("e", "gardens and their flowers", kind="Text"),
    summary("f", "trees and their leaves", kind="Text"),
    summary("g", "birds and their nests", kind="Text"),
)


@pytest.fixture
def index(harvest: Any, monkeypatch: pytest.MonkeyPatch) -> IndexDouble:
    """An index of a few summaries, which all commands open."""
    made = IndexDouble(*WHALES)
    port: BrokerIndex = made
    monkeypatch.setattr(indexes, "open_index", lambda *_: port)
    monkeypatch.setenv("HARVEST_GATHERER", GATHERER)
    return made


MISTAKES: list[tuple[tuple[str, ...], str]] = [
    (("whale", "--sort", "size"), "--sort size: no such order (there are relevance, newest, oldest, largest, url)"),
    (
        ("whale", "--facets", "type,host"),
        "--facets host: no such facet (there are type, site, language, author, year, gatherer, view; all",
    ),
    (("whale", "--similar", "http://www.example.org/a"), "--similar takes the place of a QUERY: give one of the two"),
    ((), "a QUERY is missing (* finds all), or --similar URL"),
    (("whale", "--explain", "--sort", "url"), "--explain tells the parts of a score, but --sort url orders by no score"),
    (("whale", "--count", "--explain"), "--count prints a number alone: it goes with none of"),
    (("whale", "--count", "--facets", "all"), "--count prints a number alone"),
    (("whale", "--count", "--sort", "newest"), "--count prints a number alone"),
    (("whale", "--count", "--offset", "10"), "--count prints a number alone"),
    (("whale", "--syntax", "agrep"), "--syntax agrep: no such language (there are harvest, glimpse)"),
    (("--similar", "http://www.example.org/a", "--syntax", "glimpse"), "--syntax is the language of a QUERY"),
    (("{whale", "--syntax", "glimpse"), "this { is never closed: ^{whale"),
    (("whale;squid,ocean", "--syntax", "glimpse"), "where ; and , are mixed, { } must tell what belongs together (did you mean"),
    (("during:2024-13",), "there is no month 13: months are 01 to 12: during:^2024-13"),
]


@pytest.mark.parametrize(("arguments", "line"), MISTAKES)
def test_mistake_is_one_line(harvest: Any, index: IndexDouble, arguments: tuple[str, ...], line: str) -> None:
    """A mistake is one line that says what is wrong, with exit code 2, and the index is not opened for it."""
    result = harvest("search", *arguments, code=2)
    assert result.stderr.startswith(f"harvest: {line}")
    assert (result.stdout, result.stderr.count("\n")) == ("", 1)
    assert not index.closed


def test_help_names_all_orders_and_facets(harvest: Any) -> None:
    """The help, which is written without loading anything, names the orders and facets that there are."""
    said = re.sub(r"[\s│]+", " ", unstyle(harvest("search", "--help").stdout))
    assert f"{', '.join(get_args(Sort)[:-1])} or {get_args(Sort)[-1]}" in said
    assert ", ".join(FACETS) in said


@pytest.mark.parametrize("order", get_args(Sort))
def test_order_limit_and_offset_are_those_of_the_index(harvest: Any, index: IndexDouble, order: str) -> None:
    """`--sort`, `--limit`, `--offset` and `--copies` are given to the index, whose order is printed."""
    found = harvest.lines("search", "whale", "--sort", order, "--limit", 2, "--offset", 1, "--copies")
    assert index.searches == [{"limit": 2, "offset": 1, "copies": True, "sort": order, "facets": ()}]
    assert [hit["url"][-1] for hit in found] == ["b", "c"]
    assert index.closed == 1


def test_pages_say_which_hits_are_shown(harvest: Any, index: IndexDouble) -> None:
    """A page behind the first one says which hits it shows, also if it is empty."""
    assert harvest("search", "whale", "--offset", 1, "--limit", 1).stderr == "3 found, 2 to 2 shown\n"
    assert harvest("search", "whale", "--offset", 1).stderr == "3 found, 2 to 3 shown\n"
    assert harvest("search", "whale", "--offset", 5).stderr == "3 found, 0 shown\n"
    assert harvest("search", "whale").stderr == "3 found\n"


def test_facets_follow_the_hits_with_terms_to_add(harvest: Any, index: IndexDouble) -> None:
    """Each value has its count and the term that chooses it."""
    result = harvest("search", "whale", "--facets", "year, type,author", "--limit", 1)
    assert result.stdout.splitlines()[2:] == [
        "type",
        "  2  HTML  type:HTML",
        "  1  PDF   type:PDF",
        "author",
        '  2  Herman Melville  author:=="Herman Melville"',
        '  1  Jules Verne      author:=="Jules Verne"',
        "year",
        "  1  1851  during:1851",
        "  1  1870  during:1870",
    ]
    assert result.stderr == "3 found, 1 shown\n"
    assert harvest("search", "squid", "--facets", "year", "--limit", 0).stdout == "year (none)\n"


def test_facets_are_json_objects_after_the_hits(harvest: Any, index: IndexDouble) -> None:
    """A value is an object with facet, value, total and term; the query with the term added finds so many."""
    lines = harvest.lines("search", "whale", "--facets", "all")
    assert [set(line) for line in lines[:3]] == [{"oid", "url", "title", "type", "score", "snippet"}] * 3
    assert lines[3] == {"facet": "type", "value": "HTML", "total": 2, "term": "type:HTML"}
    assert tuple(dict.fromkeys(line["facet"] for line in lines[3:])) == tuple(name for name in FACETS if name != "language")
    for line in lines[3:]:
        query = f"whale {line['term']}"
        assert len(chosen(parse(query), line["facet"])) == 1
        assert harvest("search", query, "--count").stdout == f"{line['total']}\n"


def test_chosen_value_is_marked_and_others_take_its_place(harvest: Any, index: IndexDouble) -> None:
    """A choice does not change the counts of its facet; the others are offered instead of it."""
    lines = harvest("search", "whale type:html", "--facets", "type", "--limit", 0).stdout.splitlines()
    assert lines == ["type (instead of type:html)", "  2  HTML  (chosen)", "  1  PDF   type:PDF"]


def test_query_to_add_terms_to_is_shown_where_it_is_not_the_typed_one(harvest: Any, index: IndexDouble) -> None:
    """A term is added behind parentheses if the query is an OR, and to a query of Harvest's own if it was one of Glimpse."""
    said = harvest("search", "whale OR squid", "--facets", "type").stderr.splitlines()
    assert said == ["4 found", "harvest: add a term of a facet to the query: (whale OR squid)"]
    said = harvest("search", "whale;ocean", "--syntax", "glimpse", "--facets", "type").stderr.splitlines()
    assert said == ["2 found", "harvest: add a term of a facet to the query: *whale* *ocean*"]


def test_explain_shows_the_parts_of_each_score(harvest: Any, index: IndexDouble) -> None:
    """The parts of a score follow the hit's first lines, and are a field in JSON; without --explain there are none."""
    shown = harvest("search", "whale ocean", "--explain", "--limit", 1).stdout.splitlines()
    assert shown[1:] == ["  white whales of the ocean [HTML, 2.00]", "      1.00  whale", "      1.00  ocean"]
    hits = harvest.lines("search", "whale ocean", "--explain")
    assert [hit["explain"] for hit in hits] == [[{"query": "whale", "score": 1.0}, {"query": "ocean", "score": 1.0}]] * 2
    assert all(sum(part["score"] for part in hit["explain"]) == hit["score"] == SCORE for hit in hits)
    assert "explain" not in harvest.lines("search", "whale")[0]


def test_count_prints_a_number_alone(harvest: Any, index: IndexDouble) -> None:
    """`--count` prints the number of hits, also 0, and reads none of them."""
    assert (harvest("search", "whale", "--count").stdout, harvest("search", "nothing", "--count").stdout) == ("3\n", "0\n")
    assert harvest("search", "whale", "--count").stderr == ""
    assert harvest.lines("search", "whale", "--count") == [{"total": 3}]
    assert {search["limit"] for search in index.searches} == {0}


def test_glimpse_patterns_are_found_inside_words(harvest: Any, index: IndexDouble) -> None:
    """With `--syntax glimpse` a query is a pattern of Glimpse."""
    assert len(harvest.lines("search", "{hale,quid};cean", "--syntax", "glimpse")) == 3
    assert not harvest.lines("search", "hale")
    assert harvest("search", "--count", "--syntax", "glimpse", "--", "-w whale").stdout == "1\n"


def test_similar_shows_its_query_and_not_the_summary_itself(harvest: Any, index: IndexDouble) -> None:
    """What is similar to a URL, or to an OID, is found by a query that is shown and can be edited."""
    for what in ("http://www.example.org/a", WHALES[0].oid):
        result = harvest("search", "--similar", what)
        first, *_ = result.stderr.splitlines()
        query = first.removeprefix("harvest: the query for what is similar: ")
        assert query != first
        assert result.stdout == harvest("search", query).stdout
        assert "http://www.example.org/c\n" in result.stdout
        assert "http://www.example.org/a\n" not in result.stdout


def test_similar_finds_a_url_of_another_gatherer(harvest: Any, index: IndexDouble, monkeypatch: pytest.MonkeyPatch) -> None:
    """A URL that this Gatherer has no summary of is looked up by itself."""
    monkeypatch.setenv("HARVEST_GATHERER", "other")
    assert harvest.lines("search", "--similar", "http://www.example.org/a")
    result = harvest("search", "--similar", "http://www.example.org/none", code=1)
    assert result.stderr == "harvest: http://www.example.org/none: no summary of it\n"


def test_summary_without_telling_words_is_an_error_of_one_line(harvest: Any, index: IndexDouble) -> None:
    """Where no word of a summary tells it from others, nothing is searched."""
    lone = summary("lone", "quixotic")
    index.summaries[lone.oid] = lone
    result = harvest("search", "--similar", lone.url, code=1)
    assert result.stderr.startswith(f"harvest: {lone.url}: nothing similar can be searched")
    assert (result.stdout, result.stderr.count("\n")) == ("", 1)


def test_misspelled_word_is_corrected_where_that_finds_more(harvest: Any, index: IndexDouble) -> None:
    """With few hits, another spelling is proposed on standard error; Glimpse's patterns are left as they are."""
    said = harvest("search", "ocaen -type:PDF").stderr.splitlines()
    assert said[0] == "0 found"
    assert said[-1] == "harvest: did you mean: ocean NOT type:PDF"
    assert "did you mean" not in harvest("search", "ocean").stderr
    assert "did you mean" not in harvest("search", "ocaen", "--syntax", "glimpse").stderr
    assert harvest("search", "ocaen", "--count").stdout == "0\n"


def test_show_on_a_server_reads_the_record_of_the_index(
    harvest: Any, index: IndexDouble, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With an index on a server there may be no data folder: the summary comes from the index, also by its URL alone."""
    monkeypatch.setenv("HARVEST_INDEX_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("HARVEST_GATHERER", "other")
    for what in (WHALES[0].url, WHALES[0].oid):
        (shown,) = harvest.lines("show", what)
        assert (shown["oid"], shown["url"]) == (WHALES[0].oid, WHALES[0].url)
    assert harvest("show", "http://h/none", code=1).stderr == "harvest: http://h/none: no summary of it\n"
    assert not list(tmp_path.iterdir())
