"""Debian's Chromium, driven by playwright, which downloads nothing: `python -m tests.sinks.gateway.browser.chromium`.

As a program it prints the name of the Debian package if there is no such browser, for make, and nothing otherwise.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

PACKAGE = "chromium"
NAMES = (PACKAGE, "chromium-browser")


class ChromiumMissingError(Exception):
    """There is no Chromium on this machine."""


def find() -> str | None:
    """Return the path of the browser; None if there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run the browser during the block. Raises ChromiumMissingError.

    While it runs, the thread has a running event loop, so that nothing else in it can call asyncio.run.
    """
    path = find()
    if path is None:
        raise ChromiumMissingError(f"no Chromium on PATH: install the Debian package {PACKAGE}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path)
        try:
            yield browser
        finally:
            browser.close()


if __name__ == "__main__" and find() is None:
    print(PACKAGE)
