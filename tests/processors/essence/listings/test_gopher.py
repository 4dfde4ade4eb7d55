from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.essence.listings.gopher import MAX_LINE, MEDIA, NO_URL, REFUSED, Failure, failure, parse
from processors.essence.listings.listing_format import ListedChild
from processors.urls import canonical
from schemas.records import Complete, CrawlEvent, Partial, Root, Summary

Run = Callable[..., list[Any]]

SAMPLE = Path(__file__).parents[3] / "samples" / "listings" / "gopher.menu"
URL = "gopher://gopher.example.org/"
SERVER = b"gopher.example.org\t70\r\n"


def item(kind: str, selector: str = "/x", text: str = "text", host: str = "gopher.example.org", port: str = "70") -> bytes:
    """Return a line of a menu."""
    return f"{kind}{text}\t{selector}\t{host}\t{port}\r\n".encode()


def urls(menu: bytes) -> list[str]:
    """Return the URLs that a menu lists."""
    return [child.url for child in parse(io.BytesIO(menu), URL).children]


def test_sample_gives_its_children() -> None:
    """The golden sample: files, menus and links are children in their order, with the text of their lines."""
    found = parse(io.BytesIO(SAMPLE.read_bytes()), URL)
    assert found.children == (
        ListedChild(url="gopher://gopher.example.org/1/docs/", kind="listing", text="Documents"),
        ListedChild(url="gopher://gopher.example.org/0/note.txt", text="A note"),
        ListedChild(url="gopher://gopher.example.org/9/pack.tar", text="Archive"),
        ListedChild(url="gopher://gopher.example.org/g/mole.gif", text="Picture"),
        ListedChild(url="http://www.example.org/", text="The web"),
        ListedChild(url="gopher://[2001:db8::7]:7070/1/", kind="listing", text="Another server"),
    )
    assert (found.coverage, found.whole, found.reason) == ("open", True, "")


def test_sample_refuses_what_is_not_gathered() -> None:
    """Searches, telnet sessions and phone books are refused, each with its rule; what has no host is left out."""
    assert dict(parse(io.BytesIO(SAMPLE.read_bytes()), URL).refused) == {
        "gopher://gopher.example.org/7/find": REFUSED["7"],
        "gopher://gopher.example.org:23/8guest": REFUSED["8"],
        "gopher://cso.example.org:105/2": REFUSED["2"],
    }


@pytest.mark.parametrize("selector", ["a%0d%0ab", "/plain", "../../x", "a?b", "a b", "ä"])
def test_selector_is_opaque(selector: str) -> None:
    """A selector is sent as it is: neither an escape nor a dot segment means anything in it."""
    (url,) = urls(item("0", selector))
    assert canonical(url) == url
    assert "%0d" not in url
    assert "%0D" not in url


@pytest.mark.parametrize("selector", ["a\rb", "a\0b", "x" * 3_000])
def test_selector_that_could_end_a_request_is_refused(selector: str) -> None:
    """A selector with CR or NUL, or one that is too long, has no URL; its server is named in the refusal."""
    menu = item("0", selector) + item("0", "/good")
    assert urls(menu) == ["gopher://gopher.example.org/0/good"]
    assert parse(io.BytesIO(menu), URL).refused == (("gopher://gopher.example.org/", NO_URL),)


def test_line_feed_in_a_name_makes_a_malformed_line() -> None:
    """A name with CR LF breaks its item into two lines that are no items; the others stay."""
    assert urls(b"0na\r\nme\t/x\t" + SERVER[:-2] + b"\r\n" + item("0", "/good")) == ["gopher://gopher.example.org/0/good"]


@pytest.mark.parametrize("host", ["", "a b", "evil@gopher.example.org", "a/b", "host?x", "[::1", "x" * 300])
def test_host_without_a_url_is_left_out(host: str) -> None:
    """What is not a host leads nowhere."""
    assert urls(item("0", host=host)) == []


def test_links_of_files_are_no_children() -> None:
    """A menu names files of this machine in vain; other protocols only where they are gathered."""
    links = [
        "URL:file:///etc/passwd",
        "URL:javascript:alert(1)",
        "/URL:https://www.example.org/a",
        "URL:news://news.example.org/x.y",
    ]
    assert urls(b"".join(item("h", link) for link in links)) == ["https://www.example.org/a", "news://news.example.org/x.y"]


def test_menu_lists_each_item_once_and_never_itself() -> None:
    """An item that is repeated, or the menu itself, is no further child."""
    assert urls(item("1", "") + item("0", "/a") + item("0", "/a", text="again")) == ["gopher://gopher.example.org/0/a"]


@pytest.mark.parametrize("end", [b"", b".", b".\n", b".\r\n", b".\r\n0x\t/late\t" + SERVER])
def test_menu_may_end_with_the_connection(end: bytes) -> None:
    """Many servers leave out the last line; what follows it is no part of the menu."""
    found = parse(io.BytesIO(item("0", "/a") + end), URL)
    assert [child.url for child in found.children] == ["gopher://gopher.example.org/0/a"]
    assert found.whole


@pytest.mark.parametrize("cut", [b"0b\t/b\tgopher.example.org\t7", b"0" + b"b" * MAX_LINE + b"\t/b\t" + SERVER])
def test_cut_menu_is_not_whole(cut: bytes) -> None:
    """A line that was cut, or is too long, is no item, and the menu proves nothing about what is missing in it."""
    found = parse(io.BytesIO(item("0", "/a") + cut), URL)
    assert [child.url for child in found.children] == ["gopher://gopher.example.org/0/a"]
    assert not found.whole
    assert found.reason


