from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.identity import file_url, member_path, member_url
from processors.query.places import MAX_TERM, host, hosts, is_inside, segment_terms, segments, wanted
from processors.query.words import exact

NAMES = st.sampled_from(["docs", "Docs", "a b", "b.zip", "ä", "100%", "what?", "x=1", ".", "é\u0301", "n" * 300, "／"])
PLACES = st.sampled_from(["http://", "file://", "h", "/", "//", "#", "?", "%2F", "%20", "a", "B", ".", ":", "://", "℀", " "])
URLS = st.lists(PLACES | st.text(max_size=3), max_size=12).map("".join)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://Example.ORG/a", "example.org"),
        ("https://user:word@example.org:8443", "example.org"),
        ("http://example.org.:80/", "example.org"),
        ("http://example.org?x=http://b/", "example.org"),
        ("http://example.org#member", "example.org"),
        ("http://xn--mnchen-3ya.de/", "xn--mnchen-3ya.de"),
        ("http://MÜNCHEN.de/", "münchen.de"),
        ("http://[2001:DB8::1]:8080/a", "[2001:db8::1]"),
        ("http://192.0.2.1:80/", "192.0.2.1"),
        ("ftp://ftp.example.org/pub", "ftp.example.org"),
        ("file:///srv/a.zip#http://b/", ""),
        ("file://server/a", ""),
        ("FILE://server/a", ""),
        ("mailto:a@example.org", ""),
        ("http://", ""),
        ("", ""),
    ],
)
def test_host_is_a_bare_name(url: str, name: str) -> None:
    """A host is in lower case, without user, port and final dot; files and other addresses have none."""
    assert host(url) == name


@pytest.mark.parametrize(
    ("url", "names"),
    [
        ("http://a.b.example.org:80/x", ("a.b.example.org", "b.example.org", "example.org", "org")),
        ("http://localhost/", ("localhost",)),
        ("http://192.0.2.1/", ("192.0.2.1",)),
        ("http://[::ffff:192.0.2.1]/", ("[::ffff:192.0.2.1]",)),
        ("http://a..b/", ("a..b", "b")),
        (f"http://{'a.' * 200}org/", (f"{'a.' * 200}org",)),
        ("file:///srv/", ()),
    ],
)
def test_names_above_a_host(url: str, names: tuple[str, ...]) -> None:
    """A host is found by itself and by each name above it, an address only by itself."""
    assert hosts(url) == names


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("file:///srv/Docs/a.txt", ("file://", "srv", "docs")),
        ("file:///srv/docs/", ("file://", "srv", "docs")),
        ("file:///a.txt", ("file://",)),
        ("file:///srv/my%20docs/what%3F/a", ("file://", "srv", "my docs", "what?")),
        ("http://Example.org:8080/a/b.html", ("http://example.org:8080", "a")),
        ("http://example.org", ("http://example.org",)),
        ("http://user@example.org/a//b", ("http://example.org", "a")),
        ("http://example.org?x=/a/b", ("http://example.org",)),
        ("http://example.org/a/b?x=/c/d", ("http://example.org", "a")),
        ("http://example.org/b.zip?v=1/2#in/x", ("http://example.org", "b.zip?v=1%2f2", "in")),
        ("http://example.org/b.zip#x", ("http://example.org", "b.zip")),
        ("file:///srv/b.zip#./in/c.tar#d/e?f/g", ("file://", "srv", "b.zip", "in", "c.tar", "d", "e?f")),
        ("http://example.org/a%2Fb/c", ("http://example.org", "a%2fb")),
        ("http://example.org/x%3A／／y/c", ("http://example.org", "x:%2f%2fy")),
        ("file:///%FF/%c3%84/x", ("file://", "\ufffd", "ä")),
        ("mailto:a", ()),
    ],
)
def test_segments_are_folders_and_archives(url: str, found: tuple[str, ...]) -> None:
    """Segments are scheme and authority, then folders and archives, decoded and folded, without the object's own name."""
    assert segments(url) == found


