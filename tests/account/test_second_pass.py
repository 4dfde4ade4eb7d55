"""Passes over a site that changes in between: exactly the changes are found, with and without a sitemap that states them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from processors.frontier.listed import PROBES
from tests.bench.second_pass import MOSTLY, QUICK, SOON, TRIES, Passes, Step, steps
from tests.samples.changing_site import ChangingSite, made_pages

pytestmark = [pytest.mark.slow(60), pytest.mark.xdist_group("second pass"), pytest.mark.timeout(600)]

PAGES = 400
NAMES = ("first", "links", "dates", "marks", "sitemap", "lie", "truth")


class Gathered:
    """The passes by name, and the site as it is after them."""

    def __init__(self, made: dict[str, Step], site: ChangingSite, held: dict[str, str]) -> None:
        self.made = made
        self.site = site
        self.held = held


@pytest.fixture(scope="module")
def gathered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gathered]:
    """Some hundred pages, gathered in all passes, with short waits after errors."""
    with ChangingSite(made_pages(PAGES)) as site:
        passes = Passes(site, tmp_path_factory.mktemp("passes"), SOON)
        made = {step.name: step for step in steps(passes, QUICK, MOSTLY)}
        yield Gathered(made, site, passes.held)


@pytest.mark.parametrize("name", NAMES)
def test_pass_finds_exactly_the_changes(name: str, gathered: Gathered) -> None:
    """Summaries are changed, removed, added or kept exactly where pages changed, went, moved or answer 503; no other is written."""
    assert {kind: paths for kind, paths in gathered.made[name].wrong.items() if paths} == {}


def test_pass_without_a_sitemap_requests_every_page_once(gathered: Gathered) -> None:
    """Without a sitemap all known pages are requested once, by a conditional request: only what has changed is sent."""
    asked = gathered.made["links"].found.asked
    sent = {path for path, status in asked if status == 200}
    assert len(sent) == round(PAGES * (QUICK.changed + QUICK.moved))
    assert len({path for path, _ in asked}) >= PAGES


def test_unchanged_pages_of_a_sitemap_are_requested_as_samples(gathered: Gathered) -> None:
    """With a sitemap that states the changes, pages that have not changed are requested as samples only."""
    found = gathered.made["sitemap"].found
    unchanged = [path for path, status in found.asked if status == 304 and path.startswith("/pages/")]
    assert len(unchanged) < 3 * PAGES // PROBES
    assert found.requests < PAGES // 3


def test_page_that_answers_503_is_requested_again_by_the_next_pass(gathered: Gathered) -> None:
    """A page that answers 503 is requested up to three times, and its change is found by the next pass, with a sitemap too."""
    for name, following in (("links", "dates"), ("sitemap", "lie")):
        failing = {path: count for (path, status), count in gathered.made[name].found.asked.items() if status == 503}
        assert len(failing) == round(PAGES * QUICK.failing)
        assert set(failing.values()) <= set(range(1, TRIES + 1))
        assert failing.keys() <= gathered.made[following].found.changed


def test_changes_that_a_sitemap_does_not_state_are_found_within_two_passes(gathered: Gathered) -> None:
    """Though the sitemap states nothing of most pages having changed, moved or gone, two passes find all of it."""
    hidden = gathered.made["lie"].unstated
    found = [gathered.made[name].found for name in ("lie", "truth")]
    assert hidden.changed <= found[0].changed | found[1].changed
    assert hidden.gone | hidden.moved == found[0].removed | found[1].removed
    assert gathered.held.keys() >= gathered.site.pages.keys()
