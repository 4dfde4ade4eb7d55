"""Plans of roots: kept from `seeded`, applied to requests."""

from __future__ import annotations

import pytest

from processors.frontier.plans.options import PlanTable
from processors.frontier.rows import Table
from processors.frontier.settings import FrontierSettings
from processors.frontier.stage import Decision
from processors.frontier.state import UrlState
from schemas.ports import Origin
from schemas.records import CrawlEvent, Plan, Root, Validators
from tests.processors.frontier.conftest import SITE, Partition, requests


def test_pause_of_root_goes_into_its_requests(partition: Partition) -> None:
    """Requests of a root, robots.txt included, have its pause; Crawl-delay counts where it is longer."""
    asked = partition.seed(Plan(pause=5_000))
    assert [each.pause for each in requests(asked)] == [5_000]
    (page,) = requests(partition.resolve(asked, b"User-agent: *\nCrawl-delay: 7"))
    assert page.pause == 7_000
    partition.answer(page)
    (again,) = requests(partition.seed(Plan(pause=9_000), run="2"))
    assert again.pause == 9_000


def test_root_without_plan_keeps_the_pause_of_the_settings(partition: Partition) -> None:
    """Without a plan, requests leave the pause to the setting."""
    asked = partition.seed()
    assert [each.pause for each in (*requests(asked), *requests(partition.resolve(asked)))] == [-1, -1]


def test_run_without_plan_keeps_the_plan(partition: Partition) -> None:
    """A run whose event has no plan leaves it unchanged; an empty plan clears it; the end of the root deletes it."""
    plans = PlanTable(partition.rows)
    partition.seed(Plan(pause=5_000))
    partition.seed(run="2")
    assert PlanTable(partition.rows).of(SITE).plan == Plan(pause=5_000)
    partition.seed(Plan(), run="3")
    assert PlanTable(partition.rows).of(SITE).plan == Plan()
    partition.give(CrawlEvent(kind="unseeded", host="http://a.test", time=partition.now, url=SITE, root=Root(url=SITE, run="4")))
    assert plans.rows.get(b"o|" + SITE.encode()) is None


def test_plan_of_earlier_run_is_ignored(partition: Partition) -> None:
    """A plan that arrives again after that of a later run changes nothing."""
    partition.seed(Plan(pause=1_000), run="1")
    partition.seed(Plan(pause=2_000), run="2")
    partition.seed(Plan(pause=1_000), run="1", offset=1)
    assert PlanTable(partition.rows).of(SITE).plan.pause == 2_000


def test_changed_scope_requests_pages_in_full(partition: Partition) -> None:
    """A page is fetched in full after a change of what is admitted, so that links refused before are found again."""
    (page,) = requests(partition.resolve(partition.seed()))
    partition.answer(page, validators=Validators(etag="1"))
    plans = (None, Plan(pause=1), Plan(deny=("x",)), Plan(deny=("x",)), Plan(deny=("x",), pause=2), Plan())
    for run, (plan, conditional) in enumerate(zip(plans, (True, True, False, True, True, False), strict=True), 2):
        (request,) = requests(partition.seed(plan, run=str(run)))
        assert (request.validators is not None) == conditional, run
        partition.answer(request, validators=Validators(etag="1"))


@pytest.mark.parametrize("plan", [Plan(deny=("(",)), Plan(hours="noon"), Plan(rewrite=("session.9",))])
def test_plan_that_cannot_be_applied_is_an_error(partition: Partition, plan: Plan) -> None:
    """An invalid plan raises before anything is written."""
    with pytest.raises(ValueError, match=r"^(deny|hours|rewrite): "):
        partition.seed(plan)
    assert PlanTable(partition.rows).rows.get(b"o|" + SITE.encode()) is None


def test_options_of_a_plan_take_the_place_of_settings(partition: Partition) -> None:
    """Sitemaps, marks, feeds and the interval of refreshing are those of a root's plan, where it states them."""
    plan = Plan(sitemaps="no", lastmod="ignore", feeds=True, refresh_min=600, price=60)
    partition.seed(plan)
    root, other = Root(url=SITE, run="1", refresh=86_400), Root(url="http://b.test/", run="1", refresh=86_400)
    settings = FrontierSettings(sitemaps="yes", lastmod="trust", price=3_600_000, refresh_min=7_200_000)
    decision = Decision(Table(partition.rows), partition.now, Origin("crawl", 0, 99, 0), settings)
    found = [(decision.sitemaps_of(each), decision.lastmod_of(each), decision.feeds_of(each)) for each in (root, other)]
    assert found == [("no", "ignore", True), ("yes", "trust", False)]
    # A page that changed at each of twelve visits an hour apart.
    page = UrlState(url=SITE, kind="page", depth=0, roots=(SITE,), visits=12, changes=12, first=1, confirmed=12 * 3_600_000)
    assert 600_000 <= decision.refresh_of(page, root) < 7_200_000 <= decision.refresh_of(page, other)
