"""References and metadata in unusual places: split fields, shapes, records, compressed parts."""

from __future__ import annotations

import io
import struct
from email.message import EmailMessage

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.essence.formats.mail.outlook_rtf import decompress_rtf as rich
from processors.essence.summarize import Facts, Found, SummaryError, summarize
from processors.essence.summarize.office._links import MONIKER, MONIKERS
from tests.processors.essence.summarize.compound import atom, compound, record, word
from tests.processors.essence.summarize.packages import packed

RICH, PAGE, TEXT = "__substg1.0_10090102", "__substg1.0_10130102", "__substg1.0_1000001E"
# The example of [MS-OXRTFCP] 4.1.1.
EXAMPLE = "2d0000002b0000004c5a4675f1c5c7a703000a007263706731323542320af32068656c090020627705b06c647d0a800fa0"


def summarize_body(body: bytes, kind: str, full: int = 1 << 20) -> Found:
    """Return the summary of a body."""
    found = Found(full)
    summarize(Facts(b"x", "http://example.org/x", kind, "x/y", len(body), 0, ""), io.BytesIO(body), found)
    return found


def test_unfollowed_links_change_nothing_else() -> None:
    """Where links are not followed, a page has the same attributes and references; only its link records are left out."""
    body = b'<title>T</title><h2>H</h2><p>One <a href="a">two</a> <a href="b" rel="nofollow">three</a>.'
    followed, alone = Found(), Found(linked=False)
    for found in (followed, alone):
        summarize(Facts(b"x", "http://example.org/x", "HTML", "text/html", len(body), 0, ""), io.BytesIO(body), found)
    assert [(link.url, link.text) for link in followed.links] == [("http://example.org/a", "two")]
    assert alone.links == []
    assert alone.attributes == followed.attributes
    assert alone.text("url-references") == "http://example.org/a"


def references(body: bytes, kind: str, full: int = 1 << 20) -> list[str | bytes]:
    """Return the references of a body."""
    return summarize_body(body, kind, full).attributes.get("url-references", [])


def compressed(text: bytes) -> bytes:
    """Return RTF as Outlook stores it, without back references."""
    body = b"".join(b"\0" + text[at : at + 8] for at in range(0, len(text), 8))
    return struct.pack("<II4sI", len(body) + 12, len(text), b"LZFu", 0) + body


def related(target: str) -> str:
    """Return the relationships of a part with one external target."""
    return f'<Relationships><Relationship Type="x/hyperlink" Target="{target}" TargetMode="External"/></Relationships>'


@pytest.mark.parametrize("full", [0, 1 << 20])
def test_split_field_gives_reference(full: int) -> None:
    """The target of a field is a reference, whether its instruction is whole, split or an attribute; its result is text."""
    runs = '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText> HYPERLINK "http://exam</w:instrText></w:r>'
    runs += '<w:r><w:instrText>ple.org/a" \\l "b"</w:instrText></w:r><w:r><w:fldChar w:fldCharType="separate"/></w:r>'
    simple = (
        '<w:fldSimple w:instr="HYPERLINK &quot;http://example.org/c&quot;"><w:r><w:t>HYPERLINK "http://example.org/d"</w:t></w:r>'
    )
    text = f'<w:document xmlns:w="w"><w:body><w:p>{runs}</w:p><w:p>{simple}</w:fldSimple></w:p></w:body></w:document>'
    body = packed({"word/document.xml": text})
    assert references(body, "OfficeDocument", full) == ["http://example.org/a", "http://example.org/c"]
    assert summarize_body(body, "OfficeDocument").text("full-text") == 'HYPERLINK "http://example.org/d"'


@pytest.mark.parametrize(
    "part",
    [
        "xl/drawings/_rels/drawing1.xml.rels",
        "xl/worksheets/_rels/sheet1.bin.rels",
        "xl/worksheets/_rels/Lager.xml.rels",
        "ppt/notesSlides/_rels/notesSlide2.xml.rels",
        "word/diagrams/_rels/data1.xml.rels",
    ],
)
def test_links_of_all_parts_are_references(part: str) -> None:
    """Links of shapes, binary sheets, notes and diagrams are references."""
    assert references(packed({"xl/workbook.xml": "<workbook/>", part: related("http://example.org/")}), "OfficeDocument") == [
        "http://example.org/"
    ]


