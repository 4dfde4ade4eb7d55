"""The page over all Brokers in the browser; barriers and narrow screens are looked for with the other pages (`places.py`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from tests.sinks.gateway.browser.chromium import FOREIGN, REFUSED
from tests.sinks.gateway.browser.test_admin import TOKEN, log_in
from tests.sinks.gateway.browser.visits import Visits
from tests.sinks.gateway.serving import gateway

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.slow(10)]


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of the search page of a gateway with a token."""
    with gateway(tmp_path_factory.mktemp("closed") / "index", token=TOKEN) as (_, url):
        yield url


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_search_is_sent_to_the_brokers(visits: Visits, script: bool) -> None:
    """From the search page to the list of Brokers, by the keyboard to hits with their Broker and who was silent, and back."""
    page = visits.open(java_script_enabled=script)
    page.get_by_role("link", name="Brokers", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Brokers")
    expect(page.get_by_role("rowheader", name="main")).to_be_visible()
    field = page.get_by_label("Search all Brokers")
    field.fill("krill")
    field.press("Enter")
    expect(page).to_have_url(re.compile(r"/brokers\?q=krill$"))
    expect(page.get_by_role("heading", level=1)).to_have_text("At least 62 summaries")
    expect(page.locator(".notice")).to_contain_text("http://silent.example/: ")
    expect(page.locator(".hit")).to_have_count(20)
    expect(page.locator(".hit .facts").first).to_contain_text("Broker: main")
    expect(page.locator(".hit .facts a")).to_have_count(0)
    expect(page.get_by_label("Search all Brokers")).to_have_value("krill")
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("Brokers")


def test_mistake_in_a_query_is_told(visits: Visits) -> None:
    """A query that is none is not searched; it stays in the field, and the Brokers are listed."""
    page = visits.open("brokers?q=(krill")
    expect(page.get_by_role("heading", level=1)).to_have_text("Not searched")
    expect(page.locator(".notice")).to_contain_text("never closed")
    expect(page.get_by_label("Search all Brokers")).to_have_value("(krill")
    expect(page.get_by_role("rowheader", name="main")).to_be_visible()


def test_brokers_are_searched_after_a_login(visits: Visits, closed: str) -> None:
    """Without the token the login is shown, and leads back to the search that was asked for."""
    page = visits.open("brokers?q=krill", url=closed)
    log_in(page)
    expect(page).to_have_url(re.compile(r"/brokers\?q=krill$"))
    expect(page.locator(".hit").first).to_be_visible()


def test_brokers_are_not_read_under_another_name(visits: Visits) -> None:
    """A site whose name means this machine, as after DNS rebinding, gets no hit from its page over all Brokers."""
    visits.expect(*REFUSED)
    page = visits.open("help")
    page.goto(f"http://{FOREIGN}:{urlsplit(visits.url).port}/brokers?q=krill")
    expect(page.locator("body")).to_contain_text("This name is not served here")
