"""The properties of a compound file ([MS-OLEPS]) as attributes: title, author, keywords, dates."""

from __future__ import annotations

from processors.essence.formats.compound_file import MAX_SET, Compound, properties_of
from processors.essence.summarize._base import Found
from processors.essence.summarize._placeholder_titles import spoken

SUMMARY = "\x05SummaryInformation"
DOCUMENT = "\x05DocumentSummaryInformation"
PROPERTIES = {
    SUMMARY: {
        2: "title",
        3: "description",
        4: "author",
        5: "keywords",
        6: "description",
        12: "creation-date",
        13: "modification-date",
        14: "pages",
        18: "generator",
    },
    DOCUMENT: {2: "keywords", 15: "organization"},
}
"""Attributes by the stream and the number of their property."""


def add_properties(compound: Compound, found: Found) -> None:
    """Add title, author, description, keywords, creation-date and similar attributes from the property sets."""
    for stream, names in PROPERTIES.items():
        for number, value in properties_of(compound.read(stream, MAX_SET)):
            name = names.get(number, "")
            for each in value.replace(";", ",").split(",") if name == "keywords" else (value,):
                if name:
                    found.add(name, spoken(name, " ".join(each.split())), 1_000)
