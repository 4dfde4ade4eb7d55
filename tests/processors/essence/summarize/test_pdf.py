from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest

from processors.essence.summarize import Found
from processors.essence.summarize.pages import pdf
from processors.essence.summarize.pages._headline import headline
from processors.essence.summarize.pages._pdf_depth import exceeds_pdfminer_limits

Make = Callable[..., Found]
XMP = (
    b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF><dc:title><rdf:Alt><rdf:li>Whales</rdf:li></rdf:Alt></dc:title>'
    b"<dc:creator><rdf:li>Mary Ann</rdf:li></dc:creator></rdf:RDF></x:xmpmeta>"
)


def _pdf(objects: Sequence[bytes], trailer: bytes = b"") -> bytes:
    """Return a PDF with the objects, numbered from 1; the first is the catalogue."""
    out, places = b"%PDF-1.7\n", b""
    for number, data in enumerate(objects, start=1):
        places += b"%010d 00000 n \n" % len(out)
        out += b"%d 0 obj\n%b\nendobj\n" % (number, data)
    count = len(objects) + 1
    table = b"xref\n0 %d\n0000000000 65535 f \n%b" % (count, places)
    return out + table + b"trailer\n<< /Size %d /Root 1 0 R %b >>\nstartxref\n%d\n%%%%EOF\n" % (count, trailer, len(out))


DEEP = (
    *(each * 20_000 for each in (b"[", b"<<", b"{", b"<</A[")),
    b"(" + b"()" * 60_000,
    b"(" * 120_000,
    b"(" + b"\\n" * 90_000,
    b"\\[" * 20_000,
)


