"""Which summaries a URL among the sources of a Broker means, and which URLs are those of streams."""

from __future__ import annotations

import pytest

from processors.broker.sources import came_from
from processors.collector import is_listing, is_part, listing_of, may_move

CS = "https://h.example/brokers/cs/soif/"
ASKED = f"{CS}?q=type%3APDF"


@pytest.mark.parametrize(
    ("given", "listing"),
    [
        ("https://h.example/brokers/cs/soif", CS),
        ("https://h.example/brokers/cs/soif/", CS),
        ("https://H.example:443/brokers/cs", CS),
        ("https://h.example/brokers/cs/soif?q=type:PDF", ASKED),
        ("https://h.example/brokers/cs?q=type%3apdf+x", f"{CS}?q=type%3Apdf%20x"),
        ("http://h.example:8380", "http://h.example:8380/gatherer/soif/"),
        ("http://h.example/below/", "http://h.example/below/gatherer/soif/"),
        ("http://h.example/gatherer/soif/", "http://h.example/gatherer/soif/"),
        ("http://h.example/gatherer/soif?q=x", None),
        ("http://h.example/brokers/cs/soif?q=", None),
        ("http://h.example/brokers/cs/soif?q=a&q=b", None),
        ("http://h.example/brokers/cs/soif?since=1", None),
        ("http://user:word@h.example/", None),
        ("http://h.example/#x", None),
        ("ftp://h.example/", None),
        ("http://", None),
        ("http://[::1", None),
        ("h.example", None),
    ],
)
def test_listing_that_a_url_means(given: str, listing: str | None) -> None:
    """A URL of a gateway, of a Broker or of its stream means one listing, which means itself; others mean none."""
    assert listing_of(given) == listing
    assert listing is None or (listing_of(listing) == listing and is_listing(listing) and is_part(listing, part(listing, 3)))


def part(listing: str, number: int) -> str:
    """Return the URL of a part."""
    above, mark, query = listing.partition("?")
    return f"{above}{number}{mark}{query}"


@pytest.mark.parametrize(
    ("url", "listing", "came"),
    [
        (f"{CS}3", CS, True),
        (CS, CS, False),
        (f"{CS}3?q=type%3APDF", CS, False),
        (f"{CS}3?q=type%3APDF", ASKED, True),
        (f"{CS}3", ASKED, False),
        (f"{CS}3?q=type%3AHTML", ASKED, False),
        ("https://h.example/brokers/cs2/soif/3", CS, False),
        ("https://other.example/brokers/cs/soif/3", CS, False),
        ("https://h.example/gatherer/soif/3", "https://h.example/gatherer/soif/", True),
        ("https://h.example/gatherer/soif/3", CS, False),
        ("https://h.example/", CS, False),
    ],
)
def test_summaries_of_a_url(url: str, listing: str, came: bool) -> None:
    """A URL means what was collected from there; with a query only what was asked for with it, without one all of the rest."""
    assert came_from(url, listing) is came


@pytest.mark.parametrize(
    ("target", "follows"),
    [
        ("https://new.example/brokers/cs/soif/3", True),
        ("https://new.example/below/brokers/cs/soif/3", True),
        ("https://new.example/brokers/cs/soif/4", False),
        ("https://new.example/brokers/other/soif/3", False),
        ("https://new.example/brokers/cs/soif/3?login=1", False),
        ("https://new.example/login", False),
    ],
)
def test_redirects_of_a_part(target: str, follows: bool) -> None:
    """Below a Broker's listing a redirect is followed only to the same part of the same Broker elsewhere."""
    assert may_move(CS, f"{CS}3", target) is follows
