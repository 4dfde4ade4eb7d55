"""A WARC file in a folder: its pages are found and shown under the URLs that they were fetched from, and go with the file."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

SAMPLE = Path(__file__).resolve().parents[2] / "samples" / "unnest" / "warc" / "crawl.warc"
PAGE = "http://example.org/boats/"


def test_pages_of_a_web_archive_are_found_by_their_urls(harvest: Any) -> None:
    """`site:`, `in:`, `url:` and `show` know a page of a WARC by its URL; without the file it is gone."""
    Path("folder").mkdir()
    shutil.copy(SAMPLE, "folder/crawl.warc")
    harvest("gather", "folder", "--quiet")
    pages = {PAGE, "http://example.org/boats/oars?long=1", "http://example.org/plain"}
    assert {hit["url"] for hit in harvest.lines("search", "site:example.org")} == pages
    assert {hit["url"] for hit in harvest.lines("search", f"in:{PAGE}")} == {each for each in pages if each.startswith(PAGE)}
    assert [hit["url"] for hit in harvest.lines("search", f'url:"{PAGE}"')] == [PAGE]
    archive = Path("folder/crawl.warc").resolve().as_uri()
    assert {hit["url"] for hit in harvest.lines("search", f'object-url:"{archive}"')} > pages
    assert PAGE in harvest("show", PAGE).stdout
    Path("folder/crawl.warc").rename("crawl.warc")
    Path("folder/empty").write_text("nothing here")
    harvest("gather", "folder", "--quiet")
    assert harvest.lines("search", "site:example.org") == []