def test_too_many_items_end_the_menu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A menu of more children than allowed is not whole."""
    monkeypatch.setattr("processors.essence.listings.gopher.MAX_CHILDREN", 3)
    found = parse(io.BytesIO(b"".join(item("0", f"/{number}") for number in range(9))), URL)
    assert (len(found.children), found.whole, found.reason) == (3, False, "more than 3 items")


@pytest.mark.parametrize("body", [b"<html>\r\n<body>\r\n", b"\x00\x01\n\xff\n", b"just text\n"])
def test_other_body_is_no_menu(body: bytes) -> None:
    """What has no line of a menu is not taken for one."""
    with pytest.raises(ValueError, match="not a Gopher menu"):
        parse(io.BytesIO(body), URL)


@given(st.lists(st.binary(max_size=60), max_size=8), st.sampled_from([b"\r\n", b"\n", b"\t"]))
def test_any_bytes_give_canonical_children_or_no_menu(parts: list[bytes], between: bytes) -> None:
    """Whatever a server sends, children have canonical URLs, once each, and nothing but ValueError is raised."""
    body = between.join([b"0a\t/a\tgopher.example.org\t70", *parts])
    try:
        found = parse(io.BytesIO(body), URL)
    except ValueError:
        return
    children = [child.url for child in found.children]
    assert all(canonical(url) == url for url in children)
    assert len(set(children)) == len(children)
    assert all(canonical(url) == url for url, _ in found.refused)


ERRORS: list[tuple[bytes, bool | None]] = [
    (b"3'/x' does not exist (no handler found)\t\terror.host\t1\r\n", True),
    (b"3Error: File or directory not found! (null)\tTITLE\tnull.host\t1\r\ni___\t\tnull.host\t1\r\n.\r\n", True),
    (b"Error: File or directory not found! (null)\r\n____\r\n    Gophered by Gophernicus/3.1.1 on Debian/12\r\n", True),
    (
        b"<!DOCTYPE HTML PUBLIC>\n<HTML>\n<HEAD>\n  <TITLE>Error: File or directory not found! x</TITLE> Gophered by Gophernicus",
        True,
    ),
    (b"Error: File or directory not found! (null)\r\n", True),
    (b"3Access denied\t\terror.host\t1\r\n", False),
    (b"3Server too busy", None),
    (b"Error: File or directory not found!\r\nis what the server says.\r\n", None),
    (b"iAll is well\t\tnull.host\t1\r\n", None),
    (b"", None),
]


@pytest.mark.parametrize(("answer", "missing"), ERRORS, ids=lambda value: str(value)[:40])
def test_error_is_recognized_by_its_form(answer: bytes, missing: bool | None) -> None:
    """An answer is an error by its form alone; whether the item is missing, by its words."""
    found = failure(answer)
    assert (found.missing if found else None) == missing


def test_table_is_not_an_error() -> None:
    """In place of a file, a single item of type 3 is an error, but a table that begins with a 3 is not."""
    error = b"3'/x' does not exist\t\terror.host\t1\r\n"
    assert [failure(answer, menu=False) for answer in (b"3\t1\t2\t5\n4\t1\t2\t6\n", error + error)] == [None, None]
    for end in (b"", b".\r\n", b".\r\n\r\n"):
        assert failure(error + end, menu=False) == Failure("'/x' does not exist", missing=True)


def test_essence_summarizes_a_menu_and_discovers_its_items(run: Run) -> None:
    """A menu gives its summary, its items as discovered events by host, and its other items as refused ones."""
    root = Root(url=URL, run="r1")
    records = run(SAMPLE.read_bytes(), URL, content_type=MEDIA, root=root)
    (summary,) = [r for r in records if isinstance(r, Summary)]
    assert (summary.type, summary.attributes["title"]) == ("GopherMenu", ("Welcome to the burrow",))
    assert summary.attributes["url-references"] == ("http://www.example.org/",)
    events = [r for r in records if isinstance(r, CrawlEvent)]
    found = {event.host: {link.url for link in event.links} for event in events if event.kind == "discovered"}
    assert set(found) == {"gopher://gopher.example.org", "http://www.example.org", "gopher://[2001:db8::7]:7070"}
    assert found["gopher://gopher.example.org"] == {c.url for c in parse(io.BytesIO(SAMPLE.read_bytes()), URL).children[:4]}
    assert {event.coverage for event in events if event.kind == "discovered"} == {"open"}
    assert {event.reason for event in events if event.kind == "refused"} == {REFUSED["7"], REFUSED["8"], REFUSED["2"]}
    assert isinstance(records[-1], Complete)


def test_essence_reports_a_cut_menu_as_partial(run: Run) -> None:
    """A menu that was cut keeps its items, and ends in a Partial with the reason: nothing is removed."""
    records = run(item("0", "/a") + b"0b\t/b", URL, content_type=MEDIA, root=Root(url=URL, run="r1"))
    assert [link.url for r in records if isinstance(r, CrawlEvent) for link in r.links] == ["gopher://gopher.example.org/0/a"]
    assert isinstance(records[-1], Partial)
    assert "truncated" in records[-1].reason


def test_menu_is_never_recognized_by_its_content(run: Run) -> None:
    """A menu that a web server sends as text is text: its items are not followed."""
    records = run(SAMPLE.read_bytes(), "http://example.org/menu", content_type="text/plain", root=Root(url=URL, run="r1"))
    assert not [r for r in records if isinstance(r, CrawlEvent)]
