"""Readings of a ruby (furigana, pinyin) are no part of the running text of a page."""

import io
from collections.abc import Callable

import pytest

from processors.essence.summarize import Facts, Found, summarize
from tests.processors.essence.summarize.packages import document

Make = Callable[..., Found]
TOKYO = "<ruby>東<rp>(</rp><rt>とう</rt><rp>)</rp>京<rp>(</rp><rt>きょう</rt><rp>)</rp></ruby>"
ROWS = "<ruby>\n  漢 <rp>(</rp><rt>hàn</rt><rp>)</rp>\n  字 <rp>(</rp><rt>zì</rt><rp>)</rp>\n</ruby>"


def summarize_body(body: bytes, kind: str, full: int) -> str:
    """Return the partial or full text of a body."""
    found = Found(full)
    summarize(Facts(b"x", "http://example.org/x", kind, "text/html", len(body), 0, "utf-8"), io.BytesIO(body), found)
    return found.said


@pytest.mark.parametrize("full", [0, 1 << 20])
@pytest.mark.parametrize("kind", ["HTML", "EPUB"])
@pytest.mark.parametrize(
    ("marked", "text"),
    [
        (f"{TOKYO}へ行く。", "東京へ行く。"),
        (f"これは{ROWS}です", "これは漢字です"),
        ("<ruby><rb>北<rb>京<rt>Běi<rt>jīng<rtc><rt>Peking</rtc></ruby>。", "北京。"),
        ("<ruby><span>大阪</span><rt><b>おお</b>さか</rt></ruby>城", "大阪城"),
        ("<RUBY>京都<RT>きょうと</RT></RUBY>府", "京都府"),
        ("a <ruby>base line <rt>note</rt></ruby>of text", "a base line of text"),
    ],
)
def test_readings_are_not_text(marked: str, text: str, kind: str, full: int) -> None:
    """A page's text has the letters of a ruby without their readings, and without the line breaks between them."""
    assert summarize_body(document(kind, f"<html><body><p>{marked}</p></body></html>"), kind, full) == text


def test_readings_are_neither_title_nor_heading_nor_link_text(summary: Make) -> None:
    """Titles from headings, headings and the texts of links have no readings."""
    page = f'<h1>{TOKYO}</h1><p><a href="/t">{TOKYO}駅</a>'
    found = summary(b"x.html", page.encode(), charset="utf-8")
    assert found.text("title") == "東京"
    assert found.attributes["headings"] == ["東京"]
    assert [(link.url, link.text) for link in found.links] == [("http://example.org/t", "東京駅")]


@pytest.mark.parametrize("marked", ["<rt>one</rt>", "<rp>one</rp>", "<p><rt>one", "<b><i><rt>one</rt></i></b>"])
def test_reading_outside_of_ruby_is_text(marked: str) -> None:
    """The element of a reading that is in no ruby is text like any other (HTML, 4.5.11)."""
    assert summarize_body(f"<html><body>{marked} <p>two".encode(), "HTML", 0) == "one\ntwo"


def test_nested_rubies_are_read_in_linear_time() -> None:
    """Rubies in each other, or many of them, take no more time than their number allows, and leave the text around them."""
    for many in ("<ruby> 漢<rt>" * 500, "<ruby>" * 400 + "漢 <rt>x</rt>" * 20_000, "<ruby> 漢<rt>か</rt></ruby>" * 20_000):
        assert summarize_body(f"<html><body><p>first</p>{many}".encode(), "HTML", 0).startswith("first")


@pytest.mark.parametrize("full", [0, 1 << 20])
def test_reading_that_is_not_closed_takes_no_paragraphs(full: int) -> None:
    """What follows an open reading is in it for a parser, and remains the text of the page."""
    page = "<html><body><ruby>漢<rt>kan<p>All that follows.</p><p>海</p><p>船"
    assert summarize_body(page.encode(), "HTML", full).endswith("All that follows.\n海\n船")


def test_open_readings_in_each_other_are_read_in_linear_time() -> None:
    """The search for blocks in readings is bounded, however deep they are nested, and the text at their end is kept."""
    page = "<html><body>" + "<ruby>漢<rt>" * 200 + "<b>x</b>" * 200_000 + "<p>last"
    assert summarize_body(page.encode(), "HTML", 1 << 24).endswith("last")
