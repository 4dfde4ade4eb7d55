"""Documents, spreadsheets and help files of the 1990s, Java classes, TeX metrics, and tests written as text."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from processors.essence.recognize import recognize
from processors.essence.summarize import Found
from processors.essence.summarize.office._wordperfect import LENGTHS_5, LENGTHS_6
from tests.processors.essence.summarize.java_class import java

Make = Callable[..., Found]


def wordperfect(body: bytes, major: int, key: int = 0) -> bytes:
    """Return a WordPerfect document: header and text."""
    return b"\xffWPC" + struct.pack("<IBBBBHH", 20, 1, 0x0A, major, 0, key, 0) + bytes(4) + body


def test_wordperfect_5_text_is_read(summary: Make) -> None:
    """Text between functions of any length is read; function contents are not text, and a soft return ends no line."""
    functions = b"".join(bytes([code]) + b"zz".ljust(length - 1, b"z") for code, length in LENGTHS_5.items() if code > 0xC2)
    told = b"\xd0\x01\x06\0ZZ\x06\0\x01\xd0"
    body = (
        told
        + b"The whale\n\n"
        + functions
        + b"Call me\rIsh\xacma\xc0\x1b\x01\xc0l\xc0\x1c\x04\xc0s"
        + b"\xc1"
        + bytes(8)
        + b"six\xa9month\x0cEnd"
    )
    found = summary(b"a.wp", wordperfect(body, 0))
    assert found.text("title") == "The whale"
    assert found.text("partial-text") == "The whale\nCall me Ishma\xe1l\u2019s six-month\nEnd"


def test_wordperfect_6_text_is_read(summary: Make) -> None:
    """The same holds for version 6, with its different functions; deleted text is left out."""
    fixed = b"".join(bytes([code]) + b"z" * (length - 1) for code, length in LENGTHS_6.items() if code not in (0xF0, 0xF1, 0xFF))
    soft, hard = (b"\xd0" + bytes([kind]) + struct.pack("<H", 9) + b"z" * 4 + b"\xd0" for kind in (1, 4))
    told = b"\xd4\x1c" + struct.pack("<H", 12) + b"z" * 7 + b"\xd4"
    undone = b"\xf1\0\x7f\x02\xf1deleted \xf1\x01\x80\x02\xf1"
    body = told + b"The\x80whale" + hard + fixed + b"Call\x80me" + soft + b"Ishma\x08l " + undone + b"\xf0\x1f\x04\xf0\xcc\xccEnd"
    found = summary(b"a.wpd", wordperfect(body, 2))
    assert found.text("title") == "The whale"
    assert found.text("partial-text") == "The whale\nCall me Ishmaàl ”\nEnd"


@pytest.mark.parametrize("major", [0, 2])
def test_wordperfect_password_is_reported(major: int, summary: Make) -> None:
    """A document with a password is reported; one that ends within a function gives the text before it."""
    assert summary(b"a.wpd", wordperfect(b"x", major, 77)).text("error") == "WordPerfect: encrypted"
    for tail in (b"\xd0", b"\xd0\x01", b"\xd0\x01\x00\x00", b"\xf0", b"\xcc", b"\xf1", b"\xd4\x1c\xff\xff"):
        assert summary(b"a.wpd", wordperfect(b"A whale of a time" + tail, major)).text("partial-text") == "A whale of a time"


def test_windows_write_text_is_read(summary: Make) -> None:
    """The text of Windows Write is after the header, up to the declared end."""
    text = "The whale\r\nCall me Ish\x1fmael, \u201cMo\xebl\u201d.\r\n".encode("cp1252")
    raw = (b"\x31\xbe\0\0\0\xab\0\0" + bytes(6) + struct.pack("<I", 128 + len(text))).ljust(128, b"\0") + text + b"\x01\x02fonts"
    found = summary(b"a.wri", raw)
    assert found.text("partial-text") == "The whale\nCall me Ishmael, \u201cMo\xebl\u201d."
    assert found.text("title") == "The whale"


@pytest.mark.parametrize("begin", [b"\0\0\2\0\6\4\6\0\x08\0" + bytes(8), b"\0\0\x1a\0\0\x10\4\0" + bytes(22)])
def test_lotus_texts_have_no_prefix(begin: bytes, summary: Make) -> None:
    """The texts of a Lotus worksheet are read without their alignment prefix, and without numbers and rules."""
    kind, head = (0x0F, b"\xff\0\0\1\0") if begin[4] == 6 else (0x16, bytes(4))
    cells = [head + text + b"\0" for text in (b"'Whales", b'"Length', b"\\-", b"^M\x94by")]
    raw = begin + b"".join(struct.pack("<HH", kind, len(cell)) + cell for cell in cells) + struct.pack("<HH", 1, 0)
    assert summary(b"a.wk1", raw).text("partial-text") == "Whales\nLength\nM\xf6by"


def test_compiled_help_is_titled_by_description(summary: Make) -> None:
    """Compiled help is titled by its description, in the charset of its language."""
    system = (
        struct.pack("<I", 3)
        + struct.pack("<HH", 3, 9)
        + "Киты\0".encode("cp1251").ljust(9, b"\0")
        + struct.pack("<HH", 2, 6)
        + b"a.htm\0"
    )
    entry = b"\x08/#SYSTEM\0\x81\0" + bytes([len(system)])
    head = b"ITSF" + struct.pack("<IIIII", 3, 96, 1, 0, 0x419) + bytes(64) + struct.pack("<Q", 96 + len(entry) + 128)
    found = summary(b"a.chm", head + entry + bytes(256) + system)
    assert (found.text("title"), found.text("home")) == ("Киты", "a.htm")


def test_java_class_has_names(summary: Make) -> None:
    """The summary of a Java class has its name and the attributes that a source would have."""
    found = summary(b"Whale.class", java())
    expected = {
        "title": ["sea.Whale"], "format": ["Java class, for Java 8"], "superclass": ["sea.Fish"], "interfaces": ["sea.Swims"],
        "fields": ["length"], "functions": ["spout"], "source-file": ["Whale.java"],
    }  # fmt: skip
    assert found.attributes == expected
    for n in range(10, len(java())):
        assert summary(b"Whale.class", java()[:n]).text("title")


def test_tex_metrics_have_family_size_and_coding(summary: Make) -> None:
    """The summary of font metrics has family, size and coding; a file with only their name keeps its strings."""
    header = struct.pack(">II", 1, 10 << 20) + b"\x09TeX text ".ljust(40, b"\0") + b"\x03CMR".ljust(20, b"\0") + bytes(4)
    lengths = struct.pack(">12H", 6 + 18 + 2 + 7, 18, 65, 66, 1, 1, 1, 1, 1, 1, 1, 0)
    raw = lengths + header + bytes(4 * 9)
    found = summary(b"cmr10.tfm", raw)
    said = {name: found.text(name) for name in ("family", "size", "charset", "glyphs", "title")}
    assert said == {"family": "CMR", "size": "10pt", "charset": "TeX text", "glyphs": "2", "title": "CMR"}
    assert "format" not in summary(b"cmr10.tfm", b"\0\1" + raw[2:]).attributes


def test_feature_scenarios_are_headings(summary: Make) -> None:
    """The description of a feature is the description, and each scenario a heading; interface definitions name their types."""
    text = b"@slow\nFeature: Whales spout\n  As a whale\n\n  Scenario: At sea\n    Given water\n\n  Scenario Outline: On <day>\n"
    found = summary(b"spout.feature", text)
    assert found.text("description") == "Whales spout"
    assert found.attributes["headings"] == ["At sea", "On <day>"]
    proto = b'syntax = "proto3";\nmessage Whale {\n  string name = 1;\n}\nservice Sea {\n}\n// message lost at sea\n'
    assert summary(b"a.proto", proto).attributes["types"] == ["Whale", "Sea"]


def test_dvi_text_omits_driver_commands(summary: Callable[..., Found]) -> None:
    """Driver commands are not text; accents are placed above the letters that follow, in the font's encoding."""
    begin = b"\xf7\2" + bytes(12) + b"\0" + b"\x8b" + bytes(44)
    special = b"\xef\x0dpapersize=1in"
    fonts = (
        b"\xf3\1" + bytes(12) + b"\0\x05cmr10" + b"\xf3\2" + bytes(12) + b"\0\x08ecrm1000" + b"\xf3\3" + bytes(12) + b"\0\x06cmmi10"
    )
    text = b"\xac" + b"\\Na\x7fu" + b"\x92\xff\xf0\0\0" + b"ve" + b"\x92\0\x05\0\0" + b"\xad\x80\xb2\xe8" + b"\xae\x0b" + b"\x8c"
    found = summary(b"lake.dvi", begin + special + fonts + text.replace(b"\xe8", b"\x80\xe8") + b"\xf8")
    assert found.text("partial-text") == "\u201cNa\xfcve \u0161\xe8\u03b1"


