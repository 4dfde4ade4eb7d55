"""Robots directives: of the header X-Robots-Tag for objects of every type and their members, combined with those of pages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from processors.essence.formats.robots_directives import header_directives, meta_directives
from processors.essence.stage import Output
from schemas.records import CrawlEvent, Root, Summary

Run = Callable[..., list[Output]]
Pack = Callable[[list[tuple[str, bytes]]], bytes]

PAGE = b'<html lang="en"><title>Secret plans</title><body><p>serendipity <a href="b.html">b</a></body></html>'
SAMPLES = Path(__file__).parents[2] / "samples" / "summarize"
FETCHED = 1_750_000_000_000
"""A time of fetching: June 15, 2025, 15:06:40 UTC."""
ROOT = Root(url="http://a.example/", run="r1")


def gathered(run: Run, data: bytes, name: str, header: str, **more: Any) -> list[Output]:
    """Return the records of an object of a web server with that X-Robots-Tag."""
    headers = {"x-robots-tag": header} if header else {}
    return run(data, f"http://a.example/{name}", root=ROOT, headers=headers, time=FETCHED, **more)


def summaries(records: list[Output]) -> list[Summary]:
    """Return the summaries among the records."""
    return [record for record in records if isinstance(record, Summary)]


def targets(records: list[Output]) -> list[str]:
    """Return the links that the frontier gets."""
    return [link.url for record in records if isinstance(record, CrawlEvent) for link in record.links]


OBJECTS = [
    ("a.html", PAGE),
    ("b.txt", b"Secret plans\n\nserendipity\n"),
    ("c.csv", b"secret,plans\n1,serendipity\n"),
    ("pdf.pdf", (SAMPLES / "pdf.pdf").read_bytes()),
    ("d.json", b'{"title": "Secret plans"}'),
    ("e.bin", b"\0\1\2 serendipity"),
]


@pytest.mark.parametrize(("name", "data"), OBJECTS)
@pytest.mark.parametrize("header", ["noindex", "NOSNIPPET, NoIndex", "otherbot: nofollow, harvest: noindex"])
def test_noindex_in_header_keeps_only_name(run: Run, name: str, data: bytes, header: str) -> None:
    """Of an object of any type whose header says noindex, only the name and the directives are kept."""
    (summary,) = summaries(gathered(run, data, name, header))
    assert set(summary.attributes) == {"title", "robots"}
    assert summary.attributes["title"] == (name,)
    assert "noindex" in summary.attributes["robots"]


def test_damaged_object_under_noindex_keeps_only_name_and_reason(run: Run) -> None:
    """The summary of a damaged object under noindex has its reason, and nothing of its content."""
    (summary,) = summaries(gathered(run, PAGE[:20] + b"<b>" * 200_000, "a.html", "noindex"))
    assert set(summary.attributes) <= {"title", "robots", "reason"}


FOLLOWED = [
    ("", "", True),
    ("nofollow", "", False),
    ("none", "", False),
    ("noindex", "", True),
    ("", "nofollow", False),
    ("", "noindex nofollow", False),
    ("noarchive", "index, follow", True),
    ("otherbot: nofollow", "", True),
    ("nofollow", "follow", False),
]


@pytest.mark.parametrize(("header", "meta", "followed"), FOLLOWED)
def test_nofollow_in_header_or_page_stops_links(run: Run, header: str, meta: str, followed: bool) -> None:
    """No link of a page is followed if its header or its meta element says nofollow."""
    records = gathered(run, f'<meta name="robots" content="{meta}">'.encode() + PAGE, "a.html", header)
    assert targets(records) == (["http://a.example/b.html"] if followed else [])


def test_header_for_another_agent_has_no_effect(run: Run) -> None:
    """Directives for another user agent neither hide an object nor are kept."""
    (summary,) = summaries(gathered(run, PAGE, "a.html", "otherbot: noindex, nofollow, googlebot: none"))
    assert summary.attributes["title"] == ("Secret plans",)
    assert "robots" not in summary.attributes


def test_header_and_page_are_combined(run: Run) -> None:
    """Directives of the header, of `robots` and of `harvest` are all kept, and the strictest counts."""
    metas = b'<meta name="harvest" content="noarchive"><meta name=robots content="index,nosnippet">'
    (summary,) = summaries(gathered(run, metas + PAGE, "a.html", "nofollow"))
    assert set(summary.attributes["robots"]) == {"nofollow", "noarchive", "nosnippet"}
    assert summary.attributes["title"] == ("Secret plans",)
    (hidden,) = summaries(gathered(run, b'<meta name="harvest" content="noindex">' + PAGE, "a.html", "nofollow"))
    assert hidden.attributes == {"title": ("a.html",), "robots": ("nofollow", "noindex")}


def test_header_counts_for_members_of_archives(run: Run, tar: Pack) -> None:
    """Of an archive whose header says noindex, and of each of its members, only the names are kept."""
    data = tar([("x/a.html", PAGE), ("x/b.txt", b"serendipity"), ("c.tar", tar([("d.txt", b"serendipity")]))])
    found = summaries(gathered(run, data, "a.tar", "noindex"))
    titles = {summary.path: summary.attributes["title"] for summary in found}
    assert titles == {
        "": ("a.tar",),
        "x/a.html": ("a.html",),
        "x/b.txt": ("b.txt",),
        "c.tar": ("c.tar",),
        "c.tar#d.txt": ("d.txt",),
    }
    assert all(set(summary.attributes) == {"title", "robots"} for summary in found)


def test_page_in_an_archive_forbids_for_itself(run: Run, tar: Pack) -> None:
    """A meta element of a member concerns that member alone."""
    data = tar([("a.html", b"<meta name=robots content=noindex>" + PAGE), ("b.txt", b"serendipity\n")])
    attributes = {summary.path: summary.attributes for summary in summaries(gathered(run, data, "a.tar", ""))}
    assert attributes["a.html"] == {"title": ("a.html",), "robots": ("noindex",)}
    assert attributes["b.txt"]["partial-text"] == ("serendipity",)
    assert "contents" in attributes[""]


@pytest.mark.parametrize(
    ("header", "meta"), [("noarchive", ""), ("", "noarchive"), ("nocache", ""), ("harvest: noarchive", "index")]
)
def test_noarchive_keeps_no_full_text(run: Run, header: str, meta: str) -> None:
    """A document whose directives forbid copies has a partial text, where others have their full text."""
    page = f'<meta name="robots" content="{meta}">'.encode() + PAGE
    settings = {"full_text": 100_000}
    (summary,) = summaries(gathered(run, page, "a.html", header, settings=settings))
    assert "full-text" not in summary.attributes
    assert "serendipity" in str(summary.attributes["partial-text"])
    (other,) = summaries(gathered(run, PAGE, "a.html", "", settings=settings))
    assert "full-text" in other.attributes
    (text,) = summaries(gathered(run, b"serendipity\n" * 900, "a.txt", header or meta, settings=settings))
    assert len(str(text.attributes["partial-text"])) < 5_000


DATES = [
    ("unavailable_after: 25 Jun 2010 15:00:00 PST", True),
    ("unavailable_after: Friday, 25-Jun-10 15:00:00 GMT", True),
    ("unavailable_after: Fri, 25 Jun 2010 15:00:00 GMT, nosnippet", True),
    ("UNAVAILABLE_AFTER:2025-06-15T15:06:40Z", True),
    ("unavailable_after: 2025-06-15T15:06:41+00:00", False),
    ("unavailable_after: 2025-06-15T17:06:40+02:00", True),
    ("unavailable_after: 2025-06-15", False),
    ("unavailable_after: 2025-06-14", True),
    ("unavailable_after: 14 Jun 2025", True),
    ("unavailable_after: Sat, 1 Jan 2050 00:00:00 GMT", False),
    ("unavailable_after: 2050-01-01, unavailable_after: 2020-01-01", True),
    ("unavailable_after: soon", False),
    ("unavailable_after:", False),
    ("unavailable_after: 99999-99-99", False),
    ("otherbot: unavailable_after: Fri, 25 Jun 2010 15:00:00 GMT", False),
    ("otherbot: nofollow, harvest: unavailable_after: 2010-06-25", True),
]


@pytest.mark.parametrize(("header", "hidden"), DATES)
def test_document_is_unavailable_from_its_date_on(run: Run, header: str, hidden: bool) -> None:
    """A document fetched after its date keeps only its name; the dates of mail, HTTP and ISO 8601 are read."""
    found = header_directives(header, FETCHED)
    assert found.noindex is hidden
    (summary,) = summaries(gathered(run, b"serendipity\n", "a.txt", header))
    assert ("partial-text" in summary.attributes) is not hidden


def test_date_in_a_page_counts(run: Run) -> None:
    """A date in a meta element is compared with the time of the fetch too."""
    page = b'<meta name="robots" content="unavailable_after: 25 Jun 2010 15:00:00 PST">' + PAGE
    (summary,) = summaries(gathered(run, page, "a.html", ""))
    assert summary.attributes == {"title": ("a.html",), "robots": ("unavailable_after: 25 Jun 2010 15:00:00 PST",)}


PARTS = [
    ("noindex, nofollow", ("noindex", "nofollow")),
    ("none", ("noindex", "nofollow")),
    ("otherbot: noindex, nofollow", ()),
    ("noindex, otherbot: nofollow", ("noindex",)),
    ("otherbot: noindex, Harvest/0.1 : nofollow", ("nofollow",)),
    ("otherbot: noindex, *: nofollow", ("nofollow",)),
    ("harvester: noindex", ()),
    ("max-snippet: 20, noindex", ("noindex",)),
    ("max-image-preview:large, max-video-preview: -1", ()),
    ("index, follow, all", ()),
    ("noindex; nofollow", ("noindex", "nofollow")),
    ("NOINDEX NOFOLLOW", ("noindex", "nofollow")),
    ("nothing, indexno", ()),
    ("unavailable_after: 1 Jan 2050 noindex", ("noindex", "unavailable_after: 1 Jan 2050")),
    ("", ()),
    (" , ,:, : noindex", ("noindex",)),
]


@pytest.mark.parametrize(("header", "kept"), PARTS)
def test_header_is_read_by_agent(header: str, kept: tuple[str, ...]) -> None:
    """A prefix limits the directives up to the next prefix; unknown and harmless names are ignored."""
    assert header_directives(header, FETCHED).kept == kept


@pytest.mark.parametrize("part", ["a: ", "noindex ", "unavailable_after: 1 ", ",", "1, ", "x" * 50])
def test_directives_are_bounded(part: str) -> None:
    """However long a header or a meta element is, few directives of bounded size are kept."""
    for found in (header_directives(part * 100_000, FETCHED), meta_directives(part * 100_000, FETCHED)):
        assert len(found.kept) <= 20
        assert all(len(name) < 100 for name in found.kept)