@pytest.mark.parametrize("body", DEEP, ids=range(len(DEEP)))
def test_unclosed_brackets_are_rejected_before_parsing(body: bytes, summary: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Input on which pdfminer takes quadratic time, or exhausts memory, is rejected before parsing."""
    monkeypatch.setattr(pdf, "FALLBACK", "no.such.reader")
    found = summary(b"a.pdf", b"%PDF-1.7\n1 0 obj\n" + body)
    assert found.attributes["error"] == ["PDF: damaged, and nested too deep for pdfminer"]
    # An unterminated stream followed by an object hides nothing; neither does a terminated one.
    for before in (b"stream\n1 0 obj\n", b"1 0 obj\nstream\nendstream\n"):
        assert exceeds_pdfminer_limits(b"%PDF-1.7\n" + before + body)


def test_random_streams_are_not_too_deep() -> None:
    """Streams of random bytes, and documents of many small objects, do not count as too deep."""
    chance = random.Random(5)
    assert not exceeds_pdfminer_limits(b"stream\r\n" + chance.randbytes(3_000_000))
    assert not exceeds_pdfminer_limits(b"1 0 obj << /A [1 2 (a) (b\\)c)] >> endobj\n" * 100_000)
    assert not exceeds_pdfminer_limits(b"1 0 obj\nstream\n(((endstream\nendobj\n" * 100_000)


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


def test_outline_gives_headings_and_links_give_references(summary: Make) -> None:
    """The outline of a PDF gives its headings, in order; the targets of its links are references."""
    found = summary(b"a.pdf", _document())
    assert found.attributes["headings"] == ["First watch", "Noon", "Än"]
    assert found.attributes["url-references"] == ["http://example.org/whales"]


@pytest.mark.parametrize(("trailer", "title", "author"), [(b"", "Whales", "Mary Ann"), (b"/Info 9 0 R", "The log", "Hermann")])
def test_xmp_replaces_missing_information(trailer: bytes, title: str, author: str, summary: Make) -> None:
    """Title and author come from the information dictionary, or else from XMP."""
    found = summary(b"a.pdf", _document(trailer=trailer))
    assert (found.attributes["title"], found.attributes["author"]) == ([title], [author])


@pytest.mark.parametrize("body", [b"", b"1 0 obj\n" + b"[" * 5_000, b"trailer\n<< /Root 1 0 R >>\n"])
def test_damage_reason_is_readable(body: bytes, summary: Make) -> None:
    """The reason for rejecting a document is a readable sentence, whatever the readers failed on."""
    found = summary(b"a.pdf", b"%PDF-1.7\n" + body)
    assert found.attributes["error"] == ["PDF: damaged: neither pdfium nor pdfminer reads it"]


def test_circular_outline_ends(summary: Make) -> None:
    """An outline entry that is its own successor is read a bounded number of times."""
    assert summary(b"a.pdf", _document(after=b"5 0 R")).attributes["headings"] == ["First watch", "Noon"]


def test_dates_are_iso_8601_and_language_is_catalogues(summary: Make) -> None:
    """The dates of a PDF are in ISO 8601, UTC; an invalid date is left out. Its language is that of the catalogue."""
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


def _with(packets: Sequence[bytes], info: bytes = b"<< >>") -> bytes:
    """Return a PDF with XMP packets and an information dictionary."""
    streams = [b"<< /Type /Metadata /Length %d >>\nstream\n%b\nendstream" % (len(each), each) for each in packets]
    pages = (
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] >>",
    )
    return _pdf([*pages, *streams, info], b"/Info %d 0 R" % (len(streams) + 4))


def _packet(inner: bytes, own: bytes = b'xmlns:pdf="http://ns.adobe.com/pdf/1.3/"') -> bytes:
    return b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF><rdf:Description %b>%b</rdf:Description></rdf:RDF></x:xmpmeta>' % (
        own,
        inner,
    )


def test_xmp_adds_to_information(summary: Make) -> None:
    """Authors, titles and dates of XMP are added to those of the information dictionary, without duplicates."""
    titles = b"<dc:title><rdf:Alt><rdf:li>The Log</rdf:li><rdf:li>Das Logbuch</rdf:li></rdf:Alt></dc:title>"
    authors = b"<dc:creator><rdf:Seq><rdf:li>Ann</rdf:li><rdf:li>Ben</rdf:li><rdf:li>Cy</rdf:li></rdf:Seq></dc:creator>"
    subjects = b"<dc:subject><rdf:Bag><rdf:li>sea</rdf:li><rdf:li>Whales</rdf:li></rdf:Bag></dc:subject>"
    dates = b"<xmp:CreateDate>1994-12-01T12:00:00+01:00</xmp:CreateDate><xap:ModifyDate>whenever</xap:ModifyDate>"
    tongue = b"<dc:language><rdf:Bag> <rdf:li>de-CH</rdf:li></rdf:Bag></dc:language>"
    info = b"<< /Title (The log) /Author (Ann, Ben) /Keywords (seaside, whales) >>"
    found = summary(b"a.pdf", _with([_packet(titles + authors + subjects + dates + tongue)], info)).attributes
    assert found["title"] == ["The log", "Das Logbuch"]
    assert found["author"] == ["Ann, Ben", "Cy"]
    assert found["keywords"] == ["seaside", "whales", "sea"]
    assert (found["creation-date"], found["language"]) == (["1994-12-01T11:00:00Z"], ["de"])
    assert "modification-date" not in found


def test_simple_xmp_properties_may_be_attributes(summary: Make) -> None:
    """Simple XMP properties may be attributes; a date of the information dictionary takes precedence."""
    own = b"""xmlns:pdf='http://ns.adobe.com/pdf/1.3/' pdf:Keywords="a, b" """
    own += b"""xmp:CreateDate="1994-12-01" xmp:ModifyDate='1995-01-01T00:00:00Z'"""
    found = summary(b"a.pdf", _with([_packet(b"", own)], b"<< /CreationDate (D:1993) >>")).attributes
    assert (found["creation-date"], found["modification-date"]) == (["1993-01-01T00:00:00Z"], ["1995-01-01T00:00:00Z"])
    assert found["keywords"] == ["a", "b"]


def test_last_xmp_packet_of_document_counts(summary: Make) -> None:
    """The document's last XMP packet counts, since updates are appended; an image's only if the document has none."""
    old, new, picture = (b"<dc:creator><rdf:li>%b</rdf:li></dc:creator>" % name for name in (b"Old", b"New", b"Painter"))
    packets = [_packet(old), _packet(new), _packet(picture, b"")]
    assert summary(b"a.pdf", _with(packets)).attributes["author"] == ["New"]
    assert summary(b"a.pdf", _with(packets[2:])).attributes["author"] == ["Painter"]
    assert "author" not in summary(b"a.pdf", _with(packets[2:], b"<< /Title (Boats) >>")).attributes


@pytest.mark.parametrize("none", [b"<rdf:Bag/>", b"<rdf:Seq><rdf:li></rdf:li></rdf:Seq>", b" \n "])
def test_xmp_list_markup_is_not_a_value(none: bytes, summary: Make) -> None:
    """List markup of XMP is not a value; text without a list is one."""
    creators = (b"<dc:creator>%b</dc:creator>" % none, b"<dc:creator>Ann</dc:creator>")
    found = [summary(b"a.pdf", _with([_packet(each)])).attributes.get("author") for each in creators]
    assert found == [None, ["Ann"]]


def test_encoded_xmp_title_is_decoded(summary: Make) -> None:
    """A title in XMP with its bytes as numbers is decoded; a program's default title for new documents is ignored."""
    title = b"<dc:title><rdf:li>%b</rdf:li></dc:title>"
    coded = b"".join(b"\\000" + bytes([c]) for c in b"Gates")
    assert summary(b"a.pdf", _with([_packet(title % (b"\\376\\377" + coded))])).attributes["title"] == ["Gates"]
    assert summary(b"a.pdf", _with([_packet(title % b"Untitled")])).attributes["title"] == ["a.pdf"]


def test_link_schemes_may_vary_in_spelling(summary: Make) -> None:
    """Link schemes may be written in any way that a browser accepts."""
    uris = (
        b"http:\\\\\\\\example.org/a",
        b"HTTPS://example.org/b",
        b"http:\\\\example.org/c",
        b"mailto:a@example.org",
        b"file:///d",
    )
    links = [b"<< /Type /Annot /Subtype /Link /Rect [0 0 9 9] /A << /S /URI /URI (%b) >> >>" % uri for uri in uris]
    pages = (b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>")
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Annots [4 0 R 5 0 R 6 0 R 7 0 R 8 0 R] >>"
    found = summary(b"a.pdf", _pdf([*pages, page, *links]))
    assert found.attributes["url-references"] == [
        "http://example.org/a",
        "HTTPS://example.org/b",
        "http://example.org/c",
        "mailto:a@example.org",
    ]


def _set(*lines: tuple[str, float]) -> tuple[list[str], list[float]]:
    """Return lines as characters with their sizes; a character after `|` has half the size."""
    chars: list[str] = []
    sizes: list[float] = []
    for text, size in lines:
        for small, part in enumerate(f"{text}\n".split("|")):
            chars += part
            sizes += [size / 2 if small else size] * len(part)
    return chars, sizes


@pytest.mark.parametrize(
    ("lines", "title"),
    [
        (
            [("A journal, 1994", 8), ("Of boats", 20), ("and rivers|1", 20), ("Ada", 12), ("text", 10)],
            "Of boats and rivers",
        ),
        ([("Of boats", 17), ("Ada", 12), ("User's guide", 20), ("text", 10), ("text", 10)], "Of boats"),
        ([("Of boats", 10), ("and rivers", 10), ("which flow", 10)], ""),
        ([("T", 40), ("here was a boat", 10), ("on a river", 10)], ""),
        ([("Of boats", 20)], ""),
        ([("1994", 40), ("Of boats", 20), ("Ada and Bob", 10), ("text", 10)], "Of boats"),
        ([("1 Contents", 20), ("Of boats", 10), ("and rivers", 10)], ""),
        ([], ""),
    ],
)
def test_title_is_first_text_in_largest_type(lines: list[tuple[str, float]], title: str) -> None:
    """Without a declared title, the title is the first text in the largest type, without footnote marks."""
    assert headline(*_set(*lines)) == title


def test_missing_title_comes_from_first_page(summary: Make) -> None:
    """The title comes from the information dictionary, or else from the largest type on the first page."""
    page = (
        b"BT /F 8 Tf 9 90 Td (A journal) Tj /F 24 Tf 0 -30 Td (Of boats) Tj 0 -30 Td (and rivers) Tj /F 9 Tf 0 -15 Td (x y z) Tj ET"
    )
    objects = (
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 120] /Contents 4 0 R /Resources << /Font << /F 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%b\nendstream" % (len(page), page),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Title (Rivers) >>",
    )
    assert summary(b"a.pdf", _pdf(objects)).text("title") == "Of boats and rivers"
    assert summary(b"a.pdf", _pdf(objects, b"/Info 6 0 R")).text("title") == "Rivers"
