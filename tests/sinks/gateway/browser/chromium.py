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
FOREIGN = "foreign.example"
"""A name that the browser resolves to 127.0.0.1, as after DNS rebinding; no gateway has it."""
REFUSED = ("status of 4", "answer: 4", "request to another server", "Cross-Origin-Opener-Policy header has been ignored")
"""Complaints of the browser where requests of another server or by another name are refused; it also asks for an icon then."""


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
        browser = playwright.chromium.launch(executable_path=path, args=[f"--host-resolver-rules=MAP {FOREIGN} 127.0.0.1"])
        try:
            yield browser
        finally:
            browser.close()


if __name__ == "__main__" and find() is None:
    print(PACKAGE)
