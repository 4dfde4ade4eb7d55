"""Entries of PDF's information dictionary (ISO 32000-1, 14.3.3), which PostScript states by pdfmark (DOCINFO)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from processors.essence.formats.text import squeeze
from processors.essence.summarize._base import Found
from processors.essence.summarize._placeholder_titles import spoken

INFO = {"Title": "title", "Author": "author", "Subject": "description", "Keywords": "keywords", "Creator": "generator"}


def add_info(info: Mapping[str, str], found: Found) -> None:
    """Add title, author, description, keywords and generator, except placeholders."""
    for name, attribute in INFO.items():
        value = spoken(attribute, squeeze(info.get(name, "")))
        for part in re.split(r"[,;]", value) if attribute == "keywords" else (value,):
            found.add(attribute, part, 1_000)
