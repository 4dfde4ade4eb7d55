"""Hostile summaries, a busy server, a path of a proxy, a token."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import Page, Route, expect

from tests.sinks.gateway.browser.places import HOSTILE, PAGES
from tests.sinks.gateway.browser.visits import Visits
from tests.sinks.gateway.serving import gateway

pytestmark = pytest.mark.xdist_group("browser")

TOKEN = "a token of the tests".replace(" ", "-")
INVADERS = """() => [
  ...document.querySelectorAll("main script, main iframe, main img, [onmouseover]"),
  ...[...document.querySelectorAll("a[href]")].filter((each) => !/^https?:$/.test(each.protocol)),
].map((each) => each.outerHTML)"""
"""Elements that the text of a summary would have made."""


@pytest.mark.parametrize("path", ["?q=hostile", HOSTILE, "expert?q=hostile", "?q=krill&like=" + HOSTILE.removeprefix("summary/")])
def test_hostile_summary_is_inert(visits: Visits, path: str) -> None:
    """Scripts, controls and URLs of scripts in a summary are text: no element, no dialog, no request to another server."""
    page = visits.open(path)
    for each in page.locator("main a:visible").all():
        each.hover()
    assert page.evaluate(INVADERS) == []
    shown = page.locator("body").inner_text()
    assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e\u2066-\u2069]", shown)


def test_hostile_summary_is_inert_as_one_types(visits: Visits) -> None:
    """Parts of the page that the script puts in are as inert; what is typed is text, too."""
    page = visits.open()
    field = page.get_by_label("Search", exact=True)
    field.press_sequentially("hostile")
    expect(page.locator(".hit h2")).to_contain_text("<script>alert(1)</script>")
    assert page.evaluate(INVADERS) == []
    field.fill('"><img src=x onerror=alert(2)> hostile')
    expect(page).to_have_title(re.compile("onerror"))
    expect(page.locator("[aria-busy]")).to_have_count(0)
    assert page.evaluate(INVADERS) == []
    page.reload()
    expect(field).to_have_value('"><img src=x onerror=alert(2)> hostile')
    assert page.evaluate(INVADERS) == []


def _busy(route: Route) -> None:
    route.fulfill(status=503, headers={"Retry-After": "1"}, body="busy")


def test_busy_server_is_a_quiet_notice(visits: Visits) -> None:
    """503 while one types leaves the hits and the field as they are, says so, and the next letter tries again."""
    visits.expect("503")
    page = visits.open("?q=krill")
    page.route("**/results?*", _busy)
    field, notice = page.get_by_label("Search", exact=True), page.locator("#notice")
    field.press("End")
    field.press_sequentially(" levia")
    expect(notice).to_have_text("No answer yet: the server is busy. Type on to try again.")
    expect(notice).to_have_role("status")
    expect(field).to_be_focused()
    expect(field).to_have_value("krill levia")
    expect(page.locator(".hit")).to_have_count(10)
    expect(page.locator("[aria-busy]")).to_have_count(0)
    page.unroute("**/results?*")
    field.press_sequentially("than")
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile(r"^\s*31 summaries\b"))
    expect(notice).to_be_hidden()


def _walk(page: Page) -> None:
    """Search, refine, open a summary, fetch its member, and go back."""
    page.get_by_label("Search", exact=True).press_sequentially("krill")
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile(r"^\s*62 summaries\b"))
    page.get_by_role("link", name=re.compile("^RawText : 31$")).click()
    page.locator(".menu summary").first.click()
    page.get_by_role("link", name="By address").click()
    page.locator(".hit h2 a").first.click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    assert Path(download.value.path()).read_bytes() == b"the bytes of a member"
    page.get_by_role("link", name="Harvest").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile(r"^\s*156 summaries to search\b"))


def test_gateway_works_below_a_path(visits: Visits, tmp_path: Path) -> None:
    """Below the path of a proxy, the whole journey and every page stay below that path."""
    visits.expect("404")
    outside: list[str] = []
    with gateway(tmp_path / "index", root_path="/find", objects=True) as (_, url):
        assert urlsplit(url).path == "/find/"
        page = visits.open(url=url)
        page.on("request", lambda request: None if request.url.startswith(url) else outside.append(request.url))
        _walk(page)
        assert urlsplit(page.url).path == "/find/"
        for path in PAGES.values():
            page.goto(path)
            outside += page.evaluate("(at) => [...document.links].map((a) => a.href).filter((a) => !a.startsWith(at))", url)
    assert [found for found in outside if urlsplit(found).netloc == urlsplit(url).netloc] == []


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_login_leads_back(visits: Visits, tmp_path: Path, script: bool) -> None:
    """Who has no token is led to the login, is told of a wrong one, and then sees the page that was asked for."""
    visits.expect("403")
    with gateway(tmp_path / "index", token=TOKEN) as (_, url):
        page = visits.open("?q=krill&type=PDF", url=url, java_script_enabled=script)
        assert urlsplit(page.url).path == "/login"
        for token in ("wrong", TOKEN):
            page.get_by_label("Token").fill(token)
            page.get_by_role("button", name="Log in").click()
            if token == "wrong":
                expect(page.get_by_role("alert")).to_have_text("This is not the token.")
        expect(page.get_by_role("heading", level=1)).to_have_text(re.compile(r"^\s*31 summaries\b"))
        assert parse_qsl(urlsplit(page.url).query) == [("q", "krill"), ("type", "PDF")]
        expect(page.get_by_label("Search", exact=True)).to_have_value("krill")