@pytest.mark.parametrize(
    ("place", "found"),
    [
        ("docs/bundle.zip", ("docs", "bundle.zip")),
        ("docs/bundle.zip/", ("docs", "bundle.zip")),
        (" My Docs ", ("my docs",)),
        ("file:///srv/docs/", ("file://", "srv", "docs")),
        ("/srv//docs", ("file://", "srv", "docs")),
        ("/", ("file://",)),
        ("./docs", ("docs",)),
        ("http://Example.org/a", ("http://example.org", "a")),
        ("http://example.org", ("http://example.org",)),
        ("http://example.org/b.zip?v=1/2", ("http://example.org", "b.zip?v=1%2f2")),
        ("bundle.zip#inner", ("bundle.zip", "inner")),
        ("#inner", ("inner",)),
        ("what?/my%20docs", ("what?", "my docs")),
    ],
)
def test_places_are_segments(place: str, found: tuple[str, ...]) -> None:
    """A place is names of folders and archives, a URL, or an absolute path of this machine."""
    assert wanted(place) == found


@pytest.mark.parametrize("place", ["", " ", ".", "#", "./.", "%20", "http://", "http:///a", "://"])
def test_empty_places_are_refused(place: str) -> None:
    """A place without names is refused, as is the URL of no host."""
    with pytest.raises(ValueError, match="is expected"):
        wanted(place)


@pytest.mark.parametrize(
    ("place", "inside"),
    [
        ("docs", True),
        ("DOCS/bundle.zip", True),
        ("bundle.zip#in", True),
        ("bundle.zip/in", True),
        ("/srv", True),
        ("/", True),
        ("file:///srv/docs/bundle.zip", True),
        ("srv/docs/bundle.zip/in", True),
        ("/docs", False),
        ("doc", False),
        ("srv/bundle.zip", False),
        ("docs/srv", False),
        ("in/read.me", False),
        ("read.me", False),
        ("file:///srv/docs/bundle.zip#in/read.me", False),
        ("http://srv/docs", False),
    ],
)
def test_a_member_is_inside_of_folders_and_archives(place: str, inside: bool) -> None:
    """A member is inside of each run of whole segments that contain it; an absolute place begins at the beginning."""
    assert is_inside(segments("file:///srv/docs/bundle.zip#in/read.me"), wanted(place)) == inside


@given(st.lists(NAMES, min_size=1, max_size=4), st.lists(NAMES, max_size=3))
def test_a_file_is_inside_of_each_folder_above_it(folders: list[str], members: list[str]) -> None:
    """A file or member is inside of each place that its own URL begins with, also as a path of this machine or in other case."""
    url = file_url("/".join(["", *folders]).encode())
    inner = member_url(url, "/".join(member_path(name.encode()) for name in [*members, "x"]))
    assert is_inside(segments(inner), wanted(url))
    assert is_inside(segments(inner), wanted(url[len("file://") :].replace("docs", "DOCS")))
    assert len(segments(url)) == 1 + len([name for name in folders[:-1] if name != "."])
    if members:
        assert is_inside(segments(inner), wanted(inner.rpartition("/")[0]))


@given(URLS)
def test_only_the_first_segment_has_an_authority(url: str) -> None:
    """No segment is empty, and only the first can have a slash, so that an absolute place begins at the beginning."""
    found = segments(url)
    assert all(found)
    assert not any("/" in each for each in found[1:])
    assert "/" not in "".join(found[:1]) or "://" in url


@given(URLS, URLS)
def test_phrases_of_terms_find_what_is_inside(url: str, place: str) -> None:
    """Terms have no white space, and a phrase of them is found in those of a URL if and only if the place is in its segments."""
    try:
        asked = wanted(place)
    except ValueError:
        return
    for found in (segments(url), segments(f"{place}/x"), segments(f"{url}/{place}/x")):
        text = " ".join(["", *segment_terms(found), ""])
        assert len(text.split()) == len(found)
        assert (" ".join(["", *segment_terms(asked), ""]) in text) == is_inside(found, asked)


@given(st.lists(st.text(min_size=1) | st.text("ab%= ", min_size=150, max_size=250), unique=True))
def test_terms_are_distinct_and_short(names: list[str]) -> None:
    """Different segments have different terms without white space, of at most MAX_TERM characters."""
    terms = segment_terms(names)
    assert len(set(terms)) == len(names)
    assert all(term.split() == [term] and len(term) <= MAX_TERM for term in terms)


@given(URLS)
def test_host_is_folded(url: str) -> None:
    """The host of a URL is one as it is compared, and so is each name above it."""
    assert hosts(url)[:1] == ((host(url),) if host(url) else ())
    assert all(name and exact(name) == name for name in hosts(url))
