"""Makes the picture of the search page for the README: `python -m tests.sinks.gateway.browser.picture`.

The corpus is gathered in the folder that the sessions of the README name; it is made, if it is not there, and removed again.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import expect

from tests.sinks.gateway.browser.chromium import chromium
from tests.sinks.gateway.browser.harvest import served_corpus

PICTURE = Path(__file__).parents[4] / "sinks" / "gateway" / "search.png"
DEMO = Path("/srv/demo")
WIDTH, HEIGHT = 1200, 750
MAX_BYTES = 150_000


def make(folder: Path, path: Path) -> None:
    """Gather the corpus in a folder, and write the picture of a search in it to a path."""
    with served_corpus(folder) as url, chromium() as browser:
        page = browser.new_page(base_url=url, viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        page.goto("?q=gathering")
        expect(page.locator(".hit").first).to_be_visible()
        page.screenshot(path=path)


def main() -> int:
    """Make the picture and return the exit code."""
    if DEMO.exists():
        print(f"{DEMO} is there already; move it away first", file=sys.stderr)
        return 1
    DEMO.mkdir(parents=True)
    try:
        make(DEMO, PICTURE)
    finally:
        shutil.rmtree(DEMO)
    size = PICTURE.stat().st_size
    print(f"{PICTURE}: {size:,} bytes of at most {MAX_BYTES:,}")
    return int(size > MAX_BYTES)


if __name__ == "__main__":
    sys.exit(main())