FOUR = (
    b"\xd0\x06\x3c\x0a\x4a\xd0" + b"\xc3\x00\x24\x10\xc3The manatee\x83\n\nA \x9cmanatee\x9d eats plants,\rand it sleeps"
    b" un\xacder water.\n\tIt is na\xe1\x8b\xe1ve\xa0and\xe2\0\0\xff A footnote.\xe2 slow.\n"
)


@pytest.mark.parametrize("name", [b"LETTER", b"letter.wp", b"LETTER.DOC", b"report.wpd"])
def test_text_of_wordperfect_4_is_read(name: bytes, summary: Make) -> None:
    """A document of WordPerfect 4.2, which has no mark, is recognized by its functions; they are no text, but characters are."""
    found = summary(name, FOUR)
    assert found.text("partial-text") == "The manatee\nA manatee eats plants, and it sleeps under water.\nIt is naïve and slow."


OTHERS = {
    "groups around paragraphs": (
        b"\xc0\x0a\x4a\x0c\x46\xc0Dear Ms Reed,\n\nthe locks of the canal open\x0dat dawn.\xc1\0\1\xc1\nYours, the keeper\n",
        "Dear Ms Reed,\nthe locks of the canal open at dawn.\nYours, the keeper",
    ),
    "letters of code page 437": (
        (
            b"\xd0\6\x3c\x0a\x4a\xd0M\xe1\x81\xe1ller und S\xe1\x94\xe1hne bauen Br\xe1\x81\xe1cken aus Holz und Stahl.\n"
            b"\xc3\0\x24\x10\xc3Stra\xe1\xe1\xe1e gesperrt\n"
        ),
        "Müller und Söhne bauen Brücken aus Holz und Stahl.\nStraße gesperrt",
    ),
    "hyphens and hard spaces": (
        b"\xd0\6\x3c\x0a\x4a\xd0A well\xa9known ferry\xa0man rows to the is\xacland\x8cand back\xd3\1\2\xd3 again.\n",
        "A well-known ferry man rows to the island\nand back again.",
    ),
    "note in the middle": (
        (
            b"\xd0\6\x3c\x0a\x4a\xd0\xc3\0\x24\x10\xc3The harbour\n\n"
            b"\x90Boats leave\xe2\1\2 Not in winter.\xe2 at noon and return at night.\n"
        ),
        "The harbour\nBoats leave at noon and return at night.",
    ),
}


