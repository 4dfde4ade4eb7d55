"""Export, feeds, the bytes of objects, and text that must be inert."""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree
from starlette.testclient import TestClient

from processors.identity import oid
from schemas.soif import parse
from sinks.gateway import texts
from sinks.gateway.export import COLUMNS
from sinks.gateway.objects import disposition
from tests.sinks.gateway.doubles import SUMMARIES, Made, summary

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Client = Callable[..., TestClient]
MEMBER = "file:///srv/docs/bundle.zip#papers.tar.gz#whale.txt"
ATOM = "{http://www.w3.org/2005/Atom}"
UNPACK: dict[str, Callable[[bytes], bytes]] = {"none": bytes, "gzip": gzip.decompress, "zstd": zstd.decompress}


@pytest.mark.parametrize("compression", sorted(UNPACK))
def test_export_has_every_match_once(client: Client, compression: str) -> None:
    """JSON lines have the whole records, in order of OID, in each compression."""
    ask = client()
    answer = ask.get("/api/export", params={"q": "whale OR krill", "compression": compression})
    found = [json.loads(line) for line in UNPACK[compression](answer.content).splitlines()]
    oids = [one["oid"] for one in found]
    assert oids == sorted(oids)
    assert len(oids) == ask.get("/api/search", params={"q": "whale OR krill", "size": 0}).json()["total"] == 4
    assert any(one["attributes"].get("keywords") == ["leviathan", "krill"] for one in found)


def test_soif_export_is_one_stream(client: Client) -> None:
    """A reader of SOIF gets each summary as a template."""
    text = client().get("/api/export", params={"q": "whale OR krill", "format": "soif"}).content
    assert sorted(template.url for template in parse(text)) == sorted(
        ["http://example.org/whale.html", "http://example.org/ship.html", MEMBER, "http://other.example.net/a.pdf"]
    )


def test_csv_export_is_safe_in_a_spreadsheet(client: Client) -> None:
    """Each row has all columns; a cell that would be computed begins with an apostrophe."""
    rows = list(csv.reader(io.StringIO(client().get("/api/export", params={"format": "csv"}).text)))
    assert tuple(rows[0]) == COLUMNS
    assert len(rows) == 7
    assert not [cell for row in rows for cell in row if cell.startswith(("=", "+", "-", "@"))]


def test_one_bad_summary_breaks_no_export(client: Client, made: Made) -> None:
    """What cannot be written in a format is left out of its export; its page is shown, and says so."""
    bad = summary("ftp://a/\njavascript:1", "T\ufffe\x08", title="forged", author=["=1+1", "+2"])
    folder = made.folder.with_name("forged")
    forged = Made(folder, [*SUMMARIES, bad])
    ask = client(forged.open)
    assert len(parse(ask.get("/api/export", params={"format": "soif"}).content)) == len(SUMMARIES)
    assert len(ask.get("/api/export").text.splitlines()) == len(SUMMARIES) + 1
    rows = csv.DictReader(io.StringIO(ask.get("/api/export", params={"q": "forged", "format": "csv"}).text))
    assert [row["author"] for row in rows] == ["'=1+1 | '+2"]
    assert "cannot be written as SOIF" in ask.get(f"/summary/{bad.oid}").text
    assert ask.get(f"/api/summary/{bad.oid}/soif").status_code == 409
    assert etree.fromstring(ask.get("/feed", params={"q": "forged"}).content).find(f"{ATOM}entry") is not None


def test_export_of_a_mistake_is_an_error(client: Client) -> None:
    """An export is whole or refused."""
    assert client().get("/api/export", params={"q": "whale AND"}).status_code == 400


def test_feed_has_the_newest_first(client: Client) -> None:
    """A feed reader gets the matches of a saved search, each with its own identifier."""
    root = etree.fromstring(client().get("/feed", params={"q": "whale OR krill"}).content)
    titles = [entry.findtext(f"{ATOM}title") for entry in root.iter(f"{ATOM}entry")]
    assert titles == ["Krill in numbers", "A member about a whale", "The white whale", "Ships of Nantucket"]
    identifiers = [entry.findtext(f"{ATOM}id") for entry in root.iter(f"{ATOM}entry")]
    assert f"urn:harvest:{oid('tests', MEMBER)}" in identifiers
    assert root.findtext(f"{ATOM}updated") == "2024-03-05T00:00:00Z"


def test_feed_of_hostile_summaries_is_xml(client: Client) -> None:
    """Controls of a title are no part of XML."""
    root = etree.fromstring(client().get("/feed", params={"q": "hostile"}).content)
    assert "<script>" in str(root.findtext(f"{ATOM}entry/{ATOM}title"))


def test_object_is_an_attachment(client: Client, collection: Any) -> None:
    """The bytes come with a name, a length and a type that no browser shows; the name is that of the member."""
    collection.bodies[oid("tests", MEMBER)] = b"<html><script>"
    answer = client(objects=True).get(f"/object/{oid('tests', MEMBER)}")
    assert (answer.status_code, answer.content) == (200, b"<html><script>")
    assert answer.headers["content-disposition"] == "attachment; filename=\"whale.txt\"; filename*=UTF-8''whale.txt"
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-security-policy"] == "sandbox"


def test_name_of_an_attachment_is_no_header_of_its_own() -> None:
    """Whatever a member is called, its name ends no quotes and no line."""
    assert disposition('a"b\r\nX: y/ü') == "attachment; filename=\"a_b_X_ y__\"; filename*=UTF-8''a%22b_X%3A%20y%2F%C3%BC"


@pytest.mark.parametrize(
    ("url", "linked"),
    [
        ("http://example.org/", True), ("https://h/a?b#c", True), ("ftp://h/a", True), ("HTTP://h/", True),
        ("javascript:alert(1)", False), ("data:text/html,x", False), ("file:///etc/passwd", False), ("java\nscript:x", False),
        ("http:evil", False), (" http://h/", False), ("http://h/\x00", False), ("http://[", False), ("//h/", False), ("", False),
    ],
)  # fmt: skip
def test_only_known_schemes_are_links(url: str, linked: bool) -> None:
    """A summary's URL may be anything; only http, https and ftp can be followed."""
    assert bool(texts.link(url)) == linked


@given(st.text())
def test_marked_text_is_escaped(text: str) -> None:
    """Whatever the text, the only elements are marks, and they are balanced."""
    shown = str(texts.highlighted(text))
    rest = shown.replace("<mark>", "").replace("</mark>", "")
    assert "<" not in rest
    assert ">" not in rest
    assert shown.count("<mark>") == shown.count("</mark>")
    assert not set(shown) & set("\x00\x02\x03\x1b\u202e\u2066")


def test_long_value_is_cut() -> None:
    """An attribute of a megabyte is no page of a megabyte."""
    shown = texts.value("x" * 1_000_000)
    assert len(shown) < 21_000
    assert shown.endswith("980,000 more characters: see the SOIF file")
    assert texts.value(b"\xff\x1b[31m") == "\ufffd\ufffd[31m"


@pytest.mark.parametrize(
    ("count", "shown"), [(0, "0 bytes"), (999, "999 bytes"), (1_500, "1.5 kB"), (999_960, "1.0 MB"), (2 * 10**12, "2.0 TB")]
)
def test_sizes_are_for_people(count: int, shown: str) -> None:
    """Sizes are in decimal units."""
    assert texts.size(count) == shown
