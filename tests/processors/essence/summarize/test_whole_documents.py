"""Document content beyond the start of the text: formatted cells, notes, links, dates, charsets of fonts."""

from __future__ import annotations

import io
import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.essence.formats.number_formats import shown
from processors.essence.summarize import Facts, Found, SummaryError, summarize
from tests.processors.essence.summarize.compound import atom, compound, record, word
from tests.processors.essence.summarize.packages import packed

FULL = 1 << 20


def summarize_body(body: bytes, kind: str, full: int = FULL) -> Found:
    """Return the summary of a body."""
    found = Found(full)
    summarize(Facts(b"x", "http://example.org/x", kind, "x/y", len(body), 0, ""), io.BytesIO(body), found)
    return found


@pytest.mark.parametrize(
    ("value", "code", "text"),
    [
        (39448, "m/d/yy", "1/1/08"),
        (1, "yyyy-mm-dd", "1900-01-01"),
        (59, "yyyy-mm-dd", "1900-02-28"),
        (61, "yyyy-mm-dd", "1900-03-01"),
        (39448.5, "yyyy-mm-dd hh:mm:ss", "2008-01-01 12:00:00"),
        (39448.75, "h:mm AM/PM", "6:00 PM"),
        (0.00347222, "mm:ss", "05:00"),
        (40000, "[$-409]mmmm d, yyyy;@", "July 6, 2009"),
        (1234.5, "#,##0.00", "1,234.50"),
        (0.25, "0.0%", "25.0%"),
        (-3.5, "0.00;(0.00)", "(3.50)"),
        (5, '"a" 0 "kg"', "a 5 kg"),
        (2.4000000000000004, "", "2.4"),
        (2.4000000000000004, "General", "2.4"),
        (-1, "m/d/yy", "-1"),
        (1e300, "m/d/yy", "1e+300"),
        (7, '"none"', "7"),
        (1.5625, "[h]:mm", "37:30"),
        (1.5625, "[hh]:mm:ss", "37:30:00"),
        (1.5625, "[mm]:ss", "2250:00"),
        (0.5, "# ?/?", "0.5"),
        (1.5e-10, "0.00E+00", "1.5e-10"),
        (2_958_465.999_999_9, "yyyy", "2958466"),
    ],
)
def test_numbers_are_shown_in_their_format(value: float, code: str, text: str) -> None:
    """A number is shown in its format (date, decimal places, percentage), or in plain notation without one."""
    assert shown(value, code) == text


def cell(kind: int, row: int, data: bytes, style: int = 0) -> bytes:
    """Return a cell record."""
    return record(kind, struct.pack("<HHH", row, 0, style) + data)


def test_all_cells_are_in_full_text() -> None:
    """All cells are in the full text, row by row under the name of their sheet.

    Shared strings may continue in a second record; numbers come in each of their forms, and as dates; formulas have results.
    """
    strings = struct.pack("<II", 2, 2) + b"\x05\0\0barge" + b"\x04\0\0lo"
    book = (
        record(0x809, b"\0\x06\x05\0")
        + record(0xE0, b"\0\0\0\0")
        + record(0xE0, b"\0\0\x0e\0")
        + record(0x85, b"\0" * 6 + b"\x05\0Boats")
        + record(0xFC, strings)
        + record(0x3C, b"\x01" + "ck".encode("utf-16-le"))
        + record(0x0A, b"")
        + record(0x809, b"\0\x06\x10\0")
        + cell(0xFD, 0, struct.pack("<I", 0))
        + cell(0xFD, 0, struct.pack("<I", 1))
        + cell(0xFD, 0, struct.pack("<I", 77))
        + cell(0x203, 1, struct.pack("<d", 39448.0), 1)
        + cell(0x27E, 1, struct.pack("<I", 1234 << 2 | 3))
        + record(0xBD, struct.pack("<HHHIHIH", 2, 0, 0, 7 << 2 | 2, 0, 8 << 2 | 2, 1))
        + cell(0x06, 3, b"\0" * 6 + b"\xff\xff" + b"\0" * 6)
        + record(0x207, b"\x03\0\0sum")
        + record(0x0A, b"")
    )
    body = compound({"Workbook": book})
    assert summarize_body(body, "OLE").text("full-text").split("\n") == ["Boats", "barge lock", "1/1/08 12.34", "7 8", "sum"]
    assert summarize_body(body, "OLE", 0).text("partial-text").startswith("barge")


