"""Searching by mouse, with the script and without it."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.sinks.gateway.browser.visits import Visits

pytestmark = pytest.mark.xdist_group("browser")

both = pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])


def search(page: Page, text: str, *, script: bool) -> None:
    """Type a query into the field; without the script, also send the form."""
    field = page.get_by_label("Search", exact=True)
    field.fill("")
    field.press_sequentially(text)
    if not script:
        field.press("Enter")


def state(page: Page) -> list[tuple[str, str]]:
    """Return the parameters of the URL."""
    return parse_qsl(urlsplit(page.url).query)


def heading(page: Page, text: str) -> None:
    """Wait until the first heading begins with a text."""
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile(rf"^\s*{re.escape(text)}\b"))


def facet(page: Page, value: str, total: int) -> Locator:
    """Return the link of a value of a facet, by what a screen reader says of it."""
    refine = page.get_by_role("complementary", name="Refine")
    return refine.get_by_role("link", name=re.compile(rf"^{re.escape(value)} : {total}$"))


def choose_order(page: Page, name: str) -> None:
    """Choose an order of the hits from its menu."""
    page.locator(".menu summary").filter(has_text="Order").click()
    page.locator(".menu").get_by_role("link", name=name).click()


@both
def test_typing_finds_hits(visits: Visits, script: bool) -> None:
    """With the script, hits and the URL follow what is typed without another page; without it, Enter leads to them."""
    page = visits.open(java_script_enabled=script)
    if script:
        page.evaluate("window.stays = true")
    search(page, "krill", script=script)
    heading(page, "62 summaries")
    expect(page.locator(".hit")).to_have_count(10)
    expect(page.locator(".hit h2").first).to_have_text("Krill in numbers")
    expect(page.locator(".hit mark").first).to_have_text("Krill")
    assert state(page) == [("q", "krill")]
    expect(page).to_have_title("krill – Harvest")
    if script:
        search(page, "krill leviathan", script=script)
        heading(page, "31 summaries")
        assert state(page) == [("q", "krill leviathan")]
        assert page.evaluate("window.stays")


@both
def test_facets_refine_and_exclude(visits: Visits, script: bool) -> None:
    """A facet leads to as many hits as it counts; `not` leads to the others; both are undone by another click."""
    page = visits.open("?q=krill", java_script_enabled=script)
    facet(page, "PDF", 31).click()
    heading(page, "31 summaries")
    assert state(page) == [("q", "krill"), ("type", "PDF")]
    expect(page.locator(".facts .type")).to_have_text(["PDF"] * 10)
    facet(page, "PDF (chosen)", 31).click()
    heading(page, "62 summaries")
    row = page.locator("#facets li").filter(has_text="PDF")
    row.hover()
    row.get_by_role("link", name="not PDF").click()
    heading(page, "31 summaries")
    assert state(page) == [("q", "krill"), ("not-type", "PDF")]
    expect(page.locator(".facts .type")).to_have_text(["RawText"] * 10)
    page.get_by_role("link", name="Remove Not type: PDF").click()
    heading(page, "62 summaries")
    assert state(page) == [("q", "krill")]


@both
def test_two_values_of_a_facet_are_chosen_together(visits: Visits, script: bool) -> None:
    """A second value of a facet adds to the first one, and the count of a value that is not chosen stays what a click gives."""
    page = visits.open("?q=krill&type=PDF", java_script_enabled=script)
    facet(page, "RawText", 31).click()
    heading(page, "62 summaries")
    assert state(page) == [("q", "krill"), ("type", "PDF"), ("type", "RawText")]
    page.get_by_role("link", name="any type").click()
    heading(page, "62 summaries")
    assert state(page) == [("q", "krill")]


@both
def test_hits_are_sorted(visits: Visits, script: bool) -> None:
    """The menu of orders sorts the hits, keeps the query, and names the order in force."""
    page = visits.open("?q=krill", java_script_enabled=script)
    choose_order(page, "Oldest first")
    expect(page.locator(".facts time").first).to_have_text("1999-05-05")
    assert state(page) == [("q", "krill"), ("sort", "oldest")]
    choose_order(page, "Newest first")
    expect(page.locator(".facts time").first).to_have_text("2024-03-05")
    expect(page.locator(".menu summary").first).to_contain_text("Newest first")


@both
def test_date_form_narrows(visits: Visits, script: bool) -> None:
    """A year in the form keeps the documents of that time; what is no date is left out with a message, and hits are shown."""
    page = visits.open("?q=krill&sort=oldest", java_script_enabled=script)
    dates = page.locator("form.dates")
    dates.get_by_label("From").fill("2000")
    dates.get_by_role("button").click()
    heading(page, "31 summaries")
    assert dict(state(page)) == {"q": "krill", "sort": "oldest", "from": "2000"}
    expect(page.locator(".facts time")).to_have_text(["2024-03-05"] * 10)
    dates.get_by_label("From").fill("yesterday")
    dates.get_by_label("From").press("Enter")
    heading(page, "62 summaries")
    expect(page.locator(".notice")).to_contain_text("From 'yesterday': a year, a month or a day that exists is expected")


@both
def test_back_and_forward_show_what_was_there(visits: Visits, script: bool) -> None:
    """Each search is an entry of the history: Back and Forward show its query and its hits."""
    page = visits.open(java_script_enabled=script)
    field = page.get_by_label("Search", exact=True)
    for text in ("krill", "leviathan nantucket"):
        search(page, text, script=script)
        if script:
            field.press("Enter")
        expect(page).to_have_title(f"{text} – Harvest")
        expect(page.locator("[aria-busy]")).to_have_count(0)
    heading(page, "No summary found")
    page.go_back()
    heading(page, "62 summaries")
    expect(field).to_have_value("krill")
    expect(page.locator(".hit h2").first).to_have_text("Krill in numbers")
    page.go_back()
    heading(page, "156 summaries to search")
    expect(field).to_have_value("")
    page.go_forward()
    heading(page, "62 summaries")
    expect(field).to_have_value("krill")


@both
def test_summary_and_member_are_fetched(visits: Visits, script: bool) -> None:
    """A hit leads to its summary, with all attributes; Download gives the member's bytes under its name; Back leads to the hits."""
    page = visits.open("?q=krill&sort=url", java_script_enabled=script)
    page.locator(".hit h2 a").first.click()
    heading(page, "A member about a whale")
    expect(page.get_by_role("row", name="keywords")).to_contain_text("leviathan")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    assert download.value.suggested_filename == "whale.txt"
    assert Path(download.value.path()).read_bytes() == b"the bytes of a member"
    page.go_back()
    heading(page, "62 summaries")


