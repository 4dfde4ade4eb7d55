from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.frontier.robots import MAX_ROBOTS, SMALL, allowed, crawl_delay, product_token

URL = "http://a.example"

CASES = [
    (b"", "/x", True),
    (b"User-agent: *\nDisallow:\n", "/x", True),
    (b"User-agent: *\nDisallow: /\n", "/x", False),
    (b"User-agent: *\nDisallow: /\n", "/robots.txt", True),
    (b"User-agent: *\nDisallow: /p\nAllow: /p/open\n", "/p/open/x", True),
    (b"User-agent: *\nDisallow: /p\nAllow: /p/open\n", "/p/x", False),
    (b"User-agent: *\nDisallow: /\n\nUser-agent: harvest\nDisallow: /x\n", "/y", True),
    (b"User-agent: HARVEST\nDisallow: /x\n", "/x", False),
    (b"User-agent: harvest/0.1\nUser-agent: other\nDisallow: /x\n", "/x", True),
    (b"User-agent: other\nUser-agent: Harvest\nDisallow: /x\n", "/x", False),
    (b"User-agent: other\nDisallow: /\n", "/x", True),
    (b"User-agent: *\nDisallow: /x\nUser-agent: other\nDisallow: /y\n", "/y", True),
    (b"User-agent: harvester\nDisallow: /\n", "/x", True),
    (b"user-agent:*\r\ndisallow:/x # why\r\n", "/x", False),
    (b"User-agent: *\rDisallow: /x\r", "/x", False),
    (b"\xef\xbb\xbfUser-agent: *\nDisallow: /x\n", "/x", False),
    (b"User-agent: *\nDisallow: /*.pdf$\n", "/a/b.pdf", False),
    (b"User-agent: *\nDisallow: /*.pdf$\n", "/a/b.pdf?x", True),
    (b"User-agent: *\nDisallow: /a%7Eb\n", "/a~b", False),
    (b"User-agent: *\nDisallow: /\xc3\xa4\n", "/%C3%A4", False),
    (b"User-agent: *\nDisallow: /?s=\n", "/?s=1", False),
    (b"Disallow: /x\n", "/x", True),
    (b"<html>404</html>", "/x", True),
    (b"\xff\xfe\x00User-agent", "/x", True),
]


@pytest.mark.parametrize(("robots", "path", "expected"), CASES)
def test_rules_follow_rfc_9309(robots: bytes, path: str, expected: bool) -> None:
    """Groups, longest match, wildcards and invalid files are handled as RFC 9309 requires."""
    assert allowed(robots, "Harvest", URL + path) is expected


DELAYS = [
    (b"", None),
    (b"User-agent: *\nCrawl-delay: 2.5\n", 2.5),
    (b"User-agent: *\nCrawl-delay: 2\n\nUser-agent: harvest\nCrawl-delay: 7\n", 7.0),
    (b"User-agent: *\nCrawl-delay: 2\n\nUser-agent: harvest\nDisallow: /x\n", None),
    (b"User-agent: *\nCrawl-delay: soon\n", None),
    (b"User-agent: *\nCrawl-delay: -1\n", None),
    (b"User-agent: *\nCrawl-delay: inf\n", None),
    (b"User-agent: other\nCrawl-delay: 9\n", None),
]


@pytest.mark.parametrize(("robots", "expected"), DELAYS)
def test_crawl_delay_is_that_of_our_group(robots: bytes, expected: float | None) -> None:
    """The crawl delay is that of our group; a value that is not a number of seconds is ignored."""
    assert crawl_delay(robots, "Harvest") == expected


def test_many_agents_and_rules_take_linear_time() -> None:
    """A file of ten thousand agents and as many rules is read as fast as one of the same length for a single group."""
    agents = b"".join(b"User-agent: a%d\n" % n for n in range(12_000))
    rules = b"".join(b"Disallow: /%d\n" % n for n in range(12_000))
    assert SMALL < len(agents + rules) < MAX_ROBOTS
    assert allowed(agents + rules, "Harvest", URL + "/7")
    assert not allowed(agents + b"User-agent: *\n" + rules, "Harvest", URL + "/7")


def test_rules_beyond_size_cap_are_ignored() -> None:
    """Rules after the first 512 KiB are ignored."""
    padding = b"#" * MAX_ROBOTS + b"\n"
    assert allowed(b"User-agent: *\n" + padding + b"Disallow: /\n", "Harvest", URL + "/x")


@pytest.mark.parametrize(("agent", "token"), [("Harvest/0.1", "Harvest"), ("my-bot (+http://a/)", "my-bot"), ("1/2", "Harvest")])
def test_product_token_begins_the_user_agent(agent: str, token: str) -> None:
    """The product token is the beginning of the User-Agent; without one, it is that of this program."""
    assert product_token(agent) == token


@given(st.binary(max_size=300))
def test_any_robots_txt_is_parsed(robots: bytes) -> None:
    """Any robots.txt is parsed without an exception."""
    assert allowed(b"User-agent: *\n" + robots, "Harvest", URL + "/x") in (True, False)
    delay = crawl_delay(b"User-agent: *\nCrawl-delay: " + robots, "Harvest")
    assert delay is None or delay >= 0
