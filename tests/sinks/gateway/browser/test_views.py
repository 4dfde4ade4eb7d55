"""The tree of views in the browser, and saving a search as a view."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.sinks.gateway.browser.test_admin import TOKEN, log_in
from tests.sinks.gateway.browser.test_barriers import everywhere
from tests.sinks.gateway.browser.test_keyboard import NAME
from tests.sinks.gateway.browser.test_looks import NARROW, WIDER
from tests.sinks.gateway.browser.visits import Visits
from tests.sinks.gateway.serving import gateway

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.slow(20)]

SCRIPT = pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])


@pytest.fixture(scope="module")
def secret(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of the search page of a gateway with a token."""
    with gateway(tmp_path_factory.mktemp("views") / "index", token=TOKEN) as (_, url):
        yield url


def count(page: Page) -> int:
    """Return the number of hits that the page states."""
    found = re.search(r"^\s*([\d,]+) summar", page.get_by_role("heading", level=1).inner_text())
    assert found is not None
    return int(found[1].replace(",", ""))


@SCRIPT
def test_tree_leads_to_what_it_counts(visits: Visits, script: bool) -> None:
    """With a script and without: views are unfolded, chosen and left; each has the hits that it states."""
    page = visits.open(java_script_enabled=script)
    tree = page.locator(".tree")
    below = tree.get_by_role("link", name=re.compile(r"^dated ?: "))
    expect(below).to_be_hidden()
    tree.get_by_text("1 below").click()
    expect(below).to_be_visible()
    for name, query in (
        (r"^sea ?: ", "view:sea"),
        (r"^dated ?: ", "view:sea/dated"),
        (r"^Small animals ?: ", 'view:"Small animals"'),
    ):
        link = tree.get_by_role("link", name=re.compile(name))
        if not link.is_visible():
            tree.get_by_text("1 below").click()
        stated = int(re.sub(r"\D", "", link.inner_text()))
        link.click()
        expect(page.get_by_label("Search", exact=True)).to_have_value(query)
        expect(tree.locator("[aria-current]")).to_have_count(1)
        assert count(page) == stated > 0
    tree.get_by_role("link", name="any view").click()
    expect(page.get_by_label("Search", exact=True)).to_have_value("")
    expect(tree.locator("[aria-current]")).to_have_count(0)


def test_tree_follows_what_is_typed(visits: Visits) -> None:
    """While one types, the counts follow; what was unfolded stays so, and the views above the scope are open."""
    page = visits.open("?q=whale")
    tree, field = page.locator(".tree"), page.get_by_label("Search", exact=True)
    tree.get_by_text("1 below").click()
    dated = tree.get_by_role("link", name=re.compile(r"^dated ?: "))
    before = dated.inner_text()
    field.press("End")
    field.press_sequentially(" nantucket")
    expect(dated).not_to_have_text(re.compile(re.escape(before.split()[-1]) + "$"))
    expect(dated).to_be_visible()
    field.fill("view:sea/dated ship")
    expect(tree.locator("[aria-current]")).to_have_text(re.compile("^dated"))
    expect(tree.locator("[aria-current]")).to_be_visible()


def test_tree_works_by_keyboard(visits: Visits) -> None:
    """Views and their folds are reached by Tab, and opened by Enter."""
    page = visits.open("?q=whale")
    page.locator(".tree a").first.focus()
    page.keyboard.press("Tab")
    assert str(page.evaluate(NAME)).split() == ["1", "below", "sea"]
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name=re.compile(r"^dated ?: "))).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Search", exact=True)).to_have_value("view:sea/dated whale")


def test_feeds_of_a_view_are_read(visits: Visits) -> None:
    """A search in a view leads to an Atom feed and to SOIF of the view."""
    page = visits.open("?q=view:sea/dated+ship")
    feed = page.get_by_role("link", name="Atom feed of the view")
    answer = page.request.get(str(feed.evaluate("each => each.href")))
    assert (answer.status, answer.headers["content-type"]) == (200, "application/atom+xml")
    with page.expect_download() as sent:
        page.get_by_role("link", name="SOIF export of the view").click()
    assert sent.value.suggested_filename == "harvest.soif"


