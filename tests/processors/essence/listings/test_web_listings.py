"""Sitemaps and feeds: golden samples, recognition, and bodies that are damaged, endless or hostile."""

from __future__ import annotations

import gzip
import io
import json
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.essence.listings import _elements, feed, sitemap
from processors.essence.listings.listing_format import ParsedListing
from processors.essence.listings.registry import listing_format
from schemas.records import Complete, CrawlEvent, Partial, Rejected, Root, Summary

Run = Callable[..., list[Any]]

SAMPLES = Path(__file__).parents[3] / "samples" / "listings"
EXPECTED = json.loads((SAMPLES / "expected.json").read_text("utf-8"))
SITE = "https://www.example.org/"
ROOT = Root(url=SITE, run="r1", host=SITE[:-1])
OPEN = b'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'


def entries(*paths: str) -> bytes:
    """Return the entries of a sitemap for some paths."""
    return "".join(f"<url><loc>{SITE}{path}</loc></url>" for path in paths).encode()


def parsed(body: bytes, url: str = SITE + "sitemap.xml") -> ParsedListing:
    """Return what the format of a name reads from a body."""
    parse = feed.parse if "feed" in url else sitemap.parse
    return parse(io.BytesIO(body), url)


def paths(found: ParsedListing) -> list[str]:
    """Return the paths of the children."""
    return [child.url.removeprefix(SITE) for child in found.children]


@pytest.mark.parametrize("name", EXPECTED)
def test_sample_gives_its_children(name: str) -> None:
    """Each golden sample gives the children beside it, compressed too."""
    body = (SAMPLES / name).read_bytes()
    for written in (body, gzip.compress(body)):
        assert json.loads(msgspec.json.encode(parsed(written, SITE + name))) == EXPECTED[name]


@pytest.mark.parametrize("name", EXPECTED)
def test_recognition_needs_the_expectation_of_a_listing_unless_it_is_a_sitemap(name: str) -> None:
    """A sitemap in XML is recognized wherever it is; a feed and a text of URLs only where a listing is expected."""
    body = (SAMPLES / name).read_bytes()
    for head in (body, gzip.compress(body)):
        assert listing_format(SITE, "", head, expected=True) is not None
        assert (listing_format(SITE, "", head, expected=False) is not None) == (name.startswith("sitemap") and ".xml" in name)


@pytest.mark.parametrize(
    "body",
    [
        b"", b"\n", b"<html><urlset></html>", b"<urlsets/>", b"<?xml version='1.0'?><svg/>", b"https://a.example/\nand prose\n",
        b"%PDF-1.4 <urlset>", b"\x1f\x8bnot gzip", b"<rdf:RDF xmlns='http://xmlns.com/foaf/0.1/'/>", b"\xff\xfe\x00",
    ],
)  # fmt: skip
def test_other_documents_are_no_listings(body: bytes) -> None:
    """Other documents are not recognized, and refused by both formats."""
    assert listing_format(SITE, "application/xml", body, expected=True) is None
    for module in (sitemap, feed):
        with pytest.raises(ValueError, match="not a"):
            module.parse(io.BytesIO(body), SITE)


@pytest.mark.parametrize("media", ["text/x-harvest-ftp-listing", "text/x-harvest-gopher-menu", "text/x-harvest-nntp-overview"])
def test_web_server_cannot_state_the_media_type_of_an_adapter(media: str) -> None:
    """The media types of our own are those of other protocols alone."""
    assert listing_format(SITE, media, b"anything", expected=True) is None


