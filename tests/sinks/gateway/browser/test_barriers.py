"""axe-core looks for barriers (WCAG, and its best practices) in every page: in both colour schemes, on wide and narrow screens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.sinks.gateway.browser.places import PAGES
from tests.sinks.gateway.browser.visits import Visits

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.slow(30)]

SIZES = {"wide": (1280, 800), "narrow": (360, 740)}
COLOURS = ["color-contrast", "link-in-text-block"]
"""Rules that depend on the colour scheme, which changes nothing but colours; in the dark they alone are asked for."""
RUN = "(options) => axe.run({ resultTypes: ['violations'], ...options }).then((results) => results.violations)"


def violations(page: Page, rules: Sequence[str]) -> list[str]:
    """Return what axe, which is loaded, finds in a page: a line for each rule and element. `rules`: all if there is none."""
    found: list[dict[str, Any]] = page.evaluate(RUN, {"runOnly": rules} if rules else {})
    return [f"{rule['id']}: {node['target']}: {node['failureSummary']}" for rule in found for node in rule["nodes"]]


def everywhere(page: Page) -> dict[str, list[str]]:
    """Load axe; return what it finds in a page, by screen and colour scheme."""
    page.evaluate(Axe().axe_script)
    found = {}
    for size, (width, height) in SIZES.items():
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme="light")
        found[f"{size}, light"] = violations(page, ())
        page.emulate_media(color_scheme="dark")
        found[f"{size}, dark"] = violations(page, COLOURS)
    return {where: each for where, each in found.items() if each}


def test_no_page_has_a_barrier(visits: Visits) -> None:
    """No page has a violation of a rule of axe."""
    visits.expect("404")
    # The policy of the pages forbids scripts that are not ours.
    page = visits.open(bypass_csp=True)
    found = {}
    for name, path in PAGES.items():
        page.goto(path)
        found[name] = everywhere(page)
    assert {name: each for name, each in found.items() if each} == {}


def test_nothing_that_opens_has_a_barrier(visits: Visits) -> None:
    """There is no violation while words are proposed, nor with each menu and each fold open."""
    page = visits.open("?q=krill&type=PDF", bypass_csp=True)
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    assert everywhere(page) == {}
    page.goto("./")
    page.keyboard.type("wh")
    expect(page.get_by_role("option").first).to_be_visible()
    page.keyboard.press("ArrowDown")
    assert everywhere(page) == {}


def test_axe_finds_a_barrier(visits: Visits) -> None:
    """A barrier that is put into a page is found: text that can hardly be read in one of the colour schemes."""
    page = visits.open("help", bypass_csp=True)
    page.add_style_tag(content="@media (prefers-color-scheme: dark) { h1 { color: #333; } }")
    found = everywhere(page)
    assert sorted(found) == ["narrow, dark", "wide, dark"]
    assert all(lines[0].startswith("color-contrast: ['h1']") for lines in found.values())
