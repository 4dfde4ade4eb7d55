"""Sitemap lines of a robots.txt."""

from __future__ import annotations

import pytest

from processors.frontier.robots import MAX_LINE, MAX_SITEMAPS, sitemaps
from schemas.records import CrawlEvent
from tests.processors.frontier.conftest import Partition

URL = "http://example.org/map.xml"


@pytest.mark.parametrize(
    "text",
    [
        f"Sitemap: {URL}",
        f"\ufeffsitemap:{URL}\r\n",
        f"User-agent: x\nDisallow: /\n  SITEMAP :\t{URL}  # all\n",
        f"Site-map: {URL}\r",
        f"Sitemap: {URL}\nSitemap: {URL}\n",
    ],
)
def test_sitemap_lines_are_found_in_any_group_and_spelling(text: str) -> None:
    """A sitemap line counts wherever it is, in any case, with either name, once."""
    assert sitemaps(text.encode()) == [URL]


@pytest.mark.parametrize("text", ["", "Sitemap:", "Sitemaps: /x", "# Sitemap: /x", "Sit emap: /x", "\0Sitemap: /x"])
def test_other_lines_are_no_sitemaps(text: str) -> None:
    """Lines without an address, comments and other keys give nothing."""
    assert sitemaps(text.encode()) == []


def test_sitemap_lines_are_bounded() -> None:
    """A robots.txt gives a bounded number of sitemaps, none from a line that is too long."""
    many = b"".join(b"Sitemap: /%d\n" % number for number in range(2 * MAX_SITEMAPS))
    assert len(sitemaps(many)) == MAX_SITEMAPS
    assert sitemaps(b"Sitemap: /" + b"x" * MAX_LINE) == []
    assert sitemaps(b"Sitemap: /\xff") == ["/\ufffd"]


def test_full_robots_txt_leaves_room_for_the_usual_sitemap() -> None:
    """The largest number of sitemap lines, and /sitemap.xml besides, are more than one event has, and all are found."""
    partition = Partition(sitemaps="yes")
    robots = b"".join(b"Sitemap: /%d\n" % number for number in range(MAX_SITEMAPS))
    found = [each for each in partition.resolve(partition.seed(), robots) if isinstance(each, CrawlEvent)]
    assert len({link.url for event in found for link in event.links}) == MAX_SITEMAPS + 1
