"""Blank files: one rule for all types."""

import io

import pytest

from processors.essence.recognize import recognize, table
from processors.essence.summarize import Facts, Found, SummaryError, summarize

NAMES = [f"x.{suffix}" for suffix in table().suffixes] + ["README", "Makefile", "x"]


@pytest.mark.parametrize("body", [b"", b" \n\n", b"\xef\xbb\xbf\n"], ids=["nothing", "space", "mark"])
def test_blank_file_is_not_damaged(body: bytes) -> None:
    """A blank file is a text or unrecognized, is not damaged, and has its name as title, whatever the name suggests."""
    for name in NAMES:
        kind = recognize(name.encode(), body)
        assert kind.type == "Unrecognized" or table().rules[kind.type].text, name
        found = Found()
        summarize(Facts(name.encode(), f"file:///{name}", kind.type, kind.content_type, len(body), 0, ""), io.BytesIO(body), found)
        assert found.attributes == {"title": [name]}, name


def test_name_of_blank_text_determines_kind() -> None:
    """The name of a blank text determines its kind; the name of a binary does not."""
    kinds = [recognize(name, b"").type for name in (b"x.md", b"__init__.py", b"x.gb", b"x.png", b"x.xml")]
    assert kinds == ["Markdown", "Python", "Unrecognized", "Unrecognized", "XML"]


@pytest.mark.parametrize("body", [b"\xef\xbb\xbf<", b"plain words", b"<?xml", b"<!--", b"\xff\xfe<a"])
def test_xml_fault_is_one_clean_sentence(body: bytes) -> None:
    """A fault in an XML document is reported in one clean sentence."""
    found = Found()
    with pytest.raises(SummaryError, match=r"\AXML: no element in it can be read\Z"):
        summarize(Facts(b"x.xml", "file:///x.xml", "XML", "application/xml", len(body), 0, ""), io.BytesIO(body), found)
    assert found.text("title") == "x.xml"
