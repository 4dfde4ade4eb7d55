"""Dates as programs write them: ISO 8601 if unambiguous, otherwise unchanged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.essence.summarize._dates import iso_date
from tests.processors.essence.summarize.test_binaries import exif, summarize_counted

SURE = [
    ("Tue Mar 5 09:00:00 2024", "2024-03-05T09:00:00"),
    ("Tue Mar  5 09:00:00 2024", "2024-03-05T09:00:00"),
    ("Tue Mar 05 09:00:00 GMT 2024", "2024-03-05T09:00:00Z"),
    ("Tue Mar 05 09:00:00 MET 2024", "2024-03-05T08:00:00Z"),
    ("5 March 2024 12:00 EST", "2024-03-05T17:00:00Z"),
    ("Tue, 5 Mar 2024 09:00:00 -0500 (EST)", "2024-03-05T14:00:00Z"),
    ("Tue, 5 Mar 2024 09:00:00 +0100", "2024-03-05T08:00:00Z"),
    ("5 March 2024", "2024-03-05"),
    ("Sept. 5, 2024", "2024-09-05"),
    ("5-Mar-2024", "2024-03-05"),
    ("Mar 5, 2024", "2024-03-05"),
    ("Tuesday, March 5, 2024", "2024-03-05"),
    ("D:20240305090000", "2024-03-05T09:00:00"),
    ("D:20240305090000Z00'00'", "2024-03-05T09:00:00Z"),
    ("D:20240305090000+01'00'", "2024-03-05T08:00:00Z"),
    ("2024:03:05 09:00:00", "2024-03-05T09:00:00"),
    ("2024:03:05", "2024-03-05"),
    ("2024/03/05 09:00", "2024-03-05T09:00:00"),
    ("2024-03-05T09:00:00.25+01:00", "2024-03-05T08:00:00Z"),
    ("2024-03-05", "2024-03-05"),
    ("2/21/2024", "2024-02-21"),
    ("21/2/2024 09:00", "2024-02-21T09:00:00"),
    ("21-02-2024", "2024-02-21"),
    ("05/05/2024", "2024-05-05"),
    ("5.3.2024", "2024-03-05"),
    ("March 5th, 2024", "2024-03-05"),
    ("5. March, 2024", "2024-03-05"),
    ("2024 Mar 5", "2024-03-05"),
    ("March 2024", "2024-03"),
    ("Sep., 2024", "2024-09"),
    ("<2024-03-05 Tue>", "2024-03-05"),
    ("[2024-03-05 Di 09:00-10:30]", "2024-03-05T09:00:00"),
    ("<2024-03-05 mar. 09:00 +1w -2d>", "2024-03-05T09:00:00"),
]

UNSURE = [
    "",
    "3/5/24",
    "05/03/2024",
    "21/22/2024",
    "5/21-2024",
    "2024-03/05",
    "Tue Mar 32 09:00:00 2024",
    "2024-02-30",
    "2024-03-05 25:00",
    "0000:00:00 00:00:00",
    "    :  :     :  :",
    "5 Marble 2024",
    "Mar 5 2024 9:00 PM",
    "0024:03:05 09:00:00",
    "5. März 2024",
    "<2024-03-05 Tue>--<2024-03-07 Thu>",
    "D:20241305",
    "9999-12-31T23:00:00-23:00",
    "2024-03-05T09:00:00+99:00",
    r"\today",
    "20240305",
    "5 March 2024 12:00 IST",
    "5 March 2024 (draft)",
    "1000-01-01 00:00 +0500",
    "1 May 2024 " * 20,
]


@pytest.mark.parametrize(("written", "date"), SURE)
def test_unambiguous_date_becomes_iso_8601(written: str, date: str) -> None:
    """An unambiguous date becomes ISO 8601, which is read back unchanged."""
    assert iso_date(written) == date
    assert iso_date(date) == date


@pytest.mark.parametrize("written", UNSURE)
def test_ambiguous_date_is_unchanged(written: str) -> None:
    """An ambiguous date stays as written."""
    assert iso_date(written) == written.strip()


@given(st.text("0123456789:/-.+ DTZ'<[]>Mar", max_size=110) | st.text())
def test_any_text_raises_nothing(written: str) -> None:
    """No text raises an exception."""
    assert isinstance(iso_date(written), str)


def test_postscript_date_is_read() -> None:
    """The date in PostScript comments is read."""
    found, _ = summarize_counted("PostScript", b"%!PS-Adobe-3.0\n%%CreationDate: (Tue Mar 5 09:00:00 2024)\n%%EndComments\n")
    assert found.text("date") == "2024-03-05T09:00:00"


def test_org_date_is_read() -> None:
    """The date of an Org document is read."""
    found, _ = summarize_counted("Org", b"#+TITLE: Oars\n#+DATE: <2024-03-05 Tue>\n\n* Boats\nOf wood.\n")
    assert found.text("date") == "2024-03-05"


def test_exif_date_is_read() -> None:
    """The date of a photograph is read."""
    part = b"Exif\0\0" + exif()
    found, _ = summarize_counted("Image", b"\xff\xd8\xff\xe1" + (len(part) + 2).to_bytes(2, "big") + part + b"\xff\xd9" + bytes(9))
    assert found.text("creation-date") == "1994-07-01T12:00:00"


@pytest.mark.parametrize(
    ("kind", "body", "date"),
    [
        (
            "HTML",
            b"<title>Oars</title><meta name=date content='Tue, 5 Mar 2024 10:00:00 +0100'>",
            "2024-03-05T09:00:00Z",
        ),
        ("Patch", b"From: A <a@example.org>\nDate: Tue, 5 Mar 2024 10:00:00 +0100\n\n--- a/x\n+++ b/x\n", "2024-03-05T09:00:00Z"),
        ("Patch", b"Description: Oars\nLast-Update: 2024-03-05\n---\n--- a/x\n+++ b/x\n", "2024-03-05"),
        (
            "XML",
            b"<gpx><metadata><time>2024-03-05T09:00:00Z</time></metadata><time>2025</time></gpx>",
            "2024-03-05T09:00:00Z",
        ),
        (
            "XML",
            b"<feed><updated>2024-03-05T10:00:00+01:00</updated><entry><updated>2023-01-01</updated></entry></feed>",
            "2024-03-05T09:00:00Z",
        ),
        ("XML", b"<rss><channel><pubDate>Tue, 05 Mar 2024 09:00:00 GMT</pubDate></channel></rss>", "2024-03-05T09:00:00Z"),
        ("HTML", b"<title>Oars</title><meta name=date content='3/5/24'>", "3/5/24"),
    ],
)
def test_dates_of_all_types_are_iso_8601(kind: str, body: bytes, date: str) -> None:
    """An unambiguous date of any type, also in the format of a feed, becomes ISO 8601, so that it is found by its day."""
    found, _ = summarize_counted(kind, body)
    assert found.attributes["date"] == [date]
