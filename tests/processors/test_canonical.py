from __future__ import annotations

import os

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from processors.identity import file_path, file_url
from processors.urls import MAX_PATH, MAX_URL, canonical, canonicalizer, suspicion

WEB = [
    ("http://example.org", "http://example.org/"),
    ("HTTP://Example.ORG:80/", "http://example.org/"),
    ("https://example.org:443/x", "https://example.org/x"),
    ("https://example.org:80/x", "https://example.org:80/x"),
    ("http://example.org/a/./b/../c/%2e%2E/d#f", "http://example.org/a/d"),
    ("http://example.org/../../x", "http://example.org/x"),
    ("http://example.org?", "http://example.org/"),
    ("http://example.org/?#x", "http://example.org/"),
    ("http://example.org/?x=?", "http://example.org/?x=?"),
    ("http://user:secret@example.org/", "http://example.org/"),
    ("http://example.org@evil.example/", "http://evil.example/"),
    ("http://example.org./x", "http://example.org/x"),
    ("http://bücher.example/ä ö", "http://xn--bcher-kva.example/%C3%A4%20%C3%B6"),
    ("http://EX%41MPLE.org/", "http://example.org/"),
    ("http://example.org/%7euser/%c3%a4/%2f", "http://example.org/~user/%C3%A4/%2F"),
    ("http://example.org/100%/%zz?a=%", "http://example.org/100%25/%25zz?a=%25"),
    ("http://example.org/%%34%31", "http://example.org/%2541"),
    ("http:\\\\example.org\\a\\b", "http://example.org/a/b"),
    ("  http://example.org/a\n\tb  ", "http://example.org/ab"),
    ("http://0x7f.1/", "http://127.0.0.1/"),
    ("http://2130706433/", "http://127.0.0.1/"),
    ("http://0177.0.0.1/", "http://127.0.0.1/"),
    ("http://127.1/", "http://127.0.0.1/"),
    ("http://①②⑦.⓪.0.1/", "http://127.0.0.1/"),
    ("http://127。0。0。1/", "http://127.0.0.1/"),
    ("http://127.0.0.1./", "http://127.0.0.1/"),
    ("http://127.0.0.1../", "http://127.0.0.1/"),
    ("http://[::FFFF:7f00:1]:8080/", "http://[::ffff:7f00:1]:8080/"),
    ("http://[0:0:0:0:0:0:0:1]/", "http://[::1]/"),
    ("http://xn--bcher-kva.example/", "http://xn--bcher-kva.example/"),
]

NONE = [
    "",
    "x",
    "/x",
    "//example.org/",
    "http://",
    "http://.",
    "http://..",
    "http:// /",
    "http://a b/",
    "http://exa<mple.org/",
    "http://example.org:99999/",
    "http://[::1/",
    "http://[fe80::1%25eth0]/",
    "http://1.2.3.4.5/",
    "http://256.1.1.1/",
    "http://a.1../",
    "http://example.org\x00/",
    "http://" + "a." * 130 + "org/",
    "http://example.org/\ud800",
    "javascript:alert(1)",
    "data:text/html,x",
    "mailto:a@example.org",
    "ftp://",
    "ftp://example.org/a%2Fb",
    "ftp://example.org/a%0D%0ADELE%20b",
    "ftp://example.org/a%00b",
    "ftp://example.org/..;type=i",
    "ftp://example.org/%2F../x",
    "ftp://example.org/" + "x" * MAX_PATH,
    "gopher:example.org",
    "ws://example.org/",
    "about:blank",
    "file://server/share/x",
    "file:///a%2Fb",
    "file:///a%00b",
    "http://example.org/" + "x" * MAX_URL,
    "http://example.org/" + "x" * 10_000_000,
]

FILES = [
    ("file:///usr/share/doc", "file:///usr/share/doc"),
    ("file:///usr/share/doc/", "file:///usr/share/doc/"),
    ("file://localhost/usr/x", "file:///usr/x"),
    ("file:/usr/../etc/x?y#z", "file:///etc/x"),
    ("file:///a%7eb/ä b", "file:///a~b/%C3%A4%20b"),
    ("file:///a%FFb[1]", "file:///a%FFb%5B1%5D"),
    ("file:///", "file:///"),
]

