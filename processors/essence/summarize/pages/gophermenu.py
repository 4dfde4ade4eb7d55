"""Menus of Gopher (RFC 1436): the texts of their lines, and the links to other protocols."""

from __future__ import annotations

from typing import BinaryIO

from processors.essence.formats.text import squeeze
from processors.essence.listings.gopher import texts
from processors.essence.summarize._base import Facts, Found, Summarizer

MAX_LINES = 2_000
TEXT = 16_384


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add title (the first line of text above all items, else the name), partial-text (all lines), and url-references.

    These are the links to other protocols.
    """
    shown: list[str] = []
    above = True
    for line in texts(body):
        text = squeeze(line.text)
        above = above and line.type == "i"
        if above and any(c.isalpha() for c in text):
            found.set("title", text, 300)
        if any(c.isalnum() for c in text):
            shown.append(text)
        if line.selector.startswith(b"URL:"):
            found.add("url-references", line.selector[4:].decode("utf-8", "replace"), 500)
        if len(shown) == MAX_LINES and not found.full:
            break
    # Otherwise the first item would be taken for a title.
    found.set("title", facts.name.decode("utf-8", "replace") or facts.url, 300)
    found.body("\n".join(shown), TEXT)


SUMMARIZER = Summarizer(types=("GopherMenu",), run=run)