def test_layout_links_are_ignored() -> None:
    """Links of a slide layout are not references of the document."""
    parts = {"ppt/slides/slide1.xml": "<p/>", "ppt/slideLayouts/_rels/slideLayout1.xml.rels": related("http://example.org/")}
    assert references(packed(parts), "OfficeDocument") == []


def test_typographic_quotes_delimit_address() -> None:
    """Word accepts typographic quotes around an address, too; the same words outside of a field are text."""
    told = 'HYPERLINK "http://example.org/no" \x13 HYPERLINK "http://example.org/yes\u201d \x14here\x15'
    assert references(compound(word(told)), "OLE") == ["http://example.org/yes"]


def test_old_workbook_hyperlinks_are_references() -> None:
    """Cell hyperlinks of workbooks before 2007 are references; only a bounded number of them is read."""
    url = "http://example.org/café\0".encode("utf-16-le")
    link = record(0x1B8, bytes(28) + b"\x02\0\0\0\x03\0\0\0" + MONIKER + struct.pack("<I", len(url) + 24) + url + bytes(24))
    book = record(0x809, b"\0\x06\x05\0") + link + record(0x1B8, MONIKER) + MONIKER
    assert references(compound({"Workbook": book}), "OLE") == ["http://example.org/café"]
    many = b"".join(MONIKER + struct.pack("<I", 2 * len(u)) + u.encode("utf-16-le") for u in (f"ftp://a/{n}" for n in range(9)))
    assert len(references(compound({"Workbook": record(0x809, b"\0\x06\x05\0") + MONIKER * MONIKERS + many}), "OLE")) == 0


def test_old_presentation_hyperlinks_are_references() -> None:
    """Hyperlinks of presentations before 2007 are references; link names and strings elsewhere are not."""
    name, url, other = (f"http://example.org/{n}".encode("utf-16-le") for n in ("name", "url", "other"))
    link = atom(4055, atom(4026, name, 0x00) + atom(4026, url, 0x10), 0xF) + atom(4026, other, 0x10)
    assert references(compound({"PowerPoint Document": atom(1000, link, 0xF)}), "OLE") == ["http://example.org/url"]


def test_compressed_rtf_is_restored() -> None:
    """Compressed RTF is restored, with or without back references; a truncated stream gives the text before the cut."""
    raw = bytes.fromhex(EXAMPLE)
    assert rich(raw) == b"{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n"
    assert rich(raw[:26]) == b"{\\rtf1\\ansi\\ansicpg12"
    assert rich(compressed(b"Boats. " * 1_000)) == b"Boats. " * 1_000
    assert rich(struct.pack("<II4sI", 3, 3, b"MELA", 0) + b"abcdef") == b"abc"
    assert rich(b"none") == rich(b"x" * 20) == b""


@given(st.binary(max_size=60))
def test_compressed_rtf_is_bounded_by_declared_size(data: bytes) -> None:
    """Any compressed data gives at most the declared size."""
    assert len(rich(struct.pack("<II4sI", 0, 20, b"LZFu", 0) + data)) <= 20


def test_outlook_references_come_from_html_or_rtf() -> None:
    """References of an Outlook message come from its HTML or RTF, and so does its text if there is no other."""
    page = b'<p>See <a href="http://example.org/page?a=1&amp;b=2">this</a></p>'
    rtf = (
        rb'{\rtf1\ansi\fromhtml1{\*\htmltag64 <a href="http://example.org/r?a=1&amp;b=\'7b\{c\}">}See{\*\htmltag72 </a>} that\par}'
    )
    found = summarize_body(compound({PAGE: page}), "OLE")
    assert (found.attributes["url-references"], found.said) == (["http://example.org/page?a=1&b=2"], "See this")
    found = summarize_body(compound({RICH: compressed(rtf)}), "OLE")
    assert (found.attributes["url-references"], found.said) == (["http://example.org/r?a=1&b={{c}"], "See that")
    found = summarize_body(compound({RICH: compressed(rtf), TEXT: b"Plain."}), "OLE")
    assert (found.attributes["url-references"], found.said) == (["http://example.org/r?a=1&b={{c}"], "Plain.")