FTP = [
    ("ftp://example.org", "ftp://example.org/"),
    ("FTP://Example.ORG:21/pub", "ftp://example.org/pub"),
    ("ftp://example.org:2121/pub/", "ftp://example.org:2121/pub/"),
    ("ftp://user:secret@example.org./pub//a;type=i", "ftp://example.org/pub/a"),
    ("ftp://example.org/pub;TYPE=D", "ftp://example.org/pub/"),
    ("ftp://example.org/a;type=x", "ftp://example.org/a%3Btype=x"),
    ("ftp://example.org/a%3Btype=i", "ftp://example.org/a%3Btype=i"),
    ("ftp://example.org/%2Fetc/motd", "ftp://example.org/%2F/etc/motd"),
    ("ftp://example.org/%2f/etc/motd", "ftp://example.org/%2F/etc/motd"),
    ("ftp://example.org/%2F%2F", "ftp://example.org/%2F/"),
    ("ftp://example.org/a?b#c", "ftp://example.org/a%3Fb"),
    ("ftp://example.org/a/../b/%2e%2E/c", "ftp://example.org/c"),
    ("ftp://example.org/%7ea/%c3%a4 %ff", "ftp://example.org/~a/%C3%A4%20%FF"),
    ("ftp://127.1/", "ftp://127.0.0.1/"),
]

RELATIVE = [
    ("x.html", "http://a.example/b/c.html", "http://a.example/b/x.html"),
    ("../../x", "http://a.example/b/c/d", "http://a.example/x"),
    ("?q", "http://a.example/b?p", "http://a.example/b?q"),
    ("#f", "http://a.example/b", "http://a.example/b"),
    ("//b.example/x", "https://a.example/", "https://b.example/x"),
    ("https://b.example", "http://a.example/", "https://b.example/"),
    ("x.html#y", "file:///a/b/c.html", "file:///a/b/x.html"),
    ("http://a.example/", "file:///a/b", "http://a.example/"),
    ("file:///etc/passwd", "http://a.example/", None),
    ("file:///etc/passwd", "ftp://a.example/", None),
    ("ftp://b.example/x", "http://a.example/", "ftp://b.example/x"),
    ("../x", "ftp://a.example/%2F/b/c/d", "ftp://a.example/%2F/b/x"),
    ("x", "mailto:a@b", None),
    ("x", "nonsense", None),
    ("", "http://a.example/b#c", "http://a.example/b"),
]


@pytest.mark.parametrize(("url", "expected"), WEB + FILES + FTP)
def test_canonical_form(url: str, expected: str) -> None:
    """Each spelling of a URL has one canonical form."""
    assert canonical(url) == expected
    assert canonical(expected) == expected


@pytest.mark.parametrize("url", NONE, ids=lambda url: ascii(url[:30]))
def test_unsupported_url_is_none(url: str) -> None:
    """The canonical form of a malformed or too long URL, or of another scheme, is None."""
    assert canonical(url) is None


@pytest.mark.parametrize(("url", "base", "expected"), RELATIVE)
def test_relative_url_is_resolved(url: str, base: str, expected: str | None) -> None:
    """A relative URL is resolved against its base; a web page cannot link to local files."""
    assert canonical(url, base) == expected


HOSTILE = st.text(
    st.sampled_from("aZ09.%-_~/\\?#&=;:@[]! \t\n\u00e4\u2460\u3002\ud800") | st.characters(codec="utf-8"), max_size=40
)


@given(scheme=st.sampled_from(["http://", "https://", "http:", "file://", "file:///", "ftp://", ""]), rest=HOSTILE)
@example(scheme="http://", rest="a/?%%34%31")
@example(scheme="http://", rest="1.2.3.4..")
@example(scheme="file:///", rest="C|/../x")
def test_canonical_is_idempotent(scheme: str, rest: str) -> None:
    """A canonical form is its own canonical form: a supported scheme, ASCII, no fragment, no credentials."""
    once = canonical(scheme + rest)
    if once is not None:
        assert canonical(once) == once
        assert once.isascii()
        assert once.startswith(("http://", "https://", "file:///", "ftp://"))
        assert "#" not in once
        assert "@" not in once.split("/")[2]


@given(
    scheme=st.sampled_from(["http://", "https://", "file://", "file:///"]),
    host=st.text(st.sampled_from("ab0x-._%"), max_size=12),
    rest=st.text(st.sampled_from("aA0-._~/%:@?|"), max_size=20),
    base=st.sampled_from(["", "http://example.org/", "file:///x"]),
)
@example(scheme="http://", host="a.0xff", rest="/", base="")
@example(scheme="http://", host="xn--a.ab", rest="/", base="")
@example(scheme="http://", host="a.b.abc", rest="/-/a.b/..", base="file:///x")
@example(scheme="file://", host="", rest="/a/b", base="http://example.org/")
def test_fast_path_equals_parser(scheme: str, host: str, rest: str, base: str) -> None:
    """The fast path for URLs already canonical gives the parser's result (a fragment forces parsing)."""
    url = scheme + host + rest
    assert canonical(url, base) == canonical(f"{url}#", base)


@given(st.binary(min_size=1, max_size=60).filter(lambda name: b"\0" not in name and b"/" not in name and name not in (b".", b"..")))
def test_every_file_has_a_canonical_url(name: bytes) -> None:
    """The URL of any path is canonical, and converts back to the path."""
    url = file_url(b"/a/" + name)
    assert canonical(url) == url
    assert file_path(url) == b"/a/" + name


