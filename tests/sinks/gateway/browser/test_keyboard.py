"""Searching by keyboard alone."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.sinks.gateway.browser.visits import Visits

pytestmark = pytest.mark.xdist_group("browser")

NAME = """() => {
  const at = document.activeElement;
  return (at.getAttribute("aria-label") ?? (at.id || at.innerText)).trim();
}"""


def focused(page: Page, *, tabs: int) -> list[str]:
    """Press Tab some times; return the names of the elements that had the focus."""
    names = []
    for _ in range(tabs):
        page.keyboard.press("Tab")
        names.append(str(page.evaluate(NAME)))
    return names


def test_whole_search_works_by_keyboard(visits: Visits) -> None:
    """From the start page to a summary and back without a mouse: type, choose a proposed word, walk the hits, open one."""
    page = visits.open()
    field, words = page.get_by_label("Search", exact=True), page.get_by_role("listbox", name="Words")
    expect(field).to_be_focused()
    page.keyboard.type("levia")
    expect(words.get_by_role("option")).to_have_text(["leviathan"])
    expect(field).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("ArrowDown")
    expect(words.get_by_role("option", selected=True)).to_have_text("leviathan")
    expect(field).to_have_attribute("aria-activedescendant", "word-0")
    page.keyboard.press("Enter")
    expect(field).to_have_value("leviathan ")
    expect(words).to_be_hidden()
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile(r"^\s*62 summaries\b"))
    page.keyboard.press("ArrowDown")
    titles = page.locator(".hit h2 a")
    expect(titles.nth(0)).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url("**/summary/*")
    page.go_back()
    expect(field).to_have_value(re.compile("^leviathan ?$"))
    expect(titles).to_have_count(10)


def test_hits_are_walked(visits: Visits) -> None:
    """The keys j and k, and the arrows, go from hit to hit and end at the last one and at the field; / leads to the field."""
    page = visits.open("?q=krill&type=PDF")
    titles, field = page.locator(".hit h2 a"), page.get_by_label("Search", exact=True)
    for key, place in (("j", 0), ("j", 1), ("ArrowDown", 2), ("k", 1), ("ArrowUp", 0)):
        page.keyboard.press(key)
        expect(titles.nth(place)).to_be_focused()
    page.keyboard.press("k")
    expect(field).to_be_focused()
    for _ in range(12):
        page.keyboard.press("Escape")
        titles.last.focus()
        page.keyboard.press("j")
    expect(titles.last).to_be_focused()
    page.keyboard.press("/")
    expect(field).to_be_focused()
    page.keyboard.type("whale")
    expect(field).to_have_value("whale")


def test_proposed_words_are_closed_by_escape(visits: Visits) -> None:
    """Escape closes the proposed words and keeps what was typed; the arrows go round the list, with the field as one place."""
    page = visits.open()
    field, words = page.get_by_label("Search", exact=True), page.get_by_role("listbox", name="Words")
    page.keyboard.type("wh")
    options = words.get_by_role("option")
    expect(options.first).to_be_visible()
    page.keyboard.press("ArrowUp")
    expect(options.last).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowDown")
    expect(field).not_to_have_attribute("aria-activedescendant", re.compile("."))
    page.keyboard.press("Escape")
    expect(words).to_be_hidden()
    expect(field).to_have_attribute("aria-expanded", "false")
    expect(field).to_have_value("wh")
    expect(field).to_be_focused()


def test_tab_follows_the_page(visits: Visits) -> None:
    """Tab goes through the page in reading order, beginning with the link that skips its head; each stop can be seen."""
    page = visits.open("?q=krill")
    names = focused(page, tabs=9)
    assert names[:5] == ["Skip to content", "Skip to the refinements", "Harvest", "q", "Search"]
    assert names[5].endswith("Best first")
    assert names[6].endswith("10 a page")
    assert names[7] == "Krill in numbers"
    page.keyboard.press("/")
    for _ in range(3):
        page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#main"
    assert focused(page, tabs=1)[0].endswith("Best first")


def test_facets_and_menus_work_by_keyboard(visits: Visits) -> None:
    """A menu opens by Enter and closes by Escape; a value of a facet is chosen and excluded by Enter."""
    page = visits.open("?q=krill")
    menu = page.locator(".menu").first
    menu.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(menu).to_have_attribute("open", "")
    page.keyboard.press("Escape")
    expect(menu).not_to_have_attribute("open", "")
    page.keyboard.press("Enter")
    assert focused(page, tabs=2)[1].startswith("Newest first")
    page.keyboard.press("Enter")
    page.wait_for_url("**/?q=krill&sort=newest")
    page.locator("#facets").get_by_role("link", name="PDF").first.focus()
    page.keyboard.press("Tab")
    shown = page.get_by_role("link", name="not PDF")
    expect(shown).to_be_focused()
    expect(shown).to_have_css("opacity", "1")
    page.keyboard.press("Enter")
    page.wait_for_url("**/?q=krill&not-type=PDF&sort=newest")


def test_letters_as_keys_can_be_switched_off(visits: Visits) -> None:
    """Who does not want single letters as keys switches them off on the help page, for all pages (WCAG 2.1.4)."""
    page = visits.open("help")
    page.get_by_role("checkbox").uncheck()
    page.goto("?q=krill")
    page.keyboard.press("j")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement === document.body")
    page.goto("help")
    expect(page.get_by_role("checkbox")).not_to_be_checked()
