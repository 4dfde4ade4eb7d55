"""Each action of the administration page, as browsers send it for those who may not: nothing is done, and the log has it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, Route, expect

from sinks.gateway.admin.actions import ACTIONS, Ask
from tests.sinks.gateway.browser.chromium import FOREIGN, REFUSED
from tests.sinks.gateway.browser.test_admin import TOKEN, log_in
from tests.sinks.gateway.browser.visits import Visits
from tests.sinks.gateway.serving import gateway

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.slow(20)]

FORM = """<!doctype html><title>Other</title><form method="post" action="{}">{}<button>Go</button></form>"""
FIELD = '<input name="{}" value="{}">'
VALUES = {"root": "file:///srv/docs/", "broker": "main", "reason": "damaged", "query": "whale", "title": "whales"}
"""Values with which each action would succeed; fields that are not here are left empty."""


@pytest.fixture(scope="module")
def refusing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of the search page of a gateway whose search is free, and whose administration page has a token."""
    with gateway(tmp_path_factory.mktemp("refusing") / "index", admin_token=TOKEN) as (_, url):
        yield url


def form(url: str, ask: Ask) -> str:
    """Return a page with the form of an action of a gateway."""
    fields = "".join(FIELD.format(name, VALUES.get(name, "")) for name in ask.fields)
    return FORM.format(f"{url}admin/{ask.page}/{ask.name}", fields)


def serving(body: str) -> Callable[[Route], None]:
    """Return what answers a request of the browser with a page."""
    return lambda route: route.fulfill(body=body, content_type="text/html")


def send_each(page: Page, where: str, url: str, answer: str) -> None:
    """Send the form of each action from a page at `where` to the gateway `url`; each shows `answer`."""
    for ask in ACTIONS:
        page.context.unroute_all()
        page.context.route(where, serving(form(url, ask)))
        page.goto(where)
        page.get_by_role("button", name="Go").click()
        expect(page.locator("body"), f"{ask.page} {ask.name}").to_contain_text(answer)
    page.context.unroute_all()


def expect_nothing_done(page: Page, url: str, refused: str = "") -> None:
    """Expect that the log has each refusal, if there is one, and no action that was done; log in if that is asked for."""
    page.goto(f"{url}admin/log")
    if page.get_by_label("Token").count():
        log_in(page)
    expect(page.get_by_role("heading", level=1)).to_have_text("Log")
    for ask in ACTIONS if refused else ():
        row = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name=f"{ask.page} {ask.name}", exact=True))
        expect(row.filter(has_text=refused).first, f"{ask.page} {ask.name}").to_be_visible()
    expect(page.get_by_text("done: done")).to_have_count(0)


def test_action_without_login_is_refused(visits: Visits, refusing: str) -> None:
    """A form of the gateway's own origin, sent by somebody who has not logged in."""
    visits.expect(*REFUSED)
    page = visits.open("help", url=refusing)
    send_each(page, f"{refusing}help", refusing, "a login, or the token as a bearer, is needed")
    expect_nothing_done(page, refusing, "a login")


def test_action_of_another_site_is_refused(visits: Visits, refusing: str) -> None:
    """A form of another site: the browser sends no cookie with it, though it is logged in."""
    visits.expect(*REFUSED)
    page = visits.open("admin", url=refusing)
    log_in(page)
    send_each(page, "http://other.example/", refusing, "a login, or the token as a bearer, is needed")
    expect_nothing_done(page, refusing)


def test_action_of_another_origin_is_refused(visits: Visits, refusing: str) -> None:
    """A form of another server of the same host: the browser sends the cookie with it, and the origin is refused."""
    visits.expect(*REFUSED)
    page = visits.open("admin", url=refusing)
    log_in(page)
    expect(page.get_by_role("heading", level=1)).to_have_text("Administration")
    send_each(page, f"http://{urlsplit(refusing).hostname}:9/", refusing, "this form was sent by another site")
    expect_nothing_done(page, refusing, "sent by another site")


def test_action_without_the_token_of_the_form_is_refused(visits: Visits, refusing: str) -> None:
    """A form of the gateway's own origin, sent by somebody who is logged in, that is not of the session."""
    visits.expect(*REFUSED)
    page = visits.open("admin", url=refusing)
    log_in(page)
    expect(page.get_by_role("heading", level=1)).to_have_text("Administration")
    send_each(page, f"{refusing}help", refusing, "this form is not of your session")
    expect_nothing_done(page, refusing, "not of your session")


def test_action_by_another_name_is_refused(visits: Visits, refusing: str) -> None:
    """A site whose name means this machine, as after DNS rebinding: neither its pages nor its forms are answered."""
    visits.expect(*REFUSED)
    elsewhere = f"http://{FOREIGN}:{urlsplit(refusing).port}/"
    page = visits.open("help", url=refusing)
    for path in ("admin", "admin/roots", "admin/login", "brokers", ""):
        page.goto(elsewhere + path)
        expect(page.locator("body"), path).to_contain_text("This name is not served here")
    send_each(page, f"{elsewhere}page", elsewhere, "This name is not served here")
    expect_nothing_done(page, refusing)
