"""A web site that changes, gathered again and again: what is fetched, what is not, and what becomes of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.samples.site_server import Site

ALLOW = ("--allow", "127.0.0.0/8", "--pause", "0", "--data", "d")


def gather(harvest: Any, *roots: str | Path, code: int = 0) -> dict[str, Any]:
    """One run; gives its closing table."""
    table: dict[str, Any] = harvest.lines("gather", *roots, *ALLOW)[0] if not code else {}
    if code:
        harvest("gather", *roots, *ALLOW, code=code)
    return table


def held(harvest: Any) -> set[str]:
    """URLs of what search finds, members left out."""
    return {hit["url"] for hit in harvest.lines("search", "*", "--data", "d", "--limit", "500") if "#" not in hit["url"]}


def test_unchanged_pages_are_asked_conditionally(harvest: Any, site: Site) -> None:
    """A second run asks for every page again, and summarizes none of them."""
    gather(harvest, site.url)
    first = set(site.asked)
    site.asked.clear()
    table = gather(harvest, site.url)
    assert table["nothing_changed"]
    assert table["summaries"] == 0
    assert {path for path in first if path in site.files} <= set(site.asked) | {"/robots.txt"}


def test_pages_that_change_vanish_and_appear(harvest: Any, site: Site) -> None:
    """A changed page is summarized again, a page that answers 404 is removed, a newly linked one is found."""
    gather(harvest, site.url)
    site.files["/wais.html"] = b"<title>WAIS</title><a href='/new.html'>new</a> zanzibar"
    site.files["/new.html"] = b"<title>New</title> ocelot"
    del site.files["/gopher.html"]
    table = gather(harvest, site.url)
    assert (table["changed"], table["added"], table["removed"]) == (1, 1, 1)
    urls = held(harvest)
    assert site.url + "new.html" in urls
    assert site.url + "gopher.html" not in urls
    assert [h["url"] for h in harvest.lines("search", "zanzibar", "--data", "d")] == [site.url + "wais.html"]


def test_robots_forbid_from_now_on(harvest: Any, site: Site) -> None:
    """What robots.txt forbids is not asked for, and the refusal is an event with its reason."""
    gather(harvest, site.url)
    assert not [path for path in site.asked if path.startswith("/private/")]
    told = harvest("why", site.url + "private/draft.html", "--data", "d").stdout
    assert "robots.txt" in told


@pytest.mark.parametrize("link", ["file:///etc/passwd", "http://169.254.169.254/latest/", "http://0x7f.1:9/", "gopher://x/"])
def test_links_that_lead_elsewhere(harvest: Any, site: Site, link: str) -> None:
    """No page leads a Gatherer to the file system, to another server or to an address of the inside."""
    site.files["/"] = f"<title>Trap</title><a href='{link}'>x</a> <a href='/wais.html'>y</a>".encode()
    gather(harvest, site.url)
    assert held(harvest) <= {site.url + path.lstrip("/") for path in site.files}


def test_a_pause_without_end(harvest: Any, site: Site) -> None:
    """A Crawl-delay that nobody could wait for is cut to a minute, and the user is told why nothing happens."""
    site.files |= {"/": b"<title>Alone</title>", "/robots.txt": b"User-agent: *\nCrawl-delay: 9999999999\n"}
    told = harvest("gather", site.url, *ALLOW).stderr
    assert f"{site.url.rstrip('/')}: its robots.txt asks for a pause; 60 s are kept between requests\n" in told


def test_a_server_that_fails_for_a_while(harvest: Any, site: Site) -> None:
    """While a server does not answer, nothing that is known of it is removed."""
    gather(harvest, site.url)
    before = held(harvest)
    site.fail = True
    gather(harvest, site.url, code=1)
    assert held(harvest) == before
    site.fail = False
    assert gather(harvest, site.url)["nothing_changed"]


def test_what_was_gone_comes_back(harvest: Any, site: Site) -> None:
    """A page that was missing for a while, and one that moves elsewhere now, are found by links in pages that are as they were."""
    site.files["/"] = b"<title>Home</title><a href='/a'>x</a> <a href='/latest'>x</a>"
    site.files |= {"/a": b"<title>Aardvark</title>", "/1": b"<title>First</title>", "/2": b"<title>Second</title>"}
    site.redirects["/latest"] = "/1"
    gather(harvest, site.url)
    there = {site.url + path for path in ("", "a", "1")}
    assert held(harvest) == there
    body = site.files.pop("/a")
    assert gather(harvest, site.url)["removed"] == 1
    table = gather(harvest, site.url)
    assert (table["nothing_changed"], table["dead_links"]) == (True, 1)
    site.files["/a"] = body
    site.redirects["/latest"] = "/2"
    assert gather(harvest, site.url)["added"] == 2
    assert held(harvest) == there | {site.url + "2"}


def test_a_root_that_moves_without_end(harvest: Any, site: Site) -> None:
    """A chain of redirects ends after ten, run after run; the root has failed, and every move is told."""
    for _ in range(2):
        site.asked.clear()
        told = harvest("gather", site.url + "moves/0", *ALLOW, "--depth", "1", code=1)
        assert "moved too often" in told.stderr
        assert len(set(site.asked) - {"/robots.txt"}) == 11
    assert f"moved to {site.url}moves/2" in harvest("why", site.url + "moves/1", "--data", "d").stdout
    assert harvest.lines("rejected", "list", "--data", "d")[0]["reason"] == "moved too often"


def test_a_circle_of_redirects(harvest: Any, site: Site) -> None:
    """Pages that move to each other are rejected, not lost; one that two ways lead to by moves is no circle."""
    site.files["/"] = b"<a href='/a'>x</a> <a href='/c'>x</a> <a href='/d'>x</a>"
    site.redirects |= {"/a": "/b", "/b": "/a", "/c": "/d", "/d": "/wais.html"}
    for _ in range(3):
        site.asked.clear()
        gather(harvest, site.url)
        assert site.url + "wais.html" in held(harvest)
        letters = {letter["url"]: letter["reason"] for letter in harvest.lines("rejected", "list", "--data", "d")}
        assert set(letters) <= {site.url + "a", site.url + "b"}
        assert set(letters.values()) == {"moved in a circle"}
        assert site.asked.count("/a") + site.asked.count("/b") <= 4
    site.redirects["/b"] = "/essence.html"
    gather(harvest, site.url)
    assert not harvest.lines("rejected", "list", "--data", "d")
    assert f"moved to {site.url}essence.html" in harvest("why", site.url + "b", "--data", "d").stdout


def test_ways_that_meet(harvest: Any, site: Site) -> None:
    """A second way into a chain of redirects is no reason to reject what the first has found, though both together are too long."""
    site.files["/"] = b"<a href='/c0'>x</a> <a href='/x0'>x</a>"
    site.files["/end"] = b"<title>End</title>"
    site.redirects |= {f"/c{n}": f"/c{n + 1}" for n in range(8)} | {f"/x{n}": f"/x{n + 1}" for n in range(4)}
    site.redirects |= {"/c8": "/end", "/x4": "/c0"}
    gather(harvest, site.url)
    assert site.url + "end" in held(harvest)
    assert not harvest.lines("rejected", "list", "--data", "d")


def test_a_shorter_way(harvest: Any, site: Site) -> None:
    """What was the end of a chain too long is fetched by the next run once a page links to it."""
    site.files["/"] = b"<a href='/moves/0'>x</a>"
    gather(harvest, site.url)
    site.asked.clear()
    site.files["/"] = b"<a href='/moves/10'>x</a>"
    gather(harvest, site.url)
    assert "/moves/11" not in site.asked
    site.asked.clear()
    gather(harvest, site.url)
    assert "/moves/11" in site.asked


def test_pages_that_move_count(harvest: Any, site: Site) -> None:
    """What moved counts against the limit of its root, and a link to a chain without end is rejected with the reason."""
    site.files["/"] = b"".join(b"<a href='/moves/%d000'>x</a>" % n for n in range(1, 9))
    gather(harvest, site.url, "--max-urls", "20")
    asked = [path for path in site.asked if path.startswith("/moves/")]
    assert len(asked) == len(set(asked)) == 19
    gather(harvest, site.url, "--max-urls", "200")
    reasons = [letter["reason"] for letter in harvest.lines("rejected", "list", "--data", "d")]
    assert reasons == ["moved too often"] * 8


def test_a_removed_root_leaves_the_others(harvest: Any, site: Site, tree: Path) -> None:
    """A root that is removed takes with it what it alone asked for."""
    gather(harvest, site.url, tree)
    harvest("roots", "remove", site.url, "--data", "d")
    gather(harvest, tree)
    assert held(harvest)
    assert not {url for url in held(harvest) if url.startswith("http:")}


def test_links_that_lead_nowhere(harvest: Any, site: Site) -> None:
    """A dead link is counted, and what moved is none, and tells where to."""
    site.files["/"] = b"<title>Links</title><a href='/none.html'>x</a> <a href='/old/harvest.html'>y</a>"
    for path in set(site.files) - {"/", "/robots.txt", "/harvest.html"}:
        del site.files[path]
    site.files["/harvest.html"] = b"<title>Harvest</title>"
    assert re.search(r"(?m)^links that lead nowhere +1$", harvest("gather", site.url, *ALLOW).stderr)
    assert f"moved to {site.url}harvest.html" in harvest("why", site.url + "old/harvest.html", "--data", "d").stdout
