"""Sitemaps and feeds of a web site that changes between runs of `harvest gather`."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from typing import Any

import pytest

from tests.samples.site_server import Site

OPTIONS = ("--allow", "127.0.0.0/8", "--pause", "0", "--data", "d")
PAGES = {f"/p{number}.html": "2024-01-01" for number in range(6)}


def page(site: Site, path: str, text: str) -> None:
    """Put a page on the site."""
    site.files[path] = f"<html><title>{path}</title><body>{text}</body></html>".encode()


def sitemap(site: Site, pages: Mapping[str, str], entry: str = "url") -> bytes:
    """Return a sitemap, or an index of sitemaps, of paths with their lastmod."""
    name = "urlset" if entry == "url" else "sitemapindex"
    entries = (f"<{entry}><loc>{site.url[:-1]}{path}</loc><lastmod>{mark}</lastmod></{entry}>" for path, mark in pages.items())
    return f'<{name} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{"".join(entries)}</{name}>'.encode()


@pytest.fixture
def trust(monkeypatch: pytest.MonkeyPatch, harvest: Any) -> Any:
    """The program, with no samples of unchanged pages."""
    monkeypatch.setenv("HARVEST_ROOTS_LASTMOD", "trust")
    return harvest


def gather(harvest: Any, site: Site, path: str = "sitemap.xml", code: int = 0) -> tuple[set[str], dict[str, Any]]:
    """Run `harvest gather`; return the requested paths and the closing table."""
    site.asked.clear()
    if code:
        harvest("gather", site.url + path, *OPTIONS, code=code)
        return set(site.asked), {}
    (table,) = harvest.lines("gather", site.url + path, *OPTIONS)
    return set(site.asked) - {"/robots.txt"}, table


def held(harvest: Any, site: Site) -> set[str]:
    """Return the paths of all search results."""
    hits = harvest.lines("search", "*", "--data", "d", "--limit", "500")
    return {hit["url"].removeprefix(site.url[:-1]) for hit in hits}


def test_pages_of_a_sitemap_are_added_changed_removed_and_listed_again(trust: Any, site: Site) -> None:
    """Each run requests the sitemap, and of its pages exactly those that are new, changed, or not listed any more."""
    pages = dict(PAGES)
    for path in pages:
        page(site, path, "whale")
    site.files["/sitemap.xml"] = sitemap(site, pages)
    assert gather(trust, site)[0] == {"/sitemap.xml", *pages}
    assert held(trust, site) >= set(pages)

    asked, table = gather(trust, site)
    assert asked == {"/sitemap.xml"}
    assert table["nothing_changed"]

    page(site, "/p1.html", "changed zanzibar")
    page(site, "/new.html", "ocelot")
    del site.files["/p2.html"], pages["/p2.html"], pages["/p3.html"]
    pages |= {"/p1.html": "2024-02-02", "/new.html": "2024-02-02"}
    site.files["/sitemap.xml"] = sitemap(site, pages)
    asked, table = gather(trust, site)
    assert asked == {"/sitemap.xml", "/p1.html", "/p2.html", "/p3.html", "/new.html"}
    assert (table["added"], table["removed"]) == (1, 1)
    assert held(trust, site) - {"/sitemap.xml"} == {*pages, "/p3.html"}
    assert [hit["url"] for hit in trust.lines("search", "zanzibar", "--data", "d")] == [site.url + "p1.html"]

    page(site, "/p2.html", "back")
    pages["/p2.html"] = "2024-03-03"
    site.files["/sitemap.xml"] = sitemap(site, pages)
    assert "/p2.html" in gather(trust, site)[0]
    assert "/p2.html" in held(trust, site)


def test_index_and_compressed_sitemaps_of_robots_txt(trust: Any, site: Site) -> None:
    """Sitemaps that robots.txt names are read with those that they name, compressed ones too; with `no` they are not."""
    for path in PAGES:
        page(site, path, "whale")
    site.files |= {
        "/robots.txt": f"User-agent: *\nSitemap: {site.url}index.xml\n".encode(),
        "/index.xml": sitemap(site, {"/maps/a.xml.gz": "2024-01-01"}, "sitemap"),
        "/maps/a.xml.gz": gzip.compress(sitemap(site, PAGES)),
    }
    asked, _ = gather(trust, site, "")
    assert asked >= {"/index.xml", "/maps/a.xml.gz", *PAGES}
    asked, table = gather(trust, site, "")
    assert table["nothing_changed"]
    assert not asked & {"/maps/a.xml.gz", *PAGES}


def test_damaged_sitemap_removes_nothing(trust: Any, site: Site) -> None:
    """A sitemap that is cut off, or that has become an XML bomb, is rejected with a reason, and its pages stay."""
    for path in PAGES:
        page(site, path, "whale")
    whole = sitemap(site, PAGES)
    site.files["/sitemap.xml"] = whole
    gather(trust, site)
    for body, reason in (
        (whole[: len(whole) // 2], "not well-formed"),
        (b'<!DOCTYPE urlset [<!ENTITY a "b">]>' + whole, "declares entities"),
    ):
        site.files["/sitemap.xml"] = body
        assert gather(trust, site)[0] == {"/sitemap.xml"}
        assert held(trust, site) >= set(PAGES)
        (letter,) = trust.lines("rejected", "list", "--data", "d")
        assert reason in letter["reason"]


def test_entries_of_a_feed_are_gathered_and_stay(trust: Any, site: Site) -> None:
    """The entries of a feed are gathered, requested again where their date changes, and stay when they roll out of it."""

    def feed(entries: Mapping[str, str]) -> bytes:
        items = (f"<item><link>{site.url[:-1]}{path}</link><pubDate>{date}</pubDate></item>" for path, date in entries.items())
        return f'<rss version="2.0"><channel><title>News</title>{"".join(items)}</channel></rss>'.encode()

    for path in PAGES:
        page(site, path, "whale")
    site.files["/feed"] = feed({"/p0.html": "1", "/p1.html": "1", "/p2.html": "1"})
    assert gather(trust, site, "feed")[0] == {"/feed", "/p0.html", "/p1.html", "/p2.html"}
    site.files["/feed"] = feed({"/p1.html": "2", "/p2.html": "1", "/p3.html": "1"})
    assert gather(trust, site, "feed")[0] == {"/feed", "/p1.html", "/p3.html"}
    assert held(trust, site) >= {"/p0.html", "/p1.html", "/p2.html", "/p3.html"}


@pytest.mark.parametrize("feeds", [True, False])
def test_feeds_that_pages_name_are_read_if_wanted(trust: Any, site: Site, monkeypatch: pytest.MonkeyPatch, *, feeds: bool) -> None:
    """With `roots.feeds`, the entries of a feed that a page names are gathered; without, the feed is a page like any other."""
    monkeypatch.setenv("HARVEST_ROOTS_FEEDS", str(feeds).lower())
    link = '<link rel="alternate" type="application/atom+xml" href="/feed.atom">'
    site.files["/start.html"] = f"<html><head><title>Start</title>{link}</head></html>".encode()
    page(site, "/p0.html", "whale")
    atom = '<feed xmlns="http://www.w3.org/2005/Atom"><title>News</title><entry><link href="p0.html"/></entry></feed>'
    site.files["/feed.atom"] = atom.encode()
    assert gather(trust, site, "start.html")[0] == {"/start.html", "/feed.atom", *(["/p0.html"] * feeds)}
