from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from processors.summarize import Found

Make = Callable[..., Found]
XMP = (
    b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF><dc:title><rdf:Alt><rdf:li>Whales</rdf:li></rdf:Alt></dc:title>'
    b"<dc:creator><rdf:li>Mary Ann</rdf:li></dc:creator></rdf:RDF></x:xmpmeta>"
)


def _pdf(objects: Sequence[bytes], trailer: bytes = b"") -> bytes:
    """A PDF of objects that are numbered from 1, the first of which is the catalogue."""
    out, places = b"%PDF-1.7\n", b""
    for number, data in enumerate(objects, start=1):
        places += b"%010d 00000 n \n" % len(out)
        out += b"%d 0 obj\n%b\nendobj\n" % (number, data)
    count = len(objects) + 1
    table = b"xref\n0 %d\n0000000000 65535 f \n%b" % (count, places)
    return out + table + b"trailer\n<< /Size %d /Root 1 0 R %b >>\nstartxref\n%d\n%%%%EOF\n" % (count, trailer, len(out))


def _document(after: bytes = b"6 0 R", trailer: bytes = b"") -> bytes:
    objects = (
        b"<< /Type /Catalog /Pages 2 0 R /Outlines 4 0 R /Metadata 7 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Annots [10 0 R] >>",
        b"<< /Type /Outlines /First 5 0 R /Last 6 0 R /Count 2 >>",
        b"<< /Title (First watch) /Parent 4 0 R /Next " + after + b" /First 8 0 R /Last 8 0 R /Count 1 >>",
        b"<< /Title <FEFF00C4006E> /Parent 4 0 R /Prev 5 0 R >>",
        b"<< /Type /Metadata /Subtype /XML /Length %d >>\nstream\n%b\nendstream" % (len(XMP), XMP),
        b"<< /Title (Noon) /Parent 5 0 R >>",
        b"<< /Title (The log) /Author (Hermann) >>",
        b"<< /Type /Annot /Subtype /Link /Rect [0 0 9 9] /A << /S /URI /URI (http://example.org/whales) >> >>",
    )
    return _pdf(objects, trailer)


def test_outline_and_links(summary: Make) -> None:
    """The outline of a PDF becomes its headings, in order; what its links lead to are references."""
    found = summary(b"a.pdf", _document())
    assert found.attributes["headings"] == ["First watch", "Noon", "Än"]
    assert found.attributes["url-references"] == ["http://example.org/whales"]


@pytest.mark.parametrize(("trailer", "title", "author"), [(b"", "Whales", "Mary Ann"), (b"/Info 9 0 R", "The log", "Hermann")])
def test_xmp_speaks_where_the_information_is_silent(trailer: bytes, title: str, author: str, summary: Make) -> None:
    """Title and author are those of the information dictionary, or else those of XMP."""
    found = summary(b"a.pdf", _document(trailer=trailer))
    assert (found.attributes["title"], found.attributes["author"]) == ([title], [author])


def test_an_outline_that_is_a_ring_ends(summary: Make) -> None:
    """An entry that follows itself is looked at a bounded number of times."""
    assert summary(b"a.pdf", _document(after=b"5 0 R")).attributes["headings"] == ["First watch", "Noon"]


def test_dates_and_language(summary: Make) -> None:
    """The dates of a PDF are in ISO 8601, UTC; what is no date is none. Its language is what the catalogue states."""
    objects = (
        b"<< /Type /Catalog /Pages 2 0 R /Lang (de-CH) >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] >>",
        b"<< /CreationDate (D:19941201120000+01'00') /ModDate (D:1995) >>",
        b"<< /CreationDate (yesterday) /ModDate (D:19951399) >>",
    )
    found = summary(b"a.pdf", _pdf(objects, b"/Info 4 0 R"))
    assert found.attributes["creation-date"] == ["1994-12-01T11:00:00Z"]
    assert found.attributes["modification-date"] == ["1995-01-01T00:00:00Z"]
    assert found.attributes["language"] == ["de"]
    assert not {"creation-date", "modification-date"} & summary(b"a.pdf", _pdf(objects, b"/Info 5 0 R")).attributes.keys()
