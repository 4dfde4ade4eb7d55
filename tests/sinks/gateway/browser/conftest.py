"""A browser, a gateway of its own process, and visits that must pass without a complaint of the browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.sinks.gateway.browser.chromium import chromium
from tests.sinks.gateway.browser.visits import PATIENCE_MS, Visits
from tests.sinks.gateway.serving import gateway

expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The browser. It lives as long as the tests of one file: asyncio.run is impossible meanwhile."""
    with chromium() as running:
        yield running


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of the search page of a gateway that serves objects."""
    with gateway(tmp_path_factory.mktemp("site") / "index", objects=True) as (_, url):
        yield url


@pytest.fixture
def visits(browser: Browser, site: str) -> Iterator[Visits]:
    """Opens pages of the site. At the end, nothing must be in the console that the test did not expect."""
    found = Visits(browser, site)
    yield found
    found.close()
    assert not found.complaints
