"""Complaints of the browser are recorded."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from tests.sinks.gateway.browser.visits import Visits

pytestmark = pytest.mark.xdist_group("browser")

OTHER = "http://127.0.0.2:9/x.png"
"""A server that does not answer, and that the policy of the pages forbids."""
INLINE = "document.body.insertAdjacentHTML('beforeend', '<p style=\"color: red\">')"


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("console.warn('a warning')", "console warning: a warning"),
        ("setTimeout(() => { throw new Error('an error') })", "uncaught: an error"),
        ("fetch('nowhere').then(() => 1)", "answer: 404"),
        ("alert('a dialog')", "dialog: a dialog"),
        (INLINE, "console error: Applying inline style violates"),
        (f"new Promise((then) => {{ const i = new Image(); i.onerror = then; i.src = '{OTHER}' }})", "violates"),
    ],
)
def test_complaint_is_recorded(browser: Browser, site: str, script: str, complaint: str) -> None:
    """A message, an error, a failed request, a dialog, what the policy forbids: each fails the test that does not expect it."""
    visits = Visits(browser, site)
    page = visits.open("help")
    assert visits.complaints == []
    page.evaluate(script)
    page.evaluate("new Promise((then) => setTimeout(then))")
    visits.close()
    assert [text for text in visits.complaints if complaint in text]
    visits.expect("")
    assert visits.complaints == []


def test_request_to_another_server_is_recorded(browser: Browser, site: str) -> None:
    """Without the policy, a request to another server is a complaint."""
    visits = Visits(browser, site)
    page = visits.open("help", bypass_csp=True)
    page.evaluate(f"new Promise((then) => {{ const i = new Image(); i.onerror = then; i.src = '{OTHER}' }})")
    visits.close()
    assert f"request to another server: {OTHER}" in visits.complaints
