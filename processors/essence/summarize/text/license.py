"""License texts: recognizes common licenses by their wording."""

from __future__ import annotations

import re
from typing import BinaryIO

from processors.essence.formats.text import MAX_TEXT, read_text, squeeze
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize._text import plain
from processors.essence.summarize.text.rawtext import raw_text

READ = 6_000
"""Characters in which a license states its name."""

_LICENSES = tuple(
    (name, re.compile(pattern, re.IGNORECASE))
    for name, pattern in (
        ("AGPL", r"gnu affero general public license\s+version (\d)"),
        ("LGPL", r"gnu (?:lesser|library) general public license\s+version (\d(?:\.\d)?)"),
        ("GPL", r"gnu general public license\s+version (\d)"),
        ("GFDL", r"gnu free documentation license\s+version (\d\.\d)"),
        ("Apache", r"apache license,?\s+version (\d\.\d)"),
        ("MPL", r"mozilla public license,?\s+(?:version|v\.?) (\d\.\d)"),
        ("EPL", r"eclipse public license\s+-?\s*v(?:ersion)?\.? ?(\d\.\d)"),
        ("CDDL", r"common development and distribution license \(cddl\)\s+version (\d\.\d)"),
        ("Artistic", r"the (?:clarified )?\"?artistic license\"?\s+(2\.0)"),
        ("Artistic", r"the (?:clarified )?\"?artistic license"),
        ("BSL", r"boost software license - version (\d\.\d)"),
        ("OFL", r"sil open font license\s+version (\d\.\d)"),
        ("CC0", r"(?:creative commons\s+)?cc0 (\d\.\d) universal"),
        ("CC-BY-SA", r"creative commons attribution-?share-?alike (\d\.\d)"),
        ("CC-BY", r"creative commons attribution (\d\.\d)"),
        ("PSF", r"python software foundation license\s+version (\d)"),
        ("BlueOak", r"blue oak model license\s+version (\d\.\d\.\d)"),
        ("WTFPL", r"do what the fuck you want to public license"),
        ("Unlicense", r"this is free and unencumbered software released into the public domain"),
        ("ISC", r"permission to use, copy, modify, and/or distribute this software"),
        ("MIT", r"permission is hereby granted, free of charge, to any person"),
        ("Zlib", r"altered source versions must be plainly marked as such"),
        ("BSD", r"redistributions? (?:and use )?(?:of source code must retain|in source and binary forms)"),
    )
)


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add license, and partial-text as for any text."""
    text = plain(read_text(body, facts.charset, max(MAX_TEXT, found.full)))
    for name in license_of(text):
        found.add("license", name)
    raw_text(text, found)


def license_of(text: str) -> list[str]:
    """Return the name of the common license that a text is, with its version if it has one; empty for other texts."""
    start = squeeze(text[:READ])
    for name, pattern in _LICENSES:
        if found := pattern.search(start):
            return [f"{name}-{found[1]}" if pattern.groups else name]
    return []


SUMMARIZER = Summarizer(types=("License",), run=run)
