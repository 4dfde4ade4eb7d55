from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.frontier.robots import MAX_LINE, MAX_ROBOTS, SMALL, allowed, crawl_delay, product_token

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
    (b"User-agent: Harvest/1.5\nUser-agent: other\nDisallow: /x\n", "/x", False),
    (b"User-agent: harvest 1.5 (crawler)\nDisallow: /x\n", "/x", False),
    (b"User-agent: harvest2\nDisallow: /x\n", "/x", False),
    (b"User-agent: my-harvest\nDisallow: /x\n", "/x", True),
    (b"User-agent: * all robots\nDisallow: /x\n", "/x", False),
    (b"User-agent: *x\nDisallow: /x\n", "/x", True),
    (b"User-agent: other\nCrawl-delay: 5\n\nUser-agent: *\nDisallow: /x\n", "/x", False),
    (b"User-agent: *\nCrawl-delay: 5\nUser-agent: other\nDisallow: /x\n", "/x", False),
    (b"User-agent: harvest\nNoindex: /a\n\nUser-agent: other\nDisallow: /x\n", "/x", False),
    (b"User-agent: harvest\nSitemap: /s.xml\n# why\nHost: a\nUser-agent: other\nDisallow: /x\n", "/x", False),
    (b"User-agent: other\nDisallow:\nUser-agent: harvest\nDisallow: /x\n", "/x", False),
    (b"User-agent: harvest\nDisallow:\nUser-agent: other\nDisallow: /x\n", "/x", True),
    (b"User-agent: harvest\nDisallow: /x\n\nUser-agent: other\nDisallow: /y\n\nUser-agent: harvest\nDisallow: /z\n", "/z", False),
    (b"User-agent: *\nDisallow: /a%2bb\n", "/a%2Bb", False),
    (b"User-agent: *\nDisallow: /a%2bb\n", "/a+b", True),
    (b"User-agent: *\nDisallow: /a+b\n", "/a%2Bb", True),
    (b"User-agent: *\nDisallow: /a%2fb\n", "/a/b", True),
    (b"User-agent: *\nDisallow: /x?u=http%3a%2f%2f\n", "/x?u=http%3A%2F%2Fb", False),
    (b"User-agent: *\nDisallow: /x?u=http%3a%2f%2f\n", "/x?u=http://b", True),
    (b"User-agent: *\nDisallow: /%41\n", "/A", False),
    (b"User-agent: *\nDisallow: /a b\n", "/a%20b", False),
    (b"User-agent: *\nDisallow: /100%\n", "/100%25", False),
    (b"User-agent: *\nDisallow: /\xe4\n", "/%E4", False),
    (b"User-agent: *\nDisallow: /\xe4\n", "/%C3%A4", True),
    (b"User-agent: *\nDisallow: /a%2A\n", "/a*", False),
    (b"User-agent: *\nDisallow: /a%2A\n", "/ab", True),
    (b"User-agent: *\nDisallow: /a$b\n", "/a$b", False),
    (b"User-agent: *\nDisallow: /a%24\n", "/a$", False),
    (b"User-agent: *\nDisallow: /a%24\n", "/a", True),
    (b"User-agent: *\nDisallow: /x?\n", "/x", True),
    (b"User-agent: *\nDisallow: /x?\n", "/x?a", False),
    (b"User-agent: *\nDisallow: /x?\n", "/x?", False),
    (b"User-agent: *\nDisallow: /*?\n", "/x", True),
    (b"User-agent: *\nDisallow: /*?\nAllow: /*?$\n", "/x?", True),
    (b"User-agent: *\nDisallow: /*?\nAllow: /*?$\n", "/x?a", False),
    (b"User-agent: *\nDisallow: /x\nAllow: /x\n", "/x", True),
    (b"User-agent: *\nDisallow: /\nAllow: /index.html\n", "/", True),
    (b"User-agent: *\nDisallow: /\nAllow: /index.html\n", "/a", False),
    (b"User-agent: *\nDisalow /x\n", "/x", False),
    (b"User-agent: *\nDisallow: /a*b*c$\n", "/a-b-c-c", False),
    (b"User-agent: *\nDisallow: /a*b*c$\n", "/a-b-c-d", True),
    (b"User-agent: *\nDisallow: /ab*ba$\n", "/aba", True),
    (b"User-agent: *\nDisallow: *.php\n", "/a.php", False),
    (b"User-agent: *\nDisallow: /\x0bx\x0c\nAllow: /y\n", "/x", True),
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
    (b"User-agent: *\xa0\nDisallow: /x\n", "/x", True),
    (b"User-agent: *\x0b\x0c(all)\nDisallow: /x\n", "/x", False),
    (b"User-agent: *\nDisallow /\xc3\xa0b\n", "/%C3%A0b", False),
    (b"User-agent *\nDisallow \t/x\n", "/x", False),
    (b"User-agent: *\nDisallow\x0b/x\n", "/x", True),
    (b"User-agent: *\nDisallow: /x\x00yz\n", "/x", False),
    (b"User-agent: *\nDisallow: /x #\x00\n", "/x", False),
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
    (b"User-agent: Harvest/1.5\nCrawl-delay: 9\n", 9.0),
    (b"User-agent: harvest\nUser-agent: other\nCrawl-delay: 9\nDisallow: /\n", 9.0),
    (b"User-agent: harvest\nCrawl-delay: 7\n\nUser-agent: *\nCrawl-delay: 2\n", 7.0),
    (b"User-agent: *\nDisallow: /x\nCrawl-delay: 3\n", 3.0),
    (b"User-agent: *\nCrawl-delay: 1e400\n", None),
    (b"User-agent: *\nCrawl-delay: " + b"9" * 400, None),
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


def test_wildcards_take_linear_time() -> None:
    """Patterns of many asterisks are matched without trying every combination of places."""
    rules = b"".join(b"Disallow: /%s%d$\n" % (b"*a" * 200, n) for n in range(100))
    assert allowed(b"User-agent: *\n" + rules, "Harvest", URL + "/" + "a" * 1_900)
    assert not allowed(b"User-agent: *\n" + rules, "Harvest", URL + "/" + "a" * 1_900 + "7")


def test_rules_beyond_size_cap_are_ignored() -> None:
    """Rules after the first 512 KiB are ignored."""
    padding = b"#" * MAX_ROBOTS + b"\n"
    assert allowed(b"User-agent: *\n" + padding + b"Disallow: /\n", "Harvest", URL + "/x")


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
@pytest.mark.parametrize("rest", [b"", b"x\nDisallow: /z\n"])
def test_line_that_the_size_cap_cuts_is_ignored(end: bytes, rest: bytes) -> None:
    """Half a line is no rule: what begins with `Disallow: /` at the limit does not refuse the whole host."""
    head, tail = b"User-agent: *" + end + b"Disallow: /y" + end, end + b"Disallow: /"
    robots = head + b"#" * (MAX_ROBOTS - len(head) - len(tail)) + tail + rest
    assert allowed(robots, "Harvest", URL + "/x")
    assert not allowed(robots, "Harvest", URL + "/y")


def test_long_lines_are_cut() -> None:
    """Of a long line only as many bytes are read as Google's parser reads: the NUL that ends its buffer is not one of them."""
    key, path = b"Disallow: ", "/" + "x" * (MAX_LINE - 11)
    assert not allowed(b"User-agent: *\n" + key + path.encode() + b"yz\n", "Harvest", URL + path)
    assert MAX_LINE == 16_663


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
