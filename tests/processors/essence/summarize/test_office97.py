"""Office documents before 2007, and RTF: valid tables and invalid ones."""

import io
import random
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.essence.formats.compound_file import Compound
from processors.essence.summarize import Facts, Found, SummaryError, summarize
from tests.processors.essence.summarize.compound import atom, compound, properties, record, word

Make = Callable[..., Found]


def summarize_body(body: bytes, kind: str = "OLE") -> tuple[Found, str]:
    """Return the summary of a body, and the reason of its damage."""
    found = Found()
    try:
        summarize(Facts(b"x", "http://example.org/x", kind, "x/y", len(body), 0, ""), io.BytesIO(body), found)
    except SummaryError as error:
        return found, str(error)
    return found, ""


@given(
    st.dictionaries(st.text(st.characters(codec="ascii", exclude_categories=["C"]), min_size=1, max_size=20), st.integers(1, 9_000))
)
def test_streams_are_read_as_written(sizes: dict[str, int]) -> None:
    """Every stream of a compound file, small or large, is read as written, whole and in part."""
    streams = {name: random.Random(name).randbytes(size) for name, size in list(sizes.items())[:10]}
    read = Compound(io.BytesIO(compound(streams)))
    for name, data in streams.items():
        assert read.read(name, 1 << 20) == data
        assert read.read(name, 100, 70) == data[70:170]
    assert read.read("no such stream", 10) == b""


def test_chains_are_followed_once() -> None:
    """The chain of a stream is followed once for any number of reads, and only up to a limit if it is a ring."""
    body = bytearray(compound({"a": bytes(5_000)}))
    table = 512
    last = max(n for n in range(128) if struct.unpack_from("<I", body, table + 4 * n)[0] != 0xFFFF_FFFF)
    read = Compound(io.BytesIO(bytes(body)))
    struct.pack_into("<I", body, table + 4 * last, read.streams["a"].start)
    read = Compound(io.BytesIO(bytes(body)))
    ring = read.streams["a"]._replace(size=1 << 31)
    steps: list[int] = []
    follow = read._next

    def counted(sector: int) -> int:
        steps.append(sector)
        return follow(sector)

    read._next = counted  # type: ignore[method-assign]
    assert {read.part(ring, 10, (1 << 24) + 512 * n) for n in range(100)} == {b""}
    assert read.part(ring, 10, 1 << 30) == b""
    # No chain is longer than the file, unless it is a ring.
    assert len(steps) <= len(body) // 512 + 1
    assert sum(map(len, read.pieces(ring))) <= len(body) + 512


