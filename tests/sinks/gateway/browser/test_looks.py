"""Pages on narrow screens and in the dark."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.sinks.gateway.browser.places import PAGES, SHOWN
from tests.sinks.gateway.browser.visits import Visits

pytestmark = pytest.mark.xdist_group("browser")

NARROW: dict[str, Any] = {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True}
WIDER = """() => {
  const width = 360, wider = [];
  for (const each of document.querySelectorAll("body *")) {
    const { left, right } = each.getBoundingClientRect(), scrolls = each.closest(".wide, pre, .long, .unseen");
    if (!each.checkVisibility({ contentVisibilityAuto: true })) continue;
    if ((left < 0 || right > width) && right > left && !(scrolls && scrolls !== each) && !each.matches(".unseen, .skip"))
      wider.push(each.outerHTML.slice(0, 100));
  }
  if (document.documentElement.scrollWidth > width) wider.push(`the page scrolls: ${document.documentElement.scrollWidth}`);
  return wider;
}"""
"""Elements that reach over the edges of a narrow screen, but for the content of boxes that scroll by themselves."""


def test_every_page_is_quiet_and_fits_a_narrow_screen(visits: Visits) -> None:
    """At 360 pixels, no page and no opened part of one is wider than the screen; the console has the status of an error alone."""
    visits.expect("the server responded with a status of 404", f"answer: 404 {visits.url}{PAGES['error']}")
    page = visits.open(**NARROW)
    wider = {}
    for name, path in PAGES.items():
        page.goto(path)
        expect(page.locator(SHOWN.get(name, "h1")).first, name).to_be_attached()
        page.evaluate("for (const each of document.querySelectorAll('details:not(.menu)')) each.open = true")
        wider[name] = page.evaluate(WIDER)
    assert {name: found for name, found in wider.items() if found} == {}


def test_narrow_screen_has_all_controls(visits: Visits) -> None:
    """At 360 pixels, facets are one touch away, and what is open fits: words, menus, refinements."""
    page = visits.open("?q=krill", **NARROW)
    facet = page.get_by_role("link", name=re.compile("^PDF : 31$"))
    expect(facet).to_be_hidden()
    page.get_by_text("Refine", exact=True).tap()
    expect(facet).to_be_in_viewport()
    facet.tap()
    expect(page.locator(".facts .type")).to_have_text(["PDF"] * 10)
    for menu in page.locator(".menu summary").all():
        menu.tap()
        assert page.evaluate(WIDER) == []
    field = page.get_by_label("Search", exact=True)
    field.fill("")
    field.press_sequentially("krill wha")
    expect(page.get_by_role("option").first).to_be_in_viewport()
    assert page.evaluate(WIDER) == []


def colours(page: Page) -> tuple[int, int]:
    """Return the brightness of the background and of the text, from 0 to 765."""
    style = "getComputedStyle(document.body)"
    found = [str(page.evaluate(f"{style}.{name}")) for name in ("backgroundColor", "color")]
    background, text = (sum(map(int, re.findall(r"\d+", each)[:3])) for each in found)
    return background, text


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_pages_follow_the_colour_scheme(visits: Visits, script: bool) -> None:
    """Text is dark on light paper, and light on dark where the system is so, also when that changes."""
    page = visits.open("?q=krill", color_scheme="light", java_script_enabled=script)
    background, text = colours(page)
    assert background > 600
    assert text < 200
    page.emulate_media(color_scheme="dark")
    background, text = colours(page)
    assert background < 200
    assert text > 600
