"""The administration page in the browser: log in, act, log out; and no barriers."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from sinks.gateway.admin.routes import PAGES
from tests.sinks.gateway.browser.test_barriers import everywhere
from tests.sinks.gateway.browser.visits import Visits
from tests.sinks.gateway.serving import gateway

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.slow(20)]

TOKEN = "correct-horse-battery-staple"


@pytest.fixture(scope="module")
def administered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of the search page of a gateway with a token."""
    with gateway(tmp_path_factory.mktemp("administered") / "index", token=TOKEN) as (_, url):
        yield url


def log_in(page: Page) -> None:
    """Log in on the page that asks for the token."""
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("button", name="Log in").click()


def add(page: Page, name: str) -> None:
    """Type a root into the form of the page of roots, and send it."""
    page.get_by_label("URL, or absolute path").fill(name)
    page.get_by_role("button", name="Add").click()


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_root_is_added_paused_and_removed(visits: Visits, administered: str, script: bool) -> None:
    """With a script and without: a root is added, paused, resumed, and removed after a question; the log has it."""
    visits.expect("422")
    page = visits.open("admin/roots", url=administered, java_script_enabled=script)
    expect(page.get_by_role("heading", level=1)).to_have_text("Log in to the administration")
    log_in(page)
    expect(page.get_by_role("heading", level=1)).to_have_text("Roots")
    add(page, "http://no-such-host/")
    expect(page.get_by_role("alert")).to_contain_text("no such host")
    add(page, "http://new.example/")
    expect(page.get_by_role("status")).to_contain_text("done: add http://new.example/")
    page.get_by_role("button", name="Pause http://new.example/").click()
    expect(page.get_by_role("status")).to_have_text("done: pause http://new.example/")
    page.get_by_role("button", name="Resume http://new.example/").click()
    page.get_by_role("link", name="Remove http://new.example/").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Remove a root?")
    page.get_by_role("button", name="Remove").click()
    expect(page.get_by_role("status")).to_have_text("done: remove http://new.example/")
    expect(page.get_by_role("row", name="http://new.example/")).to_have_count(0)
    page.get_by_role("navigation", name="Administration").get_by_role("link", name="Log").click()
    expect(page.get_by_role("table")).to_contain_text("done: remove http://new.example/")
    page.get_by_role("button", name="Log out").click()
    page.goto("admin/roots")
    expect(page.get_by_role("heading", level=1)).to_have_text("Log in to the administration")


def test_form_of_another_site_is_refused(visits: Visits, administered: str) -> None:
    """A page of another origin that posts the form to this gateway, with the browser logged in, is refused and changes nothing."""
    visits.expect("401", "request to another server")
    page = visits.open("admin/roots", url=administered)
    log_in(page)
    expect(page.get_by_role("heading", level=1)).to_have_text("Roots")
    # The same machine by another name is another origin, and another site.
    elsewhere = administered.replace("127.0.0.1", "localhost")
    form = f'<form method="post" action="{administered}admin/roots/add"><input name="root" value="http://evil.example/"><button>Go</button></form>'
    page.context.route(f"{elsewhere}other", lambda route: route.fulfill(body=form, content_type="text/html"))
    page.goto(f"{elsewhere}other")
    page.get_by_role("button", name="Go").click()
    expect(page.locator("body")).to_contain_text("is needed (serve.admin_token)")
    page.goto(f"{administered}admin/roots")
    expect(page.get_by_role("heading", level=1)).to_have_text("Roots")
    expect(page.get_by_role("row", name="http://evil.example/")).to_have_count(0)


def test_rejections_are_retried(visits: Visits, administered: str) -> None:
    """One rejection, or all of a reason, is retried by its button, and the page says so."""
    page = visits.open("admin/rejected", url=administered)
    log_in(page)
    page.get_by_role("button", name="Retry file:///srv/docs/bad.pdf").click()
    expect(page.get_by_role("status")).to_have_text("done: retry file:///srv/docs/bad.pdf")
    page.get_by_role("button", name=re.compile("^Retry all of this reason ?: damaged$")).click()
    expect(page.get_by_role("status")).to_have_text("done: retry reason damaged")


def test_no_page_has_a_barrier(visits: Visits, administered: str) -> None:
    """No page of the administration has a violation of a rule of axe, in both colour schemes, on wide and narrow screens."""
    visits.expect("422")
    page = visits.open("admin", url=administered, bypass_csp=True)
    found = {"login": everywhere(page)}
    log_in(page)
    for path in (
        "admin?checks=1",
        "admin/why?url=file:///srv/docs/a",
        "admin/roots/remove?root=x",
        *(f"admin/{name}" for name in PAGES),
    ):
        page.goto(path)
        found[path] = everywhere(page)
    page.goto("admin/brokers")
    page.get_by_role("button", name="Rebuild the index of main").click()
    expect(page.get_by_role("status")).to_have_text("done: rebuild main")
    found["after a rebuild"] = everywhere(page)
    page.goto("admin/roots")
    add(page, "http://no-such-host/")
    expect(page.get_by_role("alert")).to_be_visible()
    found["a mistake"] = everywhere(page)
    assert {name: each for name, each in found.items() if each} == {}
