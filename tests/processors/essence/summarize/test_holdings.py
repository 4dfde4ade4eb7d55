"""E-books, database tables, measurements and binary property lists."""

from __future__ import annotations

import plistlib
import struct
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.essence.summarize import Found
from processors.essence.summarize.office.ebook import unpacked

Make = Callable[..., Found]


def palm(records: Sequence[bytes], kind: bytes, name: bytes = b"A_Whale") -> bytes:
    """Return records in a Palm database."""
    at = 78 + 8 * len(records) + 2
    places = b""
    for number, record in enumerate(records):
        places += struct.pack(">II", at, number)
        at += len(record)
    return name.ljust(60, b"\0") + kind + struct.pack(">IIH", 0, 0, len(records)) + places + b"\0\0" + b"".join(records)


def packed(text: bytes) -> bytes:
    """Return a text in PalmDoc compression, with spaces and high bytes only."""
    out = b""
    at = 0
    while at < len(text):
        two = text[at : at + 2]
        if two[:1] == b" " and two[1:] and 0x40 <= two[1] < 0x80:
            out += bytes([two[1] ^ 0x80])
            at += 2
        else:
            out += two[:1] if two[0] < 0x80 and (two[0] > 8 or not two[0]) else b"\1" + two[:1]
            at += 1
    return out


def mobi(pages: Sequence[bytes], about: Sequence[tuple[int, bytes]], *, way: int = 2, locked: int = 0, extra: int = 0) -> bytes:
    """Return a Mobipocket book in UTF-8."""
    said = b"".join(struct.pack(">II", kind, 8 + len(value)) + value for kind, value in about)
    exth = b"EXTH" + struct.pack(">II", 12 + len(said), len(about)) + said
    head = struct.pack(">HHIHHH", way, 0, 1, len(pages), 4_096, locked).ljust(16, b"\0")
    name = b"The Whale"
    mobi_head = (b"MOBI" + struct.pack(">III", 232, 2, 65_001)).ljust(226, b"\0") + struct.pack(">H", extra) + bytes(4)
    first = bytearray(head + mobi_head + exth + name)
    struct.pack_into(">II", first, 84, len(first) - len(name), len(name))
    return palm([bytes(first), *(packed(page) if way == 2 else page for page in pages)], b"BOOKMOBI")


ABOUT = [(100, b"Herman Melville"), (101, b"Harper"), (103, b"<p>Of a <b>whale</b>.</p>"), (105, b"whales"), (106, b"1851-11-14")]
PAGES = [b"<html><body><h2>Loomings</h2><p>Call me Ish", b'mael, M\xc3\xb6by.</p><a href="http://example.org/">x</a></body></html>']


@pytest.mark.parametrize("way", [1, 2])
def test_mobipocket_has_metadata_and_text(way: int, summary: Make) -> None:
    """The summary of a Mobipocket book has its metadata and its text, which continues from record to record."""
    found = summary(b"a.mobi", mobi(PAGES, [*ABOUT, (524, b"en-GB")], way=way))
    expected = {
        "title": ["The Whale"], "author": ["Herman Melville"], "organization": ["Harper"], "description": ["Of a whale ."],
        "keywords": ["whales"], "date": ["1851-11-14"], "language": ["en"], "headings": ["Loomings"],
        "url-references": ["http://example.org/"], "partial-text": ["Loomings\nCall me Ishmael, Möby.\nx"],
    }  # fmt: skip
    assert found.attributes == expected


def test_mobipocket_updated_title_wins_and_locked_text_is_omitted(summary: Make) -> None:
    """An updated title replaces the first; a locked book, or one in an unknown compression, gives no text."""
    assert summary(b"a.mobi", mobi(PAGES, [(503, b"Moby-Dick")])).text("title") == "Moby-Dick"
    locked = summary(b"a.azw", mobi(PAGES, ABOUT, locked=2))
    assert (locked.text("encrypted"), locked.text("author")) == ("a key is needed", "Herman Melville")
    assert "partial-text" not in locked.attributes
    assert "partial-text" not in summary(b"a.mobi", mobi(PAGES, ABOUT, way=17_480)).attributes


def test_trailing_entries_are_not_text(summary: Make) -> None:
    """Trailing entries of a text record are not text: entries with their length, and the rest of a multibyte character."""
    pages = [PAGES[0] + b"\xc3\1" + b"zz\x83", PAGES[1] + b"\0" + b"zzzz\x85"]
    assert "Call me Ishmael, Möby." in summary(b"a.mobi", mobi(pages, [], way=1, extra=3)).text("partial-text")


def test_palmdoc_is_titled_by_database_name(summary: Make) -> None:
    """The title of a PalmDoc text is the name of its database."""
    head = struct.pack(">HHIHHI", 2, 0, 1, 1, 4_096, 0)
    found = summary(b"a.pdb", palm([head, packed("Call me Ishmael.\n\n“Möby”".encode("cp1252"))], b"TEXtREAd"))
    assert (found.text("title"), found.text("partial-text")) == ("A Whale", "Call me Ishmael.\n“Möby”")