def test_dates_since_1904_are_the_same_days() -> None:
    """Dates of workbooks that count days from 1904, as on a Mac, are the same days; times have no date."""
    styles = "<styleSheet><cellXfs><xf numFmtId='14'/><xf numFmtId='20'/></cellXfs></styleSheet>"
    book = "<workbook><workbookPr date1904='1'/><sheets><sheet name='a' r:id='r1' xmlns:r='urn:r'/></sheets></workbook>"
    links = "<Relationships><Relationship Id='r1' Type='x/worksheet' Target='worksheets/sheet1.xml'/></Relationships>"
    rows = "<worksheet><row><c s='0'><v>37986</v></c><c s='1'><v>0.5</v></c><c t='s'><v>0000000009</v></c></row></worksheet>"
    parts = {"xl/workbook.xml": book, "xl/_rels/workbook.xml.rels": links, "xl/styles.xml": styles}
    new = packed({**parts, "xl/sharedStrings.xml": "<sst><si><t>z</t></si></sst>", "xl/worksheets/sheet1.xml": rows})
    old = record(0x809, struct.pack("<HH", 0x600, 5)) + record(0x22, b"\1\0") + record(0xE0, struct.pack("<HH", 0, 14))
    old += record(0x809, struct.pack("<HH", 0x600, 0x10)) + cell(0x203, 0, struct.pack("<d", 37986)) + record(0x0A, b"")
    assert summarize_body(new, "OfficeDocument").text("full-text") == "a\n1/1/08 12:00"
    assert summarize_body(compound({"Workbook": old}), "OLE").text("full-text") == "1/1/08"


def test_slide_masters_are_left_out() -> None:
    """The text of slide masters, which are placeholders, is left out."""
    text = atom(3999, struct.pack("<I", 1)) + atom(4008, b"a slide")
    prompt = atom(3999, struct.pack("<I", 1)) + atom(4008, b"Click to edit")
    body = compound({"PowerPoint Document": atom(1016, prompt, 0xF) + atom(1000, text, 0xF)})
    assert summarize_body(body, "OLE").text("full-text") == "a slide"


def test_hyperlinks_are_references() -> None:
    """External hyperlinks are references in Word, old and new, OpenDocument, RTF and books."""
    field = '\x13 HYPERLINK "http://example.org/old" \x14here\x15 it is'
    links = (
        '<Relationships><Relationship Type="x/hyperlink" Target="http://example.org/new" TargetMode="External"/></Relationships>'
    )
    office = packed({"word/document.xml": "<w:document/>", "word/_rels/document.xml.rels": links})
    text = '<o><body><p>see <a xmlns:x="x" x:href="http://example.org/odf">it</a></p></body></o>'
    rtf = rb'{\rtf1 {\field{\*\fldinst HYPERLINK "http://example.org/rtf"}{\fldrslt here}}\par}'
    assert summarize_body(compound(word(field)), "OLE").attributes["url-references"] == ["http://example.org/old"]
    assert summarize_body(office, "OfficeDocument").attributes["url-references"] == ["http://example.org/new"]
    assert summarize_body(packed({"content.xml": text}), "OpenDocument").attributes["url-references"] == ["http://example.org/odf"]
    assert summarize_body(rtf, "RTF").attributes["url-references"] == ["http://example.org/rtf"]
    assert summarize_body(rtf, "RTF").text("full-text") == "here"


