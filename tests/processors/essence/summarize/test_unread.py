"""Files of a known type that its reader finds nothing in."""

import io

import pytest

from processors.essence.summarize import Facts, Found, SummaryError, summarize


@pytest.mark.parametrize("kind", ["OtherDocument", "Video", "ScientificData"])
def test_file_that_its_reader_does_not_know_keeps_its_strings_whatever_is_known_of_it(kind: str) -> None:
    """The attributes that every file has do not count as content: a file that cannot be read has its printable strings."""
    found, body = Found(), b"\x01\x02\0" * 40 + b"Call me Ishmael, some years ago" + b"\0\x03" * 40
    found.add("file-name", "x")
    found.add("mode", "0644")
    summarize(Facts(b"x", "http://example.org/x", kind, "x/y", len(body), 0, ""), io.BytesIO(body), found)
    assert "Ishmael" in found.text("strings")


def test_flat_document_without_content_is_reported_whatever_is_known_of_it() -> None:
    """A flat document without properties and text has a reason, though its file has a name."""
    found, body = Found(), b"<?xml version='1.0'?><office:document></office:document>"
    found.add("file-name", "x.fodt")
    with pytest.raises(SummaryError, match="no readable content"):
        summarize(Facts(b"x.fodt", "http://example.org/x", "FlatOpenDocument", "x/y", len(body), 0, ""), io.BytesIO(body), found)