def test_message_references_come_from_html_part() -> None:
    """References come from the HTML part though the plain text is what is summarized; mail addresses are left out."""
    message = EmailMessage()
    message["Subject"] = "Gates"
    message.set_content("Plain: http://example.org/plain.")
    link = '<a href="http://example.org/page">here</a> <a href="mailto:a@example.org">me</a> <a href="#top">up</a>'
    message.add_alternative(f"<p>{link}</p>", subtype="html")
    found = summarize_body(message.as_bytes(), "Mail")
    assert found.attributes["url-references"] == ["http://example.org/plain", "http://example.org/page"]
    assert found.said == "Plain: http://example.org/plain."


def test_split_rtf_address_is_joined() -> None:
    """An address in RTF may be split by a line end or be in its own group; fields are not mixed with each other."""
    one = rb"{\field{\*\fldinst {HYPERLINK }{" + b'"http://exam\r\nple.org/a"' + rb"}}{\fldrslt b}}"
    two = rb'{\field{\*\fldinst HYPERLINK }{\fldrslt c}}{\field{\*\fldinst "http://example.org/no"}}'
    assert references(rb"{\rtf1 " + one + two + rb"\par}", "RTF") == ["http://example.org/a"]


def test_first_rtf_alternative_is_used() -> None:
    """Of the alternatives for readers with and without Unicode the first is used; each author is listed once."""
    title = rb"{\upr{\title ???}{\*\ud{\title \u1063\'3fa}}}{\author Ann}{\author Ben}{\author Ann}"
    head = rb"{\rtf1{\info" + title + rb"{\creatim\yr2004\mo10\dy28}{\revtim\yr2005\mo1\dy2\hr3}}"
    found = summarize_body(head + rb"{\*\x{\upr{a}{\*\ud{b}}}}Text\par}", "RTF")
    assert (found.attributes["title"], found.attributes["author"], found.said) == (["\u0427a"], ["Ann", "Ben"], "Text")
    assert found.attributes["creation-date"] == ["2004-10-28T00:00:00"]
    assert found.attributes["modification-date"] == ["2005-01-02T03:00:00"]


def test_book_has_all_dates(samples_of_books: bytes) -> None:
    """A book has the dates of all its publications, of its creation and of its last modification."""
    found = summarize_body(samples_of_books, "EPUB")
    assert found.attributes["date"] == ["1949", "2007-06-13"]
    assert found.attributes["creation-date"] == ["2006-01-01"]
    assert found.attributes["modification-date"] == ["2008-02-02T00:00:00Z"]


@pytest.fixture(scope="module")
def samples_of_books() -> bytes:
    """A book with many dates."""
    dates = "".join(
        f'<dc:date opf:event="{event}">{date}</dc:date>'
        for event, date in (("original-publication", "1949"), ("ops-publication", "Wed Jun 13 2007"), ("creation", "2006-01-01"))
    )
    meta = (
        f'<metadata xmlns:dc="dc" xmlns:opf="opf">{dates}<meta property="dcterms:modified">2008-02-02T00:00:00Z</meta></metadata>'
    )
    container = '<container><rootfiles><rootfile full-path="b.opf"/></rootfiles></container>'
    return packed({"META-INF/container.xml": container, "b.opf": f"<package>{meta}<manifest/></package>"})


def test_deeply_nested_rtf_in_message_is_damage() -> None:
    """RTF in a message that is nested too deep is damage, and what was found before is kept."""
    streams = {RICH: compressed(b"{" * 3_000), "__substg1.0_0037001E": b"Gates"}
    found = Found()
    with pytest.raises(SummaryError, match="nested"):
        summarize(Facts(b"x", "http://example.org/x", "OLE", "", 0, 0, ""), io.BytesIO(compound(streams)), found)
    assert found.text("title") == "Gates"
