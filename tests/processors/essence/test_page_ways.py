"""Ways from a page to others, beside its links: refreshes, next and canonical pages, feeds, embedded documents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from processors.essence.formats.refresh import refresh_target
from processors.essence.stage import Output
from schemas.records import CrawlEvent, Root, Summary

Run = Callable[..., list[Output]]
URL = "http://example.org/dir/page.html?x=1"


@pytest.fixture
def ways(run: Run) -> Callable[..., tuple[list[str], Summary]]:
    """Function from the head and body of a page to the URLs that the frontier gets, and the page's summary."""

    def find(marked: str, url: str = URL, **fields: Any) -> tuple[list[str], Summary]:
        fields = {"root": Root(url="http://example.org/", run="r1"), "content_type": "text/html"} | fields
        records = run(f"<!doctype html><html>{marked}".encode(), url, **fields)
        links = [link.url for event in records if isinstance(event, CrawlEvent) for link in event.links]
        return links, next(record for record in records if isinstance(record, Summary))

    return find


@pytest.mark.parametrize(
    ("value", "target"),
    [
        ("0; url=start/", "start/"),
        ("0;URL='start/'", "start/"),
        ('5 , Url = "a b\'c" and more', "a b'c"),
        ("0; url='never closed", "never closed"),
        ("0;start/", "start/"),
        ("0 start/", "start/"),
        (" 0.5.1;\n'start/'x", "start/"),
        (".;start/", "start/"),
        ("0; uplink/", "uplink/"),
        ("0; url", "url"),
        ("0; urls=x", "urls=x"),
        ("0;;a", ";a"),
        ("0", ""),
        ("0; ", ""),
        ("0; url=", ""),
        ("0; url=''", ""),
        ("", ""),
        ("url=start/", ""),
        ("; url=start/", ""),
        ("-1; url=start/", ""),
        ("0x; url=start/", ""),
        ("0url=start/", ""),
        ("\u0660; url=start/", ""),
        ("0" * 100_000 + "; url=start/", ""),
        ("0" + " " * 100_000, ""),
    ],
)
def test_refresh_is_parsed_as_browsers_do(value: str, target: str) -> None:
    """The target of a refresh is what the steps of the HTML standard (4.2.5.3) yield."""
    assert refresh_target(value) == target


@pytest.mark.parametrize(
    ("marked", "url"),
    [
        ('<meta http-equiv="refresh" content="0; url=start/">', "http://example.org/dir/start/"),
        ('<META HTTP-EQUIV="Refresh" name=x CONTENT="3;/start#top">', "http://example.org/start"),
        ('<base href="/b/"><noscript><meta http-equiv=refresh content="0;\'start\'"></noscript>', "http://example.org/b/start"),
        ('<link rel="next" href="?page=2">', "http://example.org/dir/page.html?page=2"),
        ('<link rel="NEXT prefetch" href="2.html">', "http://example.org/dir/2.html"),
        ('<link rel="alternate" type="application/rss+xml" title="News" href="/feed">', "http://example.org/feed"),
        ('<link rel="feed alternate" type="Application/Atom+XML; charset=utf-8" href="/feed">', "http://example.org/feed"),
        ('<link rel="alternate" type="application/feed+json" href="/feed.json">', "http://example.org/feed.json"),
        ('<link rel="canonical" href="/dir/">', "http://example.org/dir/"),
        ('<body><embed type="application/pdf" src="a.pdf">', "http://example.org/dir/a.pdf"),
        ('<body><object data="a.pdf#page=2">no viewer</object>', "http://example.org/dir/a.pdf"),
    ],
)
def test_ways_to_other_pages_are_links(marked: str, url: str, ways: Callable[..., tuple[list[str], Summary]]) -> None:
    """The frontier gets the targets of refreshes, of next and canonical pages, of feeds and of embedded documents."""
    links, summary = ways(marked)
    assert links == [url]
    assert summary.attributes["url-references"] == (url,)


@pytest.mark.parametrize(
    "marked",
    [
        '<meta http-equiv="refresh" content="30">',
        '<meta http-equiv="refresh">',
        '<meta name="refresh" content="0; url=start/">',
        '<meta http-equiv="refresh" content="0; url=javascript:x()">',
        '<meta http-equiv="refresh" content="0; url=page.html?x=1">',
        '<meta http-equiv="refresh" content="0; url=file:///etc/passwd">',
        '<meta name=robots content=nofollow><meta http-equiv="refresh" content="0; url=start/"><link rel=canonical href=a>',
        '<link rel="alternate" hreflang="de" href="/de">',
        '<link rel="alternate stylesheet" type="text/css" href="/x.css">',
        '<link rel="stylesheet" href="/x.css"><link rel="icon" href="x.png"><link href="a"><link rel="next">',
        '<link rel="canonical" href="http://example.org/dir/./%70age.html?x=1#top">',
        '<body><object data="data:text/plain,x"></object><embed><object></object>',
    ],
)
def test_other_references_are_not_links(marked: str, ways: Callable[..., tuple[list[str], Summary]]) -> None:
    """A page that reloads itself, style sheets, pictures, translations and what is malformed or forbidden are no links."""
    assert ways(marked)[0] == []


@pytest.mark.parametrize("media", ["text/html", "text/plain", "application/pdf"])
def test_refresh_header_is_link(media: str, ways: Callable[..., tuple[list[str], Summary]], run: Run) -> None:
    """The target of a response's Refresh header is a link, whatever the type of the document, and also if it is empty."""
    assert ways("", headers={"refresh": "0; url=../start"}, content_type=media)[0] == ["http://example.org/start"]
    records = run(
        b"", URL, root=Root(url="http://example.org/", run="r1"), headers={"refresh": "0; url=../start"}, content_type=media
    )
    assert [event.links[0].url for event in records if isinstance(event, CrawlEvent)] == ["http://example.org/start"]
    assert ways("", headers={"refresh": "60"}, content_type=media)[0] == []


@pytest.mark.parametrize(
    ("href", "url"),
    [
        ("/dir/", "http://example.org/dir/"),
        ("//EXAMPLE.org:80/a/../dir/page%2Ehtml#x", "http://example.org/dir/page.html"),
        (" page.html ", "http://example.org/dir/page.html"),
        ("https://example.org/dir/", "https://example.org/dir/"),
        ("http://other.example/dir/", ""),
        (URL, ""),
        ("", ""),
        ("#top", ""),
        ("http://[", ""),
        ("mailto:a@example.org", ""),
        ("/" + "a" * 3_000, ""),
    ],
)
def test_canonical_page_of_same_host_is_attribute(href: str, url: str, ways: Callable[..., tuple[list[str], Summary]]) -> None:
    """The canonical URL of another page of the same host is an attribute (RFC 6596); only the first of several counts."""
    summary = ways(f'<link rel="Canonical" href="{href}"><link rel=canonical href=/second>')[1]
    assert summary.attributes.get("canonical-url", ()) == ((url,) if url else ("http://example.org/second",) if not href else ())
