"""URLs of Gopher and news, whose paths are opaque."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.authority import canonical_authority
from processors.gopher_urls import MAX_SELECTOR, GopherItem, gopher_item, gopher_url
from processors.identity import file_name, frontier_key
from processors.news_urls import NewsName, news_name, news_url
from processors.urls import MAX_URL, canonical, suspicion

GOPHER = [
    ("gopher://example.org", "gopher://example.org/"),
    ("GOPHER://Example.ORG:70/", "gopher://example.org/"),
    ("gopher://example.org:/1", "gopher://example.org/"),
    ("gopher://example.org:7070/1/docs/", "gopher://example.org:7070/1/docs/"),
    ("gopher://example.org/0a/../b", "gopher://example.org/0a/../b"),
    ("gopher://example.org/0/what?x=1#part", "gopher://example.org/0/what%3Fx=1"),
    ("gopher://example.org/0/a%7eb%C3%A4", "gopher://example.org/0/a~b%C3%A4"),
    ("gopher://example.org/0/ä b", "gopher://example.org/0/%C3%A4%20b"),
    ("gopher://example.org/0/%ff%zz", "gopher://example.org/0/%FF%25zz"),
    ("gopher://user:secret@example.org/", "gopher://example.org/"),
    ("gopher://0x7f.1/", "gopher://127.0.0.1/"),
    ("gopher://127.0.0.1../", "gopher://127.0.0.1/"),
    ("gopher://bücher.example./", "gopher://xn--bcher-kva.example/"),
    ("gopher://[::FFFF:7f00:1]:7070/", "gopher://[::ffff:7f00:1]:7070/"),
    ("  gopher://example.org/hURL:http://x.example/ ", "gopher://example.org/hURL:http://x.example/"),
]

NEWS = [
    ("news://example.org", "news://example.org/*"),
    ("News://Example.org:119/comp.lang.c", "news://example.org/comp.lang.c"),
    ("news://example.org:1119/comp.*", "news://example.org:1119/comp.*"),
    ("news://example.org/comp.lang.c++", "news://example.org/comp.lang.c++"),
    ("news://example.org/a%2Fb%40host.example", "news://example.org/a%2Fb@host.example"),
    ("news://example.org/alt.%3f", "news://example.org/alt.%3F"),
    ("news://[::1]/x@y", "news://[::1]/x@y"),
]

NONE = [
    "gopher:",
    "gopher:x",
    "gopher://",
    "gopher:///1/x",
    "gopher://.../",
    "gopher://a b/",
    "gopher://exa<mple.org/",
    "gopher://example.org:99999/",
    "gopher://example.org:0/",
    "gopher://[::1/",
    "gopher://1.2.3.4.5/",
    "gopher://example.org/0a%09search",
    "gopher://example.org/0a%0d%0aQUIT",
    "gopher://example.org/0a%0AQUIT",
    "gopher://example.org/0a%00",
    "gopher://example.org/0a\tb",
    "gopher://example.org/0a\r\nb",
    "gopher://example.org/%ffx",
    "gopher://example.org/0\ud800",
    "gopher://example.org/0" + "x" * (MAX_SELECTOR + 1),
    "gopher://example.org/0" + "%FF" * (MAX_URL // 3),
    "gopher://" + "a." * 130 + "org/",
    "news:comp.lang.c",
    "news:///comp.lang.c",
    "news://example.org/a b",
    "news://example.org/a%0D%0Aquit",
    "news://example.org/%3Ca@b%3E",
    "news://example.org/a@",
    "news://example.org/a,b",
    "news://example.org/a\ud800",
    "news://example.org/" + "x" * 461,
    "news://example.org/x@" + "y" * 247,
]


@pytest.mark.parametrize(("given_url", "expected"), GOPHER + NEWS, ids=lambda url: ascii(url[:50]))
def test_url_has_one_canonical_form(given_url: str, expected: str) -> None:
    """The canonical form is the expected one, and its own canonical form, also as a link of a web page."""
    assert canonical(given_url) == expected
    assert canonical(expected) == expected
    assert canonical(given_url, "http://example.org/dir/") == expected


@pytest.mark.parametrize("url", NONE, ids=lambda url: ascii(url[:50]))
def test_malformed_url_has_no_canonical_form(url: str) -> None:
    """A URL without a server, or with what would end the request or command of the protocol, is none."""
    assert canonical(url) is None


@given(st.sampled_from(["example.org", "[::1]:71", "EXAMPLE.org.:70"]), st.sampled_from("01hgI9"), st.binary(max_size=40))
def test_gopher_item_survives_its_url(server: str, kind: str, selector: bytes) -> None:
    """A canonical URL names exactly the item that it was made from; only line ends, TAB and NUL have none."""
    item = GopherItem(kind, selector)
    url = gopher_url(server, item)
    assert (url is None) == bool(set(selector) & set(b"\0\t\r\n"))
    if url is not None:
        assert gopher_item(url) == item
        assert canonical(url) == url


@given(st.binary(min_size=1, max_size=40))
def test_news_name_survives_its_url(name: bytes) -> None:
    """A canonical URL names exactly the group, pattern or article that it was made from, which has no white space."""
    url = news_url("example.org", name)
    if url is not None:
        assert canonical(url) == url
        assert news_name(url).name == name
        assert not set(name) & set(b" \t\r\n\0<>")


def test_kinds_of_news_are_told_by_the_name() -> None:
    """An `@` makes an article, `*` and `?` a pattern, anything else is a group."""
    assert news_name("news://h/a@b") == NewsName("article", b"a@b")
    assert news_name("news://h/*") == NewsName("groups", b"*")
    assert news_name("news://h/alt.%3F") == NewsName("groups", b"alt.?")
    assert news_name("news://h/alt.test") == NewsName("group", b"alt.test")


@given(st.text(max_size=30), st.integers(1, 65_535))
def test_authority_is_canonical_or_none(text: str, port: int) -> None:
    """What is accepted as host and port is its own canonical form, without a path, a user or white space."""
    found = canonical_authority(text, port)
    if found is not None:
        assert canonical_authority(found, port) == found
        assert not set(found) & set("/@?# \t\n")


def test_type_of_a_gopher_item_is_not_part_of_its_name() -> None:
    """The name of an item is the last segment of its selector; a menu at the root has none."""
    assert file_name("gopher://h/0readme.txt") == "readme.txt"
    assert file_name("gopher://h/0/a/b.txt") == "b.txt"
    assert file_name("gopher://h/1docs/") == "docs"
    assert file_name("gopher://h/") == ""
    assert frontier_key("gopher://h:71/0/x") == "gopher://h:71"


def test_endless_gopher_menus_look_like_a_trap() -> None:
    """A path of a selector that repeats is suspicious, as that of a web page is."""
    assert suspicion("gopher://h/1/a/b/a/b/a/b/a/b/a/b")
    assert suspicion("gopher://h/1/a/b") is None