@given(st.binary(max_size=300))
def test_any_text_is_decompressed_unchanged(text: bytes) -> None:
    """Compressed text is decompressed to the original."""
    assert unpacked(packed(text)) == text


@given(st.binary(max_size=600))
def test_decompression_is_bounded(record: bytes) -> None:
    """Any input decompresses to at most ten bytes for each two."""
    assert len(unpacked(record)) <= 8 * len(record)


def test_match_longer_than_distance_is_decompressed() -> None:
    """A match may be longer than its distance."""
    assert unpacked(b"ab" + bytes([0x80 | 2 >> 5, (2 << 3 & 0xF8) | 5])) == b"ab" + b"abababab"


def dbase(driver: int = 0x57) -> bytes:
    """Return a table of two columns and three rows, one of them deleted."""
    columns = b"".join(name.ljust(11, b"\0") + kind + bytes(4) + bytes([size]) + bytes(15) for name, kind, size in (
        (b"NAME", b"C", 8), (b"LENGTH", b"N", 4),
    ))  # fmt: skip
    head = bytes([3, 94, 7, 1]) + struct.pack("<IHH", 3, 32 + len(columns) + 1, 13) + bytes(17) + bytes([driver]) + bytes(2)
    rows = b" M\xf6by      20" + b"*Ahab       2" + b" Queequeg   2"
    return head + columns + b"\r" + rows + b"\x1a"


def test_dbase_has_columns_row_count_and_texts(summary: Make) -> None:
    """The summary of a dBASE table has its columns, the number of rows, and the texts of the first rows that are not deleted."""
    expected = {
        "format": ["dBASE III"], "rows": ["3"], "modification-date": ["1994-07-01"], "columns": ["NAME", "LENGTH"],
        "partial-text": ["Möby\nQueequeg"], "title": ["a.dbf"],
    }  # fmt: skip
    assert {k: v for k, v in summary(b"a.dbf", dbase()).attributes.items() if k != "keywords"} == expected
    assert summary(b"a.dbf", dbase(0xC9)).text("partial-text").startswith("Mцby")
    for n in range(32, len(dbase())):
        assert summary(b"a.dbf", dbase()[:n]).text("format") == "dBASE III"


def test_property_list_has_keys_and_texts(summary: Make) -> None:
    """The summary of a property list has its keys, usual values and texts; a damaged one is reported."""
    value = {"CFBundleName": "Whale", "CFBundleShortVersionString": "1.2", "Said": ["Call me Ishmael.", {"more": "Of a whale."}]}
    raw = plistlib.dumps(value, fmt=plistlib.FMT_BINARY)
    found = summary(b"Info.plist", raw)
    assert found.attributes["keys"] == sorted(value)
    assert (found.text("title"), found.text("version")) == ("Whale", "1.2")
    assert found.text("partial-text") == "Call me Ishmael.\nOf a whale."
    assert summary(b"Info.plist", raw[:-40]).text("error").startswith("property list: damaged")


def test_fits_cards_are_read(summary: Make) -> None:
    """FITS cards with quotes in their values and comments after them are read."""
    cards = ["SIMPLE  =                    T", "NAXIS1  =                  640 / columns", "NAXIS2  =                  480"]
    cards += ["OBJECT  = 'Ahab''s whale      '", "TELESCOP= 'Spyglass'", "DATE-OBS= '1851-11-14'", "COMMENT Of a whale", "END"]
    found = summary(b"a.fits", "".join(card.ljust(80) for card in cards).ljust(2_880).encode())
    said = {name: found.text(name) for name in ("title", "instrument", "date", "width", "height", "comments")}
    assert said == {
        "title": "Ahab's whale", "instrument": "Spyglass", "date": "1851-11-14", "width": "640", "height": "480",
        "comments": "Of a whale",
    }  # fmt: skip


