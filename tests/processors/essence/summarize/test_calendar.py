"""Calendars and cards, whose title was once their first line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from processors.essence.summarize import Found

CARDS = (
    "BEGIN:VCARD\r\nVERSION:3.0\r\nFN:Ada Fern\r\nORG:Lake Institute;Ferns\r\nEND:VCARD\r\n"
    "BEGIN:VCARD\r\nVERSION:2.1\r\nitem1.FN;CHARSET=ISO-8859-1;ENCODING=QUOTED-PRINTABLE:Ren=E9 =\r\nMoss\r\nEND:VCARD\r\n"
)


def test_cards_are_titled_by_people(summary: Callable[..., Found]) -> None:
    """A file of cards is titled by its people; quoted-printable, folding and charset are decoded."""
    found = summary(b"all.vcf", CARDS.encode()).attributes
    assert found["title"] == ["Ada Fern and 1 more"]
    assert found["names"] == ["Ada Fern", "René Moss"]
    assert (found["cards"], found["organization"]) == (["2"], ["Lake Institute, Ferns"])


def test_unnamed_calendar_is_titled_by_event(summary: Callable[..., Found]) -> None:
    """A calendar without a name is titled by its event; alarms and daylight saving rules are left out."""
    text = (
        "BEGIN:VCALENDAR\nBEGIN:VTIMEZONE\nBEGIN:STANDARD\nDTSTART:16010101T000000\nEND:STANDARD\nEND:VTIMEZONE\n"
        'BEGIN:VEVENT\nSUMMARY:Visit\\, to the la\n ke\nORGANIZER;CN="Ada Fern":mailto:a@b.org\nDTSTART;VALUE=DATE:20240501\n'
        "BEGIN:VALARM\nDESCRIPTION:Reminder\nEND:VALARM\nEND:VEVENT\nEND:VCALENDAR\n"
    )
    found = summary(b"invite.ics", text.encode()).attributes
    assert found["title"] == ["Visit, to the lake"]
    assert (found["author"], found["date"], found["events"]) == (["Ada Fern"], ["2024-05-01"], ["1"])
    assert found["partial-text"] == ["Visit, to the lake"]


@pytest.mark.parametrize("text", ["", "BEGIN:VCALENDAR", "END:VCARD\nFN:x\n", "DTSTART:\nBEGIN:VEVENT\nDTSTART:2024\n", "x"])
def test_truncated_calendar_is_not_rejected(summary: Callable[..., Found], text: str) -> None:
    """An invalid or truncated calendar is not rejected."""
    found = summary(b"x.ics", text.encode()).attributes
    assert found["title"]
    assert "error" not in found


@pytest.mark.parametrize("charset", ["punycode", "idna", "unicode_escape"])
def test_codecs_that_are_not_charsets_are_not_used(summary: Callable[..., Found], charset: str) -> None:
    """Codecs that are not charsets, and may take forever, are not used."""
    card = f"BEGIN:VCARD\nFN;CHARSET={charset};ENCODING=QUOTED-PRINTABLE:Moss\\u0041-a\nEND:VCARD\n"
    assert summary(b"a.vcf", card.encode()).attributes["names"] == ["Moss\\u0041-a"]