@pytest.mark.parametrize(("raw", "text"), OTHERS.values(), ids=OTHERS)
def test_functions_of_wordperfect_4_are_not_text(raw: bytes, text: str, summary: Make) -> None:
    """Functions of any size, notes and soft hyphens of WordPerfect 4.2 give no text; letters, hyphens and hard spaces do."""
    assert recognize(b"LETTER", raw).type == "WordPerfect4"
    assert summary(b"LETTER", raw).text("partial-text") == text


@pytest.mark.parametrize(
    "raw",
    [
        "Été comme hiver, le lamantin a mangé des plantes près de la rivière; il a été observé.\n".encode("cp1252"),
        "Die Größe der Übung hängt ab von den Wünschen der Schüler; süßer wäre größer, häßlich und äußerst öde.\n".encode("cp1252"),
        "Привет, мир! Съешь же ещё этих мягких французских булок\n".encode("koi8-r") * 3,
        "日本語の文章です。東京都は日本の首都です。 plain words of ASCII follow here\n".encode("euc-jp"),
        "“Quoted” text of UTF-8 – naïve, ééé and so on with many words\n".encode(),
    ],
    ids=("French", "German", "Russian", "Japanese", "UTF-8"),
)
def test_text_with_letters_is_not_wordperfect(raw: bytes, summary: Make) -> None:
    """Letters beyond ASCII are not functions of WordPerfect."""
    assert recognize(b"LETTER", raw).type == "RawText"


def test_broken_group_ends_the_text_of_wordperfect_4(summary: Make) -> None:
    """A group without its end ends the text; what precedes it is kept."""
    found = summary(b"LETTER", FOUR + b" and more words" * 400 + b"\xd0not the end of a group")
    assert "and more words" in found.text("partial-text")
    assert "not the end" not in found.text("partial-text")
