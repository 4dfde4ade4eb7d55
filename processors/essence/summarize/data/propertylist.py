"""Binary property lists of Apple: keys, and values of the common ones. XML property lists are summarized as XML.

The standard library parses them, and reads a list that contains itself only once. Archives of objects (NSKeyedArchiver) list their
objects under `$objects`: only the texts of the objects are kept.
"""

from __future__ import annotations

import plistlib
from collections.abc import Iterator
from typing import BinaryIO

from processors.essence.formats.text import squeeze
from processors.essence.summarize._base import Facts, Found, Summarizer, SummaryError
from processors.essence.summarize.binary import unrecognized

MAX_READ = 8 << 20
VALUES = 20_000
TEXT = 2_048
USUAL = {
    "CFBundleDisplayName": "title", "CFBundleName": "title", "CFBundleShortVersionString": "version",
    "CFBundleIdentifier": "identifier",
    "NSHumanReadableCopyright": "copyright", "CFBundleGetInfoString": "description", "CFBundleExecutable": "programs",
    "URL": "url-references", "WebResourceURL": "url-references", "Title": "title", "Name": "title",
}  # fmt: skip


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add keys, title, version, identifier, copyright, url-references and partial-text (the texts of all values)."""
    raw = body.read(MAX_READ)
    if not raw.startswith(b"bplist0"):
        body.seek(0)
        unrecognized.run(facts, body, found)
        return
    try:
        value = plistlib.loads(raw, fmt=plistlib.FMT_BINARY)
    except (plistlib.InvalidFileException, ValueError, OverflowError, RecursionError) as error:
        raise SummaryError(f"property list: damaged: {error}") from error
    if isinstance(value, dict):
        for key in value:
            if isinstance(key, str) and not key.startswith("$"):
                found.add("keys", key, 100)
        for key, meant in USUAL.items():
            said = value.get(key)
            (found.set if meant == "title" else found.add)(meant, squeeze(said) if isinstance(said, str) else "", 1_000)
    found.body("\n".join(dict.fromkeys(_texts(value, found.most(TEXT)))), TEXT)
    found.set("title", facts.name.decode("utf-8", "replace"), 300)


def _texts(value: object, most: int) -> Iterator[str]:
    """Yield about `most` characters of the texts in a value, in order, each container once. Strings without a space are skipped."""
    waiting: list[Iterator[object]] = [iter((value,))]
    seen: set[int] = set()
    for _ in range(VALUES):
        one = next(waiting[-1], waiting)
        if one is waiting:
            waiting.pop()
            if not waiting:
                return
        elif isinstance(one, dict | list) and id(one) not in seen:
            seen.add(id(one))
            waiting.append(iter(one.values() if isinstance(one, dict) else one))
        elif isinstance(one, str) and " " in one and not one.startswith("$"):
            text = squeeze(one)
            most -= len(text)
            yield text
            if most <= 0:
                return


SUMMARIZER = Summarizer(types=("PropertyList",), run=run)