@SCRIPT
def test_search_is_saved_as_a_view(visits: Visits, secret: str, script: bool) -> None:
    """With a script and without: who logs in saves the search below its view; a mistake is a line, with what was typed."""
    visits.expect("422")
    page = visits.open("?q=view:sea+krill", url=secret, java_script_enabled=script)
    log_in(page)
    page.get_by_role("link", name="Save this search as a view").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Log in to the administration")
    log_in(page)
    expect(page.get_by_label("Query")).to_have_value("krill")
    expect(page.get_by_label("Below the view")).to_have_value("sea")
    title, save = page.get_by_label("Title"), page.get_by_role("button", name="Save")
    title.fill("a/b")
    save.click()
    expect(page.get_by_role("alert")).to_contain_text("Title: has a slash")
    expect(page.get_by_label("Query")).to_have_value("krill")
    title.fill(f"Food {script}")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_have_text(f"done: save main sea/Food {script} krill")
    page.get_by_role("link", name=f"sea/Food {script}", exact=True).click()
    expect(page.get_by_label("Search", exact=True)).to_have_value(f'view:"sea/Food {script}"')


def test_view_is_not_saved_by_another_site(visits: Visits, secret: str) -> None:
    """A form of another site, sent by a browser that is logged in, saves nothing; neither does one without a login."""
    visits.expect("401", "request to another server")
    page = visits.open("admin/views", url=secret)
    log_in(page)
    expect(page.get_by_role("heading", level=1)).to_have_text("Views")
    elsewhere = secret.replace("127.0.0.1", "localhost")
    fields = "".join(
        f'<input name="{name}" value="{value}">'
        for name, value in (("broker", "main"), ("path", ""), ("title", "evil"), ("query", "x"))
    )
    form = f'<form method="post" action="{secret}admin/views/save">{fields}<button>Go</button></form>'
    page.context.route(f"{elsewhere}other", lambda route: route.fulfill(body=form, content_type="text/html"))
    page.goto(f"{elsewhere}other")
    page.get_by_role("button", name="Go").click()
    expect(page.locator("body")).to_contain_text("is needed (serve.admin_token)")
    page.goto(f"{secret}admin/views")
    expect(page.get_by_role("heading", level=1)).to_have_text("Views")
    expect(page.get_by_role("row", name="evil")).to_have_count(0)


def test_tree_and_form_fit_the_narrowest_screen(visits: Visits, secret: str) -> None:
    """At 320 pixels neither the tree, unfolded, nor the form to save a search is wider than the screen."""
    page = visits.open("?q=view:sea/dated+ship", url=secret, **(NARROW | {"viewport": {"width": 320, "height": 600}}))
    log_in(page)
    wider = WIDER.replace("360", "320")
    for path in ("?q=view:sea/dated+ship", "./", "admin/views?query=krill&path=sea"):
        page.goto(path)
        if path.startswith("admin"):
            log_in(page)
            expect(page.get_by_label("Query")).to_have_value("krill")
        page.evaluate("for (const each of document.querySelectorAll('details:not(.menu)')) each.open = true")
        assert page.evaluate(wider) == [], path


def test_tree_and_form_have_no_barrier(visits: Visits, secret: str) -> None:
    """The tree, folded and unfolded, the link to save a search, and its form with a mistake have no violation of a rule of axe."""
    visits.expect("422")
    page = visits.open("?q=view:sea+krill", url=secret, bypass_csp=True)
    log_in(page)
    found = {}
    for path in ("?q=view:sea+krill", "?q=view:sea/dated", "./"):
        page.goto(path)
        found[path] = everywhere(page)
        page.evaluate("for (const each of document.querySelectorAll('.tree details, .refine')) each.open = true")
        found[f"{path} unfolded"] = everywhere(page)
    page.goto("admin/views?query=krill&path=sea")
    log_in(page)
    found["form"] = everywhere(page)
    page.get_by_label("Title").fill("a/b")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_be_visible()
    found["mistake"] = everywhere(page)
    assert {name: each for name, each in found.items() if each} == {}