def test_long_local_path_has_url() -> None:
    """A local path may be as long as the system allows."""
    url = file_url(b"/" + os.fsencode("ä/") * 1_300)
    assert canonical(url) == url


SAFE = [
    "http://a.example/",
    "http://a.example/2024/01/01/a/b/c/d/e/f.html",
    "http://a.example/a/b/a/b/c?x=1&y=2&x=3",
    "http://a.example/en/docs/en/x",
    "http://a.example/a//b",
    "http://a.example/?" + "&".join(f"p{n}=1" for n in range(16)),
    "http://a.example/x?url=http://b.example/?y",
    "file:///a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a",
]
TRAPS = [
    ("http://a.example/" + "x/y" * 30, "path segments"),
    ("http://a.example/b/b/b", "repeated"),
    ("http://a.example/x/b/c/b/c/b/c", "repeated"),
    ("http://a.example/x/b/c/d/b/c/d/b/c/d/y", "repeated"),
    ("http://a.example/b/1/b/2/b/3/b/4/b", "'b' occurs 5 times"),
    ("http://a.example/x?" + "y" * 513, "512 characters"),
    ("http://a.example/x?" + "&".join(f"p{n}=1" for n in range(17)), "16 parameters"),
    ("http://a.example/x?a=1&a=2&a=3&a=4&a=5&a=6&a=7", "'a' occurs 7 times"),
    ("http://a.example/x?u=/x?u=/x?u=/x", "more than one ? in the query"),
]


@pytest.mark.parametrize("url", SAFE)
def test_ordinary_url_is_not_suspicious(url: str) -> None:
    """Ordinary URLs do not look like traps, and neither do file URLs."""
    assert suspicion(url) is None


@pytest.mark.parametrize(("url", "reason"), TRAPS)
def test_self_extending_url_is_suspicious(url: str, reason: str) -> None:
    """Self-extending URLs are recognized by their shape, and the reason names it."""
    found = suspicion(url)
    assert found is not None
    assert reason in found.reason
    assert found.reason.startswith("trap: ")


SIMILAR = [
    ("http://a.example/b/b/b", "http://a.example/x/b/b/b/b/y", True),
    ("http://a.example/b/c/b/c/b/c", "http://a.example/c/b/c/b/c/b/x", True),
    ("http://a.example/b/1/b/2/b/3/b/4/b", "http://a.example/b/9/b/8/b/7/b/6/b/5/b", True),
    ("http://a.example/1/b/1/c/1/b/1/d/1/b/b/b", "http://a.example/b/1/b/c/1/b/1/d/1/b/1/b", True),
    ("http://a.example/b/b/b", "http://a.example/c/c/c", False),
    ("http://a.example/x?" + "y" * 513, "http://a.example/x?" + "&".join(f"p{n}=1" for n in range(17)), True),
    ("http://a.example/x?" + "y" * 513, "http://a.example/z?" + "y" * 513, False),
    ("http://a.example/a/" + "x/y" * 30, "http://a.example/a/" + "z/w" * 30, True),
]


@pytest.mark.parametrize(("url", "other", "same"), SIMILAR)
def test_urls_of_one_trap_have_one_pattern(url: str, other: str, same: bool) -> None:
    """URLs that one trap makes have the same pattern, wherever its cycle begins and however often it is repeated."""
    found = [suspicion(each) for each in (url, other)]
    assert all(found)
    assert len({each.pattern for each in found if each}) == (1 if same else 2)


@given(st.text(st.sampled_from("ab/?&=;"), max_size=300))
def test_reason_of_suspicion_is_bounded(rest: str) -> None:
    """The reason for any URL is bounded."""
    found = suspicion("http://a.example/" + rest)
    assert found is None or len(found.reason) <= 150


@given(
    folders=st.lists(st.one_of(st.sampled_from([url for url, _ in WEB] + NONE), st.text(max_size=12)), min_size=1, max_size=3),
    names=st.lists(
        st.one_of(st.sampled_from(["", ".", "..", "%2e", "x", "a.html", "?x=/", "x#y", "8080", "x" * 300]), st.text(max_size=6))
    ),
    base=st.sampled_from(["http://127.0.0.1:8080/a/b", "https://example.org/", "file:///home/x"]),
)
@example(folders=["http://127.0.0.1:8080/a"], names=["x", "y.html", "..", "."], base="http://127.0.0.1:8080/")
@example(folders=["http://h:1/a?b=", "http://h:1/a#b", "http:/", "http://1.2.3"], names=["x", "4"], base="https://example.org/")
def test_many_urls_have_the_same_form_as_each_alone(folders: list[str], names: list[str], base: str) -> None:
    """The form of a URL does not depend on the URLs that were made canonical before it."""
    of = canonicalizer(base)
    for url in [f"{folder}/{name}" for folder in folders for name in names]:
        assert of(url) == canonical(url, base)