@both
def test_pages_follow_each_other(visits: Visits, script: bool) -> None:
    """The links below the hits lead to the next page and to the last one, whose hits are numbered on."""
    page = visits.open("?q=krill", java_script_enabled=script)
    page.get_by_role("link", name="Next").click()
    expect(page.locator("ol.hits")).to_have_attribute("start", "11")
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Page 7").click()
    expect(page.locator(".hit")).to_have_count(2)
    assert state(page) == [("q", "krill"), ("page", "7")]


@both
def test_mistake_in_a_query_is_shown(visits: Visits, script: bool) -> None:
    """A query with a mistake shows its place, and still the hits of what was understood."""
    page = visits.open(java_script_enabled=script)
    search(page, "krill AND (leviathan", script=script)
    shown = page.locator(".notice code").first
    expect(shown).to_have_text("krill AND  (the mistake is here) (leviathan")
    expect(shown.locator(".spot")).to_have_text("(the mistake is here) (leviathan")
    heading(page, "31 summaries")
    expect(page.locator(".hit")).to_have_count(10)


@both
def test_misspelt_word_is_corrected(visits: Visits, script: bool) -> None:
    """A word that no summary has leads to the one that was meant, by one click."""
    page = visits.open("?q=leviathn", java_script_enabled=script)
    page.locator(".spelling").get_by_role("link").click()
    heading(page, "62 summaries")
    assert state(page) == [("q", "leviathan")]


def test_hits_stay_while_a_word_is_incomplete(visits: Visits) -> None:
    """Half a word that finds nothing leaves the hits before as they are while words are proposed; a click takes one of these."""
    page = visits.open("?q=krill")
    field = page.get_by_label("Search", exact=True)
    field.press("End")
    with page.expect_response("**/results?*"):
        field.press_sequentially(" levia")
    proposed = page.get_by_role("option")
    expect(proposed).to_have_text(["leviathan"])
    expect(page.locator("[aria-busy]")).to_have_count(0)
    heading(page, "62 summaries")
    proposed.click()
    heading(page, "31 summaries")
    expect(field).to_have_value("krill leviathan ")
    expect(field).to_be_focused()