def test_other_charsets_are_read() -> None:
    """A sitemap in UTF-16, and one with a byte order mark, are recognized and read."""
    text = f'<?xml version="1.0" encoding="utf-16"?>{OPEN.decode()}{entries("a").decode()}</urlset>'
    assert paths(parsed(text.encode("utf-16"))) == ["a"]
    assert paths(parsed(b"\xef\xbb\xbf" + OPEN + entries("a") + b"</urlset>")) == ["a"]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_cut_sitemap_gives_the_entries_before_the_cut(pack: Callable[[bytes], bytes]) -> None:
    """A sitemap that ends too early gives whole entries only, and is not whole."""
    body = OPEN + entries(*(str(number) for number in range(400))) + b"</urlset>"
    for end in (len(body) // 2, len(body) - 3):
        found = parsed(pack(body[:end]))
        assert (found.whole, found.reason[:19]) == (False, "not well-formed XML")
        assert paths(found) == [str(number) for number in range(len(found.children))]
        assert len(found.children) > end // 60


@pytest.mark.parametrize("end", [-1, -9, 5_000])
def test_cut_compression_is_reported(end: int) -> None:
    """A sitemap whose compression is cut or damaged is not whole."""
    body = OPEN + entries(*map(str, random.Random(1).sample(range(10**9), 3_000))) + b"</urlset>"
    packed = gzip.compress(body)
    found = parsed(packed[:end])
    assert not found.whole
    assert found.reason
    damaged = bytearray(packed)
    damaged[len(packed) // 2] ^= 0xFF
    assert not parsed(bytes(damaged)).whole


def test_entities_are_refused() -> None:
    """A document that declares entities gives no children and a reason, however much they would grow to."""
    bomb = b'<!DOCTYPE urlset [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;">]>'
    found = parsed(OPEN.replace(b"<urlset", bomb + b"<urlset") + b"<url><loc>&c;</loc></url></urlset>")
    assert (found.children, found.whole, found.reason) == ((), False, "a listing that declares entities")
    external = b'<!DOCTYPE feed [<!ENTITY x SYSTEM "file:///etc/passwd">]><feed><entry><link href="&x;"/></entry></feed>'
    assert parsed(external, SITE + "feed.atom").children == ()


def test_endless_listings_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limits of children, of bytes, and of elements in one entry, a listing is not whole, and the reason says why."""
    monkeypatch.setattr(sitemap, "MAX_CHILDREN", 10)
    found = parsed("".join(f"{SITE}{number}\n" for number in range(50)).encode())
    assert (len(found.children), found.whole, found.reason) == (10, False, "more than 10 children")
    monkeypatch.setattr(_elements, "MAX_BYTES", 1_000)
    found = parsed(gzip.compress(OPEN + b" " * 5_000 + entries("a") + b"</urlset>"))
    assert (found.children, found.reason) == ((), "a listing of more than 1,000 bytes")
    monkeypatch.setattr(_elements, "MAX_BYTES", 1 << 20)
    monkeypatch.setattr(_elements, "MAX_INSIDE", 100)
    found = parsed(OPEN + entries("a") + b"<url>" + b"<x/>" * 2_000)
    assert (paths(found), found.reason) == (["a"], "more than 100 elements in one entry")


def test_names_with_line_ends_and_dots_are_canonical() -> None:
    """Line ends within an address vanish, and dots stay within the host (URL Standard); what has no address is left out."""
    found = parsed(OPEN + entries("a\r\nb", "x/../../../c", "%0d%0aHost: evil") + b"<url><loc>ftp://[</loc></url></urlset>")
    assert paths(found) == ["ab", "c", "%0D%0AHost:%20evil"]


def test_feed_without_links_is_an_empty_listing() -> None:
    """A feed whose entries have no address gives no children, and is whole."""
    found = parsed(b"<rss><channel><item><title>t</title></item></channel></rss>", SITE + "feed")
    assert (found.children, found.coverage, found.whole) == ((), "rolling", True)


def test_damage_of_a_feed_is_read_over() -> None:
    """A feed with an undefined entity and without its end gives its entries."""
    body = b"<rss><channel><item><title>a &nbsp; b</title><link>https://www.example.org/1</link></item>"
    assert paths(parsed(body, SITE + "feed")) == ["1"]


@given(st.binary(max_size=300), st.sampled_from([OPEN, b"<rss>", b"<feed>", b"https://a.example/\n", gzip.compress(OPEN)[:-9]]))
def test_any_bytes_give_a_listing_or_a_value_error(body: bytes, start: bytes) -> None:
    """No body raises anything but ValueError, and the reason of one that is damaged is short."""
    for module in (sitemap, feed):
        with suppress(ValueError):
            assert len(module.parse(io.BytesIO(start + body), SITE).reason) <= 200


# ---- as objects -----------------------------------------------------------------------------------------------------


def events(records: list[Any]) -> list[CrawlEvent]:
    """Return the discovered events of an object."""
    return [record for record in records if isinstance(record, CrawlEvent) and record.kind == "discovered"]


def test_children_are_grouped_by_host_and_cover_all_digests(run: Run) -> None:
    """A sitemap gives its summary and, for each host, slices that cover all digests; marks and kinds are those of the sitemap."""
    body = OPEN + b"".join(f"<url><loc>{SITE}{n}</loc><lastmod>{n}</lastmod></url>".encode() for n in range(1_500))
    body += b"<url><loc>http://b.example/x</loc></url></urlset>"
    records = run(body, SITE + "sitemap.xml", root=ROOT, depth=1)
    assert isinstance(records[-1], Complete)
    assert [r.type for r in records if isinstance(r, Summary)] == ["XML"]
    own, more, other = events(records)
    assert [e.coverage for e in (own, more, other)] == ["open"] * 3
    assert (own.host, more.host, other.host) == (SITE[:-1], SITE[:-1], "http://b.example")
    assert [(e.span.low == b"", e.span.is_last) for e in (own, more, other) if e.span] == [
        (True, False),
        (False, True),
        (True, True),
    ]
    assert {link.url: link.mark for e in (own, more) for link in e.links} == {f"{SITE}{n}": str(n) for n in range(1_500)}
    assert (own.depth, own.version, own.root, own.url) == (1, 7, ROOT, SITE + "sitemap.xml")


def test_empty_sitemap_covers_its_own_host(run: Run) -> None:
    """A sitemap without URLs still says that none is listed."""
    (event,) = events(run(OPEN + b"</urlset>", SITE + "sitemap.xml", root=ROOT))
    assert (event.host, event.links, event.coverage) == (SITE[:-1], (), "open")
    assert event.span is not None
    assert event.span.is_whole


def test_damaged_sitemap_is_rejected_once_and_removes_nothing(run: Run) -> None:
    """A sitemap that cannot be read to its end is rejected with a reason, and its children roll on."""
    records = run(OPEN + entries(*map(str, range(99))) + b"<url><loc>", SITE + "sitemap.xml", root=ROOT)
    (rejected,) = (record for record in records if isinstance(record, Rejected))
    (summary,) = (record for record in records if isinstance(record, Summary))
    assert rejected.reason.startswith("not well-formed XML")
    assert summary.attributes["reason"] == (rejected.reason,)
    assert isinstance(records[-1], Partial)
    assert {event.coverage for event in events(records)} == {"rolling"}
    assert sum(len(event.links) for event in events(records)) > 80


@pytest.mark.parametrize(("depth", "as_listing", "listed"), [(0, False, True), (2, True, True), (2, False, False)])
def test_feed_is_a_listing_where_one_is_expected(run: Run, depth: int, as_listing: bool, listed: bool) -> None:
    """A feed is read as a listing if it is the root or was requested as one; otherwise it is a document as before."""
    body = (SAMPLES / "feed.rss").read_bytes()
    found = events(run(body, SITE + "feed.rss", root=ROOT, depth=depth, as_listing=as_listing))
    assert [event.coverage for event in found] == ["rolling"] * listed


def test_page_where_a_listing_is_expected_is_a_page(run: Run) -> None:
    """A server that answers with a page for a missing sitemap gives the page and its links, and no listing."""
    page = b"<!doctype html><html><a href='/x'>x</a></html>"
    (event,) = events(run(page, SITE + "sitemap", root=ROOT, depth=1, as_listing=True, content_type="text/html"))
    assert (event.span, event.coverage, [link.url for link in event.links]) == (None, "", [SITE + "x"])


def test_nofollow_and_local_files_make_no_listing(run: Run) -> None:
    """A sitemap under nofollow names nothing, nor does one on the disk."""
    body = OPEN + entries("a") + b"</urlset>"
    assert not events(run(body, SITE + "sitemap.xml", root=ROOT, headers={"x-robots-tag": "nofollow"}))
    assert not events(run(body, "file:///d/sitemap.xml"))


@pytest.mark.parametrize("as_listing", [True, False])
def test_gone_sitemap_has_no_children(run: Run, as_listing: bool) -> None:
    """Where a sitemap is gone, its own host learns that nothing is listed; a page that is gone has no such event."""
    records = run(b"", SITE + "sitemap.xml", outcome="gone", root=None, as_listing=as_listing)
    assert [(e.links, e.coverage, e.span and e.span.is_whole) for e in events(records)] == [((), "open", True)] * as_listing
    assert isinstance(records[-1], Complete)
