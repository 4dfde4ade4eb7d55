"""The sample corpus in the browser, gathered and served by the real commands."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import pytest
from playwright.sync_api import expect

from tests.samples import make_corpus
from tests.sinks.gateway.browser.harvest import served_corpus
from tests.sinks.gateway.browser.visits import Visits

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.slow(15)]


def test_member_of_nested_archives_is_fetched(visits: Visits, tmp_path: Path) -> None:
    """From a word in an archive in an archive in an archive to the bytes of that member, in the browser."""
    with served_corpus(tmp_path) as url:
        page = visits.open(url=url)
        page.get_by_label("Search", exact=True).press_sequentially("quilwort~ ferns")
        expect(page.get_by_role("heading", level=1)).to_have_text(re.compile(r"^\s*1 summary\b"))
        expect(page.locator(".place")).to_have_text((tmp_path / "corpus" / make_corpus.NESTED_PATH).as_uri().replace("%23", "#"))
        with page.expect_download() as download:
            page.get_by_role("link", name="download").click()
        assert Path(download.value.path()).read_bytes() == make_corpus.FIELD_NOTES.encode()
        assert download.value.suggested_filename == "field-notes.txt"
        page.get_by_role("link", name="only in this archive").click()
        assert unquote(page.url).endswith("#papers.tar.gz#deep/field.tar.bz2")
        page.locator(".hit h2 a").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Field notes")
        page.get_by_role("link", name="Why it is here").click()
        expect(page.locator(".events")).to_contain_text("summary of type RawText")