def netcdf(version: int) -> bytes:
    """Return a file with one dimension, one global attribute and one variable with a long name."""
    wide = version == 5

    def number(value: int) -> bytes:
        return struct.pack(">Q" if wide else ">I", value)

    def name(text: str) -> bytes:
        return number(len(text)) + text.encode().ljust(-(-len(text) // 4) * 4, b"\0")

    def told(key: str, value: str) -> bytes:
        return name(key) + struct.pack(">I", 2) + name(value)

    dimensions = struct.pack(">I", 10) + number(1) + name("lat") + number(128)
    about = struct.pack(">I", 12) + number(2) + told("title", "Of whales") + told("institution", "Pequod")
    attributes = struct.pack(">I", 12) + number(1) + told("long_name", "depth of a dive")
    place = struct.pack(">I" if version == 1 else ">Q", 999)
    one = name("dive") + number(2) + number(0) + number(0) + attributes + struct.pack(">I", 5) + number(512) + place
    two = name("lat") + number(1) + number(0) + bytes(4) + number(0) + struct.pack(">I", 5) + number(512) + place
    return b"CDF" + bytes([version]) + number(0) + dimensions + about + struct.pack(">I", 11) + number(2) + one + two


@pytest.mark.parametrize("version", [1, 2, 5])
def test_netcdf_headers_are_read(version: int, summary: Make) -> None:
    """Dimensions, global attributes and variables are read from each of the three kinds of headers."""
    found = summary(b"a.nc", netcdf(version))
    assert (found.text("title"), found.text("organization")) == ("Of whales", "Pequod")
    assert (found.attributes["dimensions"], found.attributes["columns"]) == (["lat 128"], ["dive: depth of a dive", "lat"])


def _element(group: int, number: int, kind: bytes, value: bytes, *, explicit: bool = True) -> bytes:
    value += b" " * (len(value) % 2)
    head = struct.pack("<HH", group, number)
    return head + (kind + struct.pack("<H", len(value)) if explicit else struct.pack("<I", len(value))) + value


@pytest.mark.parametrize("explicit", [True, False])
def test_dicom_summary_omits_patient(explicit: bool, summary: Make) -> None:
    """The summary of a DICOM image describes the image and nothing of the patient."""
    syntax = b"1.2.840.10008.1.2.1" if explicit else b"1.2.840.10008.1.2"
    elements = [
        (0x08, 0x20, b"DA", b"18511114"), (0x08, 0x60, b"CS", b"MR"), (0x08, 0x1030, b"LO", b"HEAD OF A WHALE"),
        (0x10, 0x10, b"PN", b"Ahab^Captain"), (0x10, 0x30, b"DA", b"17930101"),
        (0x28, 0x10, b"US", b"\xe0\1"), (0x28, 0x11, b"US", b"\x80\2"),
    ]  # fmt: skip
    body = b"".join(_element(*element, explicit=explicit) for element in elements)
    found = summary(b"a.dcm", bytes(128) + b"DICM" + _element(2, 0x10, b"UI", syntax) + body)
    said = {name: found.text(name) for name in ("title", "modality", "date", "width", "height")}
    assert said == {"title": "HEAD OF A WHALE", "modality": "MR", "date": "1851-11-14", "width": "640", "height": "480"}
    assert not any("Ahab" in str(value) or "1793" in str(value) for value in found.attributes.values())


def test_variables_and_labels_are_read(summary: Make) -> None:
    """The summary of Stata, SPSS and SAS files has the variables and their labels."""
    names = b"".join(name.ljust(33, b"\0") for name in (b"dive", b"depth"))
    old = bytes([115, 2, 1, 0]) + struct.pack("<HI", 2, 7) + b"Whales".ljust(81, b"\0") + bytes(18) + b"\xff\xff" + names
    found = summary(b"a.dta", old)
    assert (found.text("title"), found.attributes["columns"], found.text("rows")) == ("Whales", ["dive", "depth"], "7")
    wide = b"".join(name.ljust(129, b"\0") for name in (b"dive", b"depth"))
    new = b"<stata_dta><header><release>118</release><byteorder>LSF</byteorder><K>\2\0</K><N>\7\0\0\0\0\0\0\0</N>"
    new += b"<label>\6\0Whales</label></header><varnames>" + wide + b"</varnames>"
    found = summary(b"a.dta", new)
    assert (found.text("title"), found.attributes["columns"], found.text("rows")) == ("Whales", ["dive", "depth"], "7")
    head = b"$FL2" + b"@(#) SPSS DATA FILE by hand".ljust(60) + struct.pack("<iiiiid", 2, 1, 0, 0, 7, 100.0) + b"14 Nov 5109:00:00"
    head += b"Whales".ljust(64) + bytes(3)
    label = struct.pack("<I", 5) + b"a div\0\0\0"
    variables = struct.pack("<6i", 2, 0, 1, 0, 0, 0) + b"DIVE    " + label + struct.pack("<6i", 2, 0, 0, 0, 0, 0) + b"DEPTH   "
    found = summary(b"a.sav", head + variables + struct.pack("<i", 999))
    assert (found.text("title"), found.attributes["columns"]) == ("Whales", ["DIVE: a div", "DEPTH"])
    table = b"HEADER RECORD*******NAMESTR HEADER RECORD!!!!!!!000000000200000000000000000000  "
    entries = b"".join(
        bytes(8) + name.ljust(8) + label.ljust(40) + bytes(84) for name, label in ((b"DIVE", b"A dive"), (b"DEPTH", b""))
    )
    sas = b"HEADER RECORD*******LIBRARY HEADER RECORD!!!!!!!000000000000000000000000000000  " + table + entries
    assert summary(b"a.xpt", sas).attributes["columns"] == ["DIVE: A dive", "DEPTH"]


@pytest.mark.parametrize("name", [b"a.mobi", b"a.dbf", b"a.nc", b"a.dcm", b"a.sav", b"a.dta", b"a.xpt", b"a.fits"])
def test_misnamed_file_keeps_strings(name: bytes, summary: Make) -> None:
    """A file that only has the name of a format keeps its strings, like an unrecognized file."""
    assert "Of a whale, by Ahab" in summary(name, bytes(range(32)) + b"Of a whale, by Ahab" + bytes(200)).text("strings")
