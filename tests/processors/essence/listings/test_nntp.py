from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.essence.listings.listing_format import ListedChild
from processors.essence.listings.nntp import MAX_LINE, MEDIA, parse
from processors.urls import canonical
from schemas.records import Complete, CrawlEvent, Partial, Rejected, Root

SAMPLE = Path(__file__).parents[3] / "samples" / "listings" / "overview.nntp"
URL = "news://news.example.org/local.one"
ROW = b"1\tsubject\tauthor\tdate\t<a@example.org>\t\t100\t5\r\n"


def test_sample_gives_its_articles() -> None:
    """The golden sample: articles with their subjects, and their numbers as marks; of two groups, the first by name counts."""
    found = parse(io.BytesIO(SAMPLE.read_bytes()), URL)
    assert found.children == (
        ListedChild(url="news://news.example.org/a17@example.org", mark="17", text="Re: moles"),
        ListedChild(url="news://news.example.org/a%2F18%3Fx@example.org", mark="18", text="Wühlmäuse"),
        ListedChild(url="news://news.example.org/a20@example.org", mark="9", text="Both groups"),
    )
    assert (found.coverage, found.whole, found.reason) == ("complete", True, "")


def test_list_of_groups_gives_listings() -> None:
    """Groups are listings without a mark; aliases and groups without articles of their own are left out."""
    active = b"local.one 0000000018 0000000001 y\r\nlocal.two 0 1 m\r\nold 1 1 =local.one\r\nbin 9 1 j\r\na,b 1 1 y\r\n"
    found = parse(io.BytesIO(active), "news://news.example.org:8119/local.*")
    assert found.children == (
        ListedChild(url="news://news.example.org:8119/local.one", kind="listing"),
        ListedChild(url="news://news.example.org:8119/local.two", kind="listing"),
    )
    assert (found.coverage, found.whole) == ("complete", True)


@pytest.mark.parametrize(
    "row", [b"x\ty\r\n", b"\r\r\nno overview\r\n", b"7\tcut", b"1" * 21 + ROW, b"8\t" + b"x" * MAX_LINE + b"\r\n"]
)
def test_malformed_line_proves_nothing(row: bytes) -> None:
    """With a line that is cut, too long or none of an overview, the listing is not whole: nothing is removed by it."""
    found = parse(io.BytesIO(ROW + row), URL)
    assert [child.url for child in found.children] == ["news://news.example.org/a@example.org"]
    assert (found.whole, found.reason) == (False, "a malformed line")


@pytest.mark.parametrize(
    "identifier", [b"<>", b"<a>", b"a@b", b"<a b@c>", b"<a@b\x00>", b"<a@b", b"<" + b"x" * 300 + b"@y>", b"<a<@b>"]
)
def test_article_without_a_url_is_left_out(identifier: bytes) -> None:
    """An identifier that no URL may have makes no child, and the rest stays whole."""
    found = parse(io.BytesIO(ROW.replace(b"<a@example.org>", identifier)), URL)
    assert (found.children, found.whole) == ((), True)


def test_empty_group_is_whole() -> None:
    """A group without articles is a listing without children."""
    assert parse(io.BytesIO(b""), URL).whole


def test_other_body_is_no_overview() -> None:
    """What has no line of an overview is not taken for one."""
    with pytest.raises(ValueError, match="not the overview"):
        parse(io.BytesIO(b"<html>\n<body>\n"), URL)


def test_too_many_articles_end_the_listing(monkeypatch: pytest.MonkeyPatch) -> None:
    """An overview of more articles than allowed is not whole."""
    monkeypatch.setattr("processors.essence.listings.nntp.MAX_CHILDREN", 2)
    found = parse(io.BytesIO(b"".join(ROW.replace(b"a@", b"a%d@" % number) for number in range(5))), URL)
    assert (len(found.children), found.whole, found.reason) == (2, False, "more than 2 entries")


@given(st.lists(st.binary(max_size=80), max_size=6), st.sampled_from([URL, "news://h/*"]))
def test_any_bytes_give_canonical_children_or_none(rows: list[bytes], url: str) -> None:
    """Whatever a server sends, children have canonical URLs of its own, once each."""
    try:
        found = parse(io.BytesIO(ROW + b"g 1 1 y\r\n" + b"\r\n".join(rows)), url)
    except ValueError:
        return
    children = [child.url for child in found.children]
    assert all(canonical(child) == child and child.startswith(url.rpartition("/")[0]) for child in children)
    assert len(set(children)) == len(children)


def test_essence_lists_a_group_without_a_summary(run: Callable[..., list[Any]]) -> None:
    """An overview gives one event for its server with marks, complete; a malformed one is rejected, and removes nothing."""
    root = Root(url=URL, run="r1")
    event, end = run(SAMPLE.read_bytes(), URL, content_type=MEDIA, root=root)
    assert isinstance(event, CrawlEvent)
    assert (event.host, event.coverage) == ("news://news.example.org", "complete")
    assert {link.mark for link in event.links} == {"17", "18", "9"}
    assert isinstance(end, Complete)
    letter, event, end = run(SAMPLE.read_bytes() + b"9\tcut", URL, content_type=MEDIA, root=root)
    assert isinstance(letter, Rejected)
    assert (letter.reason, event.coverage) == ("a malformed line", "rolling")
    assert isinstance(end, Partial)
