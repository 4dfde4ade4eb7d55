"""Queries of links, in the encoding of their page."""

from collections.abc import Callable

import pytest

from processors.essence.summarize import Found

Make = Callable[..., Found]

LINKS = [
    ("gb2312", "gbk", "search?q=中文", "search?q=%D6%D0%CE%C4"),
    ("gbk", "gbk", "search?q=中文&x=価한", "search?q=%D6%D0%CE%C4&x=%81%FD%26%2354620%3B"),
    ("gb18030", "gb18030", "?q=한", "x?q=%836%843"),
    ("shift_jis", "cp932", "?q=ソ①&b=1", "x?q=%83\\%87@&b=1"),
    ("euc-jp", "euc_jp", "?q=日本+1", "x?q=%C6%FC%CB%DC+1"),
    ("windows-1251", "cp1251", "?q=Привет €", "x?q=%CF%F0%E8%E2%E5%F2%20%88"),
    ("iso-8859-1", "cp1252", "?q=naïve“Ł", "x?q=na%EFve%93%26%23321%3B"),
    ("ks_c_5601-1987", "cp949", "?q=펲", "x?q=%BC%84"),
    ("big5", "cp950", "?q=中", "x?q=%A4%A4"),
    ("utf-8", "utf-8", "?q=中", "x?q=%E4%B8%AD"),
]


@pytest.mark.parametrize(("label", "codec", "href", "resolved"), LINKS, ids=[href for _, _, href, _ in LINKS])
def test_query_is_in_the_charset_of_the_page(label: str, codec: str, href: str, resolved: str, summary: Make) -> None:
    """A link's query is percent-encoded in the encoding of its page; what that lacks becomes a character reference."""
    html = f'<meta charset="{label}"><p>page</p><a href="{href}">x</a>'
    raw = b"".join(char.encode(codec, "xmlcharrefreplace") for char in html)
    for found in (summary(b"x.html", raw), summary(b"x.html", raw.replace(b"meta", b"nota"), charset=label)):
        assert [link.url for link in found.links] == [f"http://example.org/dir/{resolved}"]


def test_query_of_iso_2022_jp_has_its_escapes(summary: Make) -> None:
    """In ISO-2022-JP the query has escapes, and of its ASCII bytes those that a query must not have are escaped."""
    raw = b'<meta charset="iso-2022-jp"><a href="?q=\x1b$B%#CfJ8\x1b(B&amp;r=1">x</a>'
    assert [link.url for link in summary(b"x.html", raw).links] == ["http://example.org/dir/x?q=%1B$B%%23CfJ8%1B(B&r=1"]


def test_path_and_other_schemes_are_in_utf8(summary: Make) -> None:
    """Path and host are in UTF-8, and so is the query of a scheme that browsers do not know."""
    html = '<meta charset="gbk"><a href="/中/文">a</a><a href="gopher://h.example/?中">b</a><a href="HTTPS://h.example/?中">c</a>'
    assert [link.url for link in summary(b"x.html", html.encode("gbk")).links] == [
        "http://example.org/%E4%B8%AD/%E6%96%87",
        "gopher://h.example/?%E4%B8%AD",
        "https://h.example/?%D6%D0",
    ]


def test_query_of_a_page_in_utf16_is_in_utf8(summary: Make) -> None:
    """UTF-16 is no encoding of queries: they are in UTF-8."""
    assert [link.url for link in summary(b"x.html", '<a href="?q=中">x</a>'.encode("utf-16")).links] == [
        "http://example.org/dir/x?q=%E4%B8%AD"
    ]


def test_long_query_without_places_is_bounded(summary: Make) -> None:
    """A query of characters that the encoding lacks grows to no more than a link may be long."""
    for label in (b"iso-8859-1", b"euc-jp", b"iso-2022-jp"):
        raw = b'<meta charset="' + label + b'"><a href="?' + b"&#xd55c;" * 3_900 + b'">x</a><a href="?a">y</a>'
        assert [link.url for link in summary(b"x.html", raw).links] == ["http://example.org/dir/x?a"]
