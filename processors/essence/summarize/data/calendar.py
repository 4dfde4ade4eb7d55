"""Calendars (iCalendar, RFC 5545) and contacts (vCard, RFC 6350): events with dates and places, people and organizations."""

from __future__ import annotations

import quopri
import re
from typing import BinaryIO

from processors.essence.formats.text import decode, read_text, squeeze
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize.source._source import add_all

MAX_READ = 1 << 20
MAX_TEXT = 12_288

_LINE = re.compile(r"^(?:[\w-]{1,40}\.)?([A-Za-z][\w-]{1,60})((?:;(?:\"[^\"\n]*\"|[^\":\n]|(?!))*+)?):([^\n]*)$", re.MULTILINE)
_FOLD = re.compile(r"\n[ \t]")
_SOFT = re.compile(r"=[ \t]*\n[ \t]*")
"""Line continuations: folding in both formats (RFC 5545, 3.1), and soft line breaks of quoted-printable in vCard 2.1."""
_ESCAPED = re.compile(r"\\([\\;,nN:])")
_CHARSET = re.compile(r"CHARSET=\"?([\w-]{1,40})", re.IGNORECASE)
# A VTODO is a task (RFC 5545, 3.6.2).
_KINDS = {"VEVENT": "events", "VTODO": "tasks", "VJOURNAL": "journals", "VCARD": "cards"}
_MEANS = {
    "SUMMARY": "headings", "DESCRIPTION": "", "COMMENT": "", "NOTE": "", "LOCATION": "places", "CATEGORIES": "keywords",
    "ORGANIZER": "author", "ATTENDEE": "names", "FN": "names", "ORG": "organization", "TITLE": "", "URL": "url-references",
    "PRODID": "generator",
}  # fmt: skip
"""The attribute of each property; "": only part of the text."""
_SAID = ("", "headings", "places", "names")
"""Attributes whose values are part of the text."""
_WHOLE = frozenset(("ADR", "LABEL", "EMAIL", "TEL", "ROLE", "NICKNAME"))
"""Properties with contact details, which only a full text includes."""


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add title, headings (events), names, places, date (first to last), counts of events, tasks and cards, and the text of all."""
    text = _FOLD.sub("", read_text(body, facts.charset, MAX_READ))
    counts: dict[str, int] = {}
    days: set[str] = set()
    said: list[str] = []
    named = ""
    within: list[str] = []
    for name, parameters, raw in _LINE.findall(_SOFT.sub("", text) if "QUOTED-PRINTABLE" in text.upper() else text):
        key, value = name.upper(), _value(parameters, raw)
        if key == "BEGIN":
            within.append(value.upper())
            counts[within[-1]] = counts.get(within[-1], 0) + 1
        elif key == "END" and within:
            within.pop()
        elif key in ("X-WR-CALNAME", "NAME") and within == ["VCALENDAR"]:
            named = named or value
        elif key == "X-WR-CALDESC":
            found.add("description", value)
        elif key == "DTSTART" and within[-1:] != ["STANDARD"] and within[-1:] != ["DAYLIGHT"]:
            days.add(f"{value[:4]}-{value[4:6]}-{value[6:8]}" if value[:8].isdigit() else value[:10])
        elif within[-1:] != ["VALARM"]:
            said += _said(found, key, parameters, value)
    for kind, plural in _KINDS.items():
        found.add(plural, str(counts[kind]) if counts.get(kind) else "")
    add_all(found, "date", [min(days), max(days)] if days else [])
    lone = found.attributes.get("names" if "VCARD" in counts else "headings", [])
    first = str(lone[0]) if lone else ""
    found.set("title", named or (f"{first} and {len(lone) - 1} more" if len(lone) > 1 else first) or _name(facts), 300)
    found.body("\n".join(dict.fromkeys(said)) if counts else text, MAX_TEXT)


def _said(found: Found, key: str, parameters: str, value: str) -> list[str]:
    """Add the attribute of a property, and return its part of the text."""
    if key in _WHOLE:
        return [", ".join(part for part in value.split(";") if part)] if found.full else []
    if key not in _MEANS:
        return []
    _keep(found, key, parameters, value)
    return [value] if _MEANS[key] in _SAID and not value.lower().startswith("mailto:") else []


def _keep(found: Found, key: str, parameters: str, value: str) -> None:
    """Add the value of a property to its attribute."""
    person = re.search(r"CN=\"?([^\";:]{1,200})", parameters, re.IGNORECASE)
    if key in ("ORGANIZER", "ATTENDEE"):
        value = person[1] if person else value.partition(":")[2] or value
    elif key == "ORG":
        value = ", ".join(part for part in value.split(";") if part)
    if _MEANS[key]:
        add_all(found, _MEANS[key], value.split(",") if key == "CATEGORIES" else [value])


def _value(parameters: str, raw: str) -> str:
    """Return a value with its encoding and its escapes decoded."""
    if "QUOTED-PRINTABLE" in parameters.upper():
        stated = _CHARSET.search(parameters)
        raw = decode(quopri.decodestring(raw.encode()), stated[1] if stated else "")
    return squeeze(_ESCAPED.sub(lambda m: " " if m[1] in "nN" else m[1], raw)) if raw else ""


def _name(facts: Facts) -> str:
    return facts.name.decode("utf-8", "replace")


SUMMARIZER = Summarizer(types=("Calendar",), run=run)
