"""A web site that changes between runs: what is fetched, and what happens to its summaries."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from processors.frontier import outcomes
from tests.samples.site_server import Site

ALLOW = ("--allow", "127.0.0.0/8", "--pause", "0", "--data", "d")


def gather(harvest: Any, *roots: str | Path, code: int = 0) -> dict[str, Any]:
    """Run `harvest gather`; return its closing table."""
    table: dict[str, Any] = harvest.lines("gather", *roots, *ALLOW)[0] if not code else {}
    if code:
        harvest("gather", *roots, *ALLOW, code=code)
    return table


def held(harvest: Any) -> set[str]:
    """URLs of all search results, archive members left out."""
    return {hit["url"] for hit in harvest.lines("search", "*", "--data", "d", "--limit", "500") if "#" not in hit["url"]}


def test_unchanged_pages_are_fetched_conditionally(harvest: Any, site: Site) -> None:
    """A second run asks for every page again, and summarizes none of them."""
    gather(harvest, site.url)
    first = set(site.asked)
    site.asked.clear()
    table = gather(harvest, site.url)
    assert table["nothing_changed"]
    assert table["summaries"] == 0
    assert {path for path in first if path in site.files} <= set(site.asked) | {"/robots.txt"}


def test_changed_removed_and_new_pages_are_indexed(harvest: Any, site: Site) -> None:
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


def test_disallowed_urls_are_not_fetched(harvest: Any, site: Site) -> None:
    """URLs that robots.txt disallows are not fetched, and the refusal is an event with its reason."""
    gather(harvest, site.url)
    assert not [path for path in site.asked if path.startswith("/private/")]
    told = harvest("why", site.url + "private/draft.html", "--data", "d").stdout
    assert "robots.txt" in told


@pytest.mark.parametrize("link", ["file:///etc/passwd", "http://169.254.169.254/latest/", "http://0x7f.1:9/", "wais://x/"])
def test_links_to_forbidden_targets_are_not_followed(harvest: Any, site: Site, link: str) -> None:
    """No page makes a Gatherer fetch a file, another server or an internal address."""
    site.files["/"] = f"<title>Trap</title><a href='{link}'>x</a> <a href='/wais.html'>y</a>".encode()
    gather(harvest, site.url)
    assert held(harvest) <= {site.url + path.lstrip("/") for path in site.files}


def test_excessive_crawl_delay_is_cut(harvest: Any, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """An excessive Crawl-delay is cut, and a note states the reason for the wait."""
    monkeypatch.setattr(outcomes, "LONGEST_DELAY", 11.0)
    site.files |= {"/": b"<title>Alone</title>", "/robots.txt": b"User-agent: *\nCrawl-delay: 9999999999\n"}
    told = harvest("gather", site.url, *ALLOW).stderr
    assert f"{site.url.rstrip('/')}: 11 s are kept between requests (for its robots.txt, its load or its roots)\n" in told


def test_failing_server_loses_no_objects(harvest: Any, site: Site) -> None:
    """While a server fails, none of its objects are removed."""
    gather(harvest, site.url)
    before = held(harvest)
    site.fail = True
    gather(harvest, site.url, code=1)
    assert held(harvest) == before
    site.fail = False
    assert gather(harvest, site.url)["nothing_changed"]


def test_missing_page_is_found_again_by_unchanged_links(harvest: Any, site: Site) -> None:
    """A page that was missing, and the new target of a redirect, are found by links in unchanged pages."""
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


def test_redirect_chain_of_a_root_ends_after_ten(harvest: Any, site: Site) -> None:
    """A chain of redirects ends after ten in every run; the root has failed, and `why` lists every redirect."""
    for _ in range(2):
        site.asked.clear()
        told = harvest("gather", site.url + "moves/0", *ALLOW, "--depth", "1", code=1)
        assert "moved too often" in told.stderr
        assert len(set(site.asked) - {"/robots.txt"}) == 11
    assert f"moved to {site.url}moves/2" in harvest("why", site.url + "moves/1", "--data", "d").stdout
    assert harvest.lines("rejected", "list", "--data", "d")[0]["reason"] == "moved too often"


def test_circle_of_redirects_is_rejected(harvest: Any, site: Site) -> None:
    """Pages that redirect to each other are rejected, not lost; a page that two redirects lead to is no circle."""
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


def test_page_behind_a_cookie_wall_is_gathered(harvest: Any, site: Site) -> None:
    """A page that is there only with a cookie of its own redirect is gathered under its URL, and stays in the next run."""
    site.files["/"] = b"<a href='/walled'>x</a>"
    site.files["/walled"] = b"<title>Behind the wall</title><a href='/beyond'>x</a>"
    site.files["/beyond"] = b"<title>Beyond</title>"
    site.walls.add("/walled")
    gather(harvest, site.url)
    assert {site.url + "walled", site.url + "beyond"} <= held(harvest)
    site.asked.clear()
    assert gather(harvest, site.url)["nothing_changed"]
    assert site.asked.count("/walled") == 3
    assert not harvest.lines("rejected", "list", "--data", "d")
    site.files["/walled"] = b"<title>Other words</title>"
    assert gather(harvest, site.url)["changed"] == 1


def test_root_behind_a_cookie_wall_is_gathered(harvest: Any, site: Site) -> None:
    """A root may be behind a cookie wall."""
    site.walls.add("/wais.html")
    gather(harvest, site.url + "wais.html", "--depth", "0")
    assert site.url + "wais.html" in held(harvest)


def test_second_entry_to_a_chain_does_not_reject_its_end(harvest: Any, site: Site) -> None:
    """A second entry to a chain of redirects does not reject its end, though both together exceed the limit."""
    site.files["/"] = b"<a href='/c0'>x</a> <a href='/x0'>x</a>"
    site.files["/end"] = b"<title>End</title>"
    site.redirects |= {f"/c{n}": f"/c{n + 1}" for n in range(8)} | {f"/x{n}": f"/x{n + 1}" for n in range(4)}
    site.redirects |= {"/c8": "/end", "/x4": "/c0"}
    gather(harvest, site.url)
    assert site.url + "end" in held(harvest)
    assert not harvest.lines("rejected", "list", "--data", "d")


def test_end_of_a_long_chain_is_fetched_once_linked(harvest: Any, site: Site) -> None:
    """The URL behind a chain of redirects that was too long is fetched by the next run after a page links to it."""
    site.files["/"] = b"<a href='/moves/0'>x</a>"
    gather(harvest, site.url)
    site.asked.clear()
    site.files["/"] = b"<a href='/moves/10'>x</a>"
    gather(harvest, site.url)
    assert "/moves/11" not in site.asked
    site.asked.clear()
    gather(harvest, site.url)
    assert "/moves/11" in site.asked


def test_redirects_count_against_the_url_limit(harvest: Any, site: Site) -> None:
    """Redirects count against the URL limit of their root, and a link to an endless chain is rejected with the reason."""
    site.files["/"] = b"".join(b"<a href='/moves/%d000'>x</a>" % n for n in range(1, 9))
    gather(harvest, site.url, "--max-urls", "20")
    asked = [path for path in site.asked if path.startswith("/moves/")]
    assert len(asked) == len(set(asked)) == 19
    gather(harvest, site.url, "--max-urls", "200")
    reasons = [letter["reason"] for letter in harvest.lines("rejected", "list", "--data", "d")]
    assert reasons == ["moved too often"] * 8


def test_removed_root_leaves_objects_of_other_roots(harvest: Any, site: Site, tree: Path) -> None:
    """Removing a root removes the objects that no other root needs."""
    gather(harvest, site.url, tree)
    harvest("roots", "remove", site.url, "--data", "d")
    gather(harvest, tree)
    assert held(harvest)
    assert not {url for url in held(harvest) if url.startswith("http:")}


def test_dead_links_are_counted_and_redirects_are_not(harvest: Any, site: Site) -> None:
    """A dead link is counted; a redirect is not one, and `why` names its target."""
    site.files["/"] = b"<title>Links</title><a href='/none.html'>x</a> <a href='/old/harvest.html'>y</a>"
    for path in set(site.files) - {"/", "/robots.txt", "/harvest.html"}:
        del site.files[path]
    site.files["/harvest.html"] = b"<title>Harvest</title>"
    assert re.search(r"(?m)^links that lead nowhere +1$", harvest("gather", site.url, *ALLOW).stderr)
    assert f"moved to {site.url}harvest.html" in harvest("why", site.url + "old/harvest.html", "--data", "d").stdout