def test_notes_and_comments_are_in_full_text_only() -> None:
    """Notes, headers, comments and charts are part of the full text, not of the partial one."""
    parts = {
        "word/document.xml": "<w:document><w:p><w:t>text</w:t></w:p></w:document>",
        "word/footnotes.xml": "<w:f><w:p><w:t>note</w:t></w:p></w:f>",
        "word/header1.xml": "<w:h><w:p><w:t>head</w:t></w:p></w:h>",
        "word/charts/chart1.xml": "<c:c><c:v>tons</c:v><c:v>1.5</c:v></c:c>",
    }
    rtf = rb"{\rtf1 {\header head}text{\footnote note}\par}"
    assert summarize_body(packed(parts), "OfficeDocument").text("full-text").split() == ["text", "note", "head", "tons", "1.5"]
    assert summarize_body(packed(parts), "OfficeDocument", 0).text("partial-text") == "text"
    assert summarize_body(rtf, "RTF").text("full-text") == "headtextnote"
    assert summarize_body(rtf, "RTF", 0).text("partial-text") == "text"


def test_text_after_note_continues_its_line() -> None:
    """Text after notes, marks, images and comments continues its line."""
    spaces = 'xmlns:text="urn:text" xmlns:draw="urn:draw" xmlns:dc="urn:dc" xmlns:office="urn:office"'
    note = "<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>note</text:p></text:note-body></text:note>"
    frame = "<draw:frame><draw:desc>picture</draw:desc><draw:text-box><text:p>box</text:p></draw:text-box></draw:frame>"
    remark = "<office:annotation><dc:creator>who</dc:creator><text:p>remark</text:p></office:annotation>"
    mark = "<text:bookmark-start/>marked<text:bookmark-end/> more"
    line = f"bef{note}ore, {frame}behind, {mark}, <text:title>field</text:title> or <text:span>a {remark}span</text:span> end"
    body = packed({"content.xml": f"<office:document-content {spaces}><text:p>{line}</text:p></office:document-content>"})
    told = "before, behind, marked more, field or a span end"
    assert summarize_body(body, "OpenDocument").text("full-text").split("\n") == ["note", "box", "remark", told]
    assert summarize_body(body, "OpenDocument", 0).text("partial-text").split("\n") == ["box", told]


def test_soft_hyphens_are_removed() -> None:
    """A non-breaking hyphen is kept between its words; a soft hyphen is removed."""
    runs = "<w:t>e</w:t><w:noBreakHyphen/><w:t>mail co</w:t><w:softHyphen/><w:t>op</w:t><w:cr/><w:t>end</w:t>"
    parts = dict.fromkeys(("word/document.xml", "word/header1.xml"), f"<w:x><w:p>{runs}</w:p></w:x>")
    assert summarize_body(packed(parts), "OfficeDocument").text("full-text") == "e-mail coop end\ne-mail coop end"


def test_message_full_text_has_all_pages() -> None:
    """The full text of a message with several pages is that of all of them."""
    page = "--B\nContent-Type: text/html\n\n<p>{}</p>\n"
    head = "From: a@b\nSubject: x\nContent-Type: multipart/mixed; boundary=B\n\n"
    body = f"{head}{page.format('first')}{page.format('second')}--B--\n".encode()
    assert summarize_body(body, "Mail").text("full-text").split() == ["first", "second"]


def test_rtf_bytes_are_in_code_page_of_font() -> None:
    """Bytes of RTF are in the code page of the selected font until its group ends."""
    rtf = rb"{\rtf1\ansi\ansicpg1252{\fonttbl{\f0\fcharset0 A;}{\f1\fcharset238 B;}}{\f1 \'e8l\'e1nek} \'e8\par}"
    assert summarize_body(rtf, "RTF").text("full-text") == "článek è"


