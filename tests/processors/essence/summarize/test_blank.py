"""Files that hold nothing: one rule for all types."""

import io

import pytest

from processors.essence.recognize import recognize, table
from processors.essence.summarize import Facts, Found, SummaryError, summarize

NAMES = [f"x.{suffix}" for suffix in table().suffixes] + ["README", "Makefile", "x"]


@pytest.mark.parametrize("body", [b"", b" \n\n", b"\xef\xbb\xbf\n"], ids=["nothing", "space", "mark"])
def test_blank(body: bytes) -> None:
    """Whatever its name says, it is a text or nothing known, is no damaged file, and has its name as title."""
    for name in NAMES:
        kind = recognize(name.encode(), body)
        assert kind.type == "Unrecognized" or table().rules[kind.type].text, name
        found = Found()
        summarize(Facts(name.encode(), f"file:///{name}", kind.type, kind.content_type, len(body), 0, ""), io.BytesIO(body), found)
        assert found.attributes == {"title": [name]}, name


def test_names_of_blank_files() -> None:
    """The name of an empty text says of which kind it is; that of a binary says nothing."""
    kinds = [recognize(name, b"").type for name in (b"x.md", b"__init__.py", b"x.gb", b"x.png", b"x.xml")]
    assert kinds == ["Markdown", "Python", "Unrecognized", "Unrecognized", "XML"]


@pytest.mark.parametrize("body", [b"\xef\xbb\xbf<", b"plain words", b"<?xml", b"<!--", b"\xff\xfe<a"])
def test_reasons_of_xml(body: bytes) -> None:
    """What is wrong with a document in XML is told in one clean sentence."""
    found = Found()
    with pytest.raises(SummaryError, match=r"\AXML: no element in it can be read\Z"):
        summarize(Facts(b"x.xml", "file:///x.xml", "XML", "application/xml", len(body), 0, ""), io.BytesIO(body), found)
    assert found.text("title") == "x.xml"