def test_chains_of_small_streams_are_followed_once() -> None:
    """The chain of a small stream is followed once, whatever its declared size; a partial read equals a slice of the whole."""
    data = bytes(range(256)) * 10
    body = bytearray(compound({"a": data, "b": b"x"}))
    read = Compound(io.BytesIO(bytes(body)))
    entry = read.streams["a"]
    places = [(at, size) for at in (0, 1, 63, 64, 65, 200, 2_559, 2_560) for size in (0, 1, 64, 100, 4_000)]
    assert [read.part(entry, size, at) for at, size in places] == [data[at : at + size] for at, size in places]
    # The last sector of the stream points back to its first one; the header declares all streams small.
    table = 512 * (1 + struct.unpack_from("<I", body, 60)[0])
    struct.pack_into("<I", body, table + 4 * (len(data) // 64 - 1), entry.start)
    struct.pack_into("<I", body, 56, 0xFFFF_FFFF)
    read = Compound(io.BytesIO(bytes(body)))
    ring = read.streams["a"]._replace(size=0xFFFF_FFF0)
    assert len(read.part(ring, 1 << 32)) <= len(body)
    assert {read.part(ring, 10, 1 << 24) for _ in range(1_000)} == {b""}


def test_workbook_has_sheet_names_and_strings() -> None:
    """The summary of a workbook has its sheet names and strings, from records of Excel 97 and of earlier versions."""
    sheet = b"\0" * 6
    strings = (
        struct.pack("<II", 2, 2) + b"\x05\0\0barge" + b"\x02\0\x09" + struct.pack("<H", 1) + "Mö".encode("utf-16-le") + b"abcd"
    )
    new = record(0x809, b"\0\x06") + record(0x85, sheet + b"\x05\0Boats") + record(0xFC, strings)
    old = (
        record(0x809, b"\0\x05")
        + record(0x42, b"\xe3\x04")
        + record(0x85, sheet + b"\x01\xcb")
        + record(0x204, b"\0" * 6 + b"\x01\0\xcb")
    )
    assert summarize_body(compound({"Workbook": new}))[0].attributes["headings"] == ["Boats"]
    assert summarize_body(compound({"Workbook": new}))[0].text("partial-text") == "barge\nMö"
    found, problem = summarize_body(compound({"Book": old}))
    assert (found.attributes["headings"], found.text("partial-text"), problem) == (["Л"], "Л", "")


def test_presentation_has_slide_titles_and_text() -> None:
    """The summary of a presentation has its slide titles, each once, and its text."""
    title = atom(3999, struct.pack("<I", 6)) + atom(4000, "Möwen".encode("utf-16-le"))
    text = atom(3999, struct.pack("<I", 1)) + atom(4008, b"one\rtwo")
    found, problem = summarize_body(compound({"PowerPoint Document": atom(1000, title + text + title, 0xF)}))
    assert (found.attributes["headings"], found.text("partial-text"), problem) == (["Möwen"], "Möwen\none\ntwo\nMöwen", "")


def test_powerpoint_default_title_is_replaced() -> None:
    """The title is the declared one, or the first slide's where the declared one is PowerPoint's default."""
    slides = atom(1000, atom(3999, struct.pack("<I", 6)) + atom(4008, b"Gulls"), 0xF)
    for stated, title in (("PowerPoint Presentation", "Gulls"), ("Birds", "Birds")):
        streams = {"PowerPoint Document": slides, "\x05SummaryInformation": properties({2: stated})}
        assert summarize_body(compound(streams))[0].attributes["title"] == [title]


def test_outlook_message_has_subject_author_and_text() -> None:
    """The summary of an Outlook message has subject, author, addresses and text, in UTF-16 or not."""
    streams = {
        "__substg1.0_0037001F": "Über Boote".encode("utf-16-le"),
        "__substg1.0_0C1A001E": b"Ann",
        "__substg1.0_1000001F": "Text.".encode("utf-16-le"),
    }
    found, _ = summarize_body(compound(streams))
    assert (found.text("title"), found.text("author"), found.text("partial-text")) == ("Über Boote", "Ann", "Text.")


@pytest.mark.parametrize(
    "streams",
    [word("Secret.", flags=0x300), {"EncryptedPackage": b"x"}, {"Workbook": record(0x809, b"\0\x06") + record(0x2F, b"")}],
)
def test_encrypted_document_is_reported(streams: dict[str, bytes]) -> None:
    """A document that needs a password is reported as encrypted and gives its unencrypted parts."""
    found, problem = summarize_body(compound({**streams, "\x05SummaryInformation": properties({4: "Ann"})}))
    assert (found.text("author"), found.text("encrypted"), problem) == ("Ann", "a password is needed", "")


def test_rings_are_followed_in_bounded_time() -> None:
    """Sector chains, tables and directories that form rings are followed for a bounded time."""
    body = bytearray(compound({**word("Text. " * 2_000), "\x05SummaryInformation": properties({2: "Title"})}))
    struct.pack_into("<II", body, 68, 0, 0xFFFFFFFF)
    for sector in range(128):
        struct.pack_into("<I", body, 512 + 4 * sector, sector)
    read = Compound(io.BytesIO(bytes(body)))
    assert len(read.read("WordDocument", 1 << 30)) <= 1 << 30
    assert summarize_body(bytes(body))[0].text("title")
    ring = bytearray(compound({"a": b"1", "b": b"2"}))
    at = ring.index("b\0".encode("utf-16-le")[:2] + b"\0\0")
    struct.pack_into("<III", ring, at + 68, 1, 2, 0)
    assert set(Compound(io.BytesIO(bytes(ring))).streams) == {"a", "b"}


@given(st.data())
def test_any_change_raises_only_summary_error(data: st.DataObject) -> None:
    """Any change to a document raises nothing but SummaryError, and there is a title."""
    parts = {
        **word("Text of a document."),
        "Workbook": record(0x809, b"\0\x06")
        + record(0x85, b"\0" * 6 + b"\x05\0Boats")
        + record(0xFC, bytes(8) + b"\x05\0\x0cbarge"),
        "PowerPoint Document": atom(3999, b"\0" * 4) + atom(4000, b"a\0") + atom(4008, b"b"),
        "\x05SummaryInformation": properties({2: "Title", 12: 1 << 56}),
    }
    kept = data.draw(st.sets(st.sampled_from(sorted(parts)), min_size=1))
    body = bytearray(compound({name: parts[name] for name in sorted(kept)}))
    for _ in range(data.draw(st.integers(0, 6))):
        at = data.draw(st.integers(0, len(body) - 4))
        struct.pack_into(
            "<I",
            body,
            at,
            data.draw(st.sampled_from([0, 1, 2, 0xFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFE, 0x40000000]) | st.integers(0, 2**32 - 1)),
        )
    found, problem = summarize_body(
        bytes(body[: data.draw(st.integers(0, len(body)))]) if data.draw(st.booleans()) else bytes(body)
    )
    assert found.text("title")
    assert "rror:" not in problem


WORDS = [
    "{",
    "}",
    "\\par ",
    "\\u-10179",
    "\\u8212?",
    "\\'e4",
    "\\'",
    "\\bin3 ",
    "\\bin99999999 ",
    "\\uc2 ",
    "{\\info{\\title ",
    "\\*",
    "\\ansicpg932 ",
]


@given(
    st.lists(
        st.sampled_from([*WORDS, "\\ansicpg99999 ", "text", "\\", "\n", "\\~", "\\pict ", "{\\creatim\\yr1994\\mo1", "\\\n"]),
        max_size=40,
    )
)
def test_any_rtf_raises_only_summary_error(pieces: list[str]) -> None:
    """Any RTF raises nothing but SummaryError, and there is a title."""
    found, problem = summarize_body(("{\\rtf1 " + "".join(pieces)).encode("latin-1"), "RTF")
    assert found.text("title")
    assert "rror:" not in problem


def test_rtf_damage_is_reported(samples: Path) -> None:
    """A truncated RTF gives the text before the cut; too deep nesting is reported; pictures are skipped."""
    sample = (samples / "rtf.rtf").read_bytes()
    found, problem = summarize_body(sample[: sample.index(b"Gates")], "RTF")
    assert (found.text("title"), found.attributes["headings"]) == ("Locks of the canal", ["Chambers"])
    assert problem == "RTF: truncated: a group is not closed"
    assert "deep" in summarize_body(b"{\\rtf1 " + b"{" * 2_000, "RTF")[1]
    found, problem = summarize_body(b"{\\rtf1 a{\\pict\\bin4 }}{{}\\ansicpg932\\'82\\'a0}", "RTF")
    assert problem == ""
    assert found.text("partial-text") == "aあ"


def test_cut_document_is_reported(samples: Path) -> None:
    """A document that ends before its text is damaged, and keeps its properties."""
    found, problem = summarize_body((samples / "ole.doc").read_bytes()[:3_840])
    assert found.text("title") == "Sluices of the Möwe canal"
    assert problem == "OLE: truncated: its streams are larger than the file"