def test_default_rtf_font_gives_charset() -> None:
    """Without a selected font, the default font gives the charset; an outline level in a style makes no paragraph a heading."""
    head = rb"{\rtf1\ansi\deff1{\fonttbl{\f0\fcharset0 A;}{\f1\fcharset204 B;}}{\stylesheet{\s1\outlinelevel0 a;}}"
    found = summarize_body(head + rb"\'cf {\f0 \'e8\plain  \'cf}\par}", "RTF")
    assert found.text("full-text") == "\u041f \u00e8 \u041f"
    assert "headings" not in found.attributes


def test_rtf_comments_and_nested_cells_are_in_full_text() -> None:
    """Comments are part of the full text; cells of nested tables are separate; a character's bytes may be on two lines."""
    head = rb"{\rtf1\ansi\ansicpg932{\info{\creatim\yr2003\mo5\dy3}}"
    rtf = head + rb"one{\*\annotation{\*\atnref 7} remark}\par \'82" + b"\r\n" + rb"\'a0 a\nestcell b\nestcell c\par}"
    found = summarize_body(rtf, "RTF")
    assert found.text("full-text") == "one remark\n\u3042 a b c"
    assert found.text("creation-date") == "2003-05-03T00:00:00"
    assert summarize_body(rtf, "RTF", 0).text("partial-text") == "one\n\u3042 a b c"
    long = head + rb"\'82\'a0" * 20_000 + b"}"
    assert summarize_body(long, "RTF").text("full-text") == "\u3042" * 20_000


def test_outlook_date_is_time_sent() -> None:
    """The date of an Outlook message is the time that it was sent; a duration is not a date."""
    ticks = 124_309_080_000_000_000
    fixed = bytes(32) + struct.pack("<HHIQ", 0x40, 0x3007, 6, 5) + struct.pack("<HHIQ", 0x40, 0x0039, 6, ticks)
    found = summarize_body(compound({"__properties_version1.0": fixed, "__substg1.0_0037001F": "x".encode("utf-16-le")}), "OLE")
    assert found.attributes["date"] == ["1994-12-03T06:00:00Z"]


@pytest.mark.parametrize(
    ("number", "page", "charset"), [(0x3FFD, 1251, "cp1251"), (0x3FDE, 20866, "koi8-r"), (0x3FDE, 28595, "iso8859-5")]
)
def test_outlook_strings_are_in_declared_code_page(number: int, page: int, charset: str) -> None:
    """Strings of an Outlook message that are not Unicode are in its declared code page."""
    fixed = bytes(32) + struct.pack("<HHIQ", 3, number, 6, page)
    streams = {"__properties_version1.0": fixed, "__substg1.0_0037001E": "Чайка".encode(charset)}
    assert summarize_body(compound(streams), "OLE").text("title") == "Чайка"


def test_page_may_have_several_authors_and_keywords() -> None:
    """A page may declare several authors and keywords, each in its own element."""
    said = (("author", "Ann"), ("author", "Ben"), ("keywords", "a"), ("keywords", "b"))
    page = "".join(f'<meta name="{name}" content="{value}">' for name, value in said)
    found = summarize_body(page.encode(), "HTML")
    assert (found.attributes["author"], found.attributes["keywords"]) == (["Ann", "Ben"], ["a", "b"])


@given(
    st.lists(
        st.tuples(
            st.sampled_from([0x809, 0xFC, 0x3C, 0xFD, 0x204, 0x203, 0x27E, 0xBD, 6, 0x207, 0xE0, 0x41E, 0x1B6, 0x85]),
            st.binary(max_size=40),
        ),
        max_size=30,
    )
)
def test_any_workbook_raises_nothing(records: list[tuple[int, bytes]]) -> None:
    """Any records in a workbook are read as far as possible, without an exception."""
    book = record(0x809, b"\0\x06\x05\0") + b"".join(record(kind, data) for kind, data in records)
    found = Found(FULL)
    with suppress(SummaryError):
        summarize(Facts(b"x", "http://example.org/x", "OLE", "", 0, 0, ""), io.BytesIO(compound({"Workbook": book})), found)
    assert len(found.said.encode()) <= FULL
    assert found.text("title")
