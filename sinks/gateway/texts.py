"""Text of summaries in pages: escaped, without what controls a browser or the direction of other text."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

from markupsafe import Markup, escape

from processors.identity import readable
from processors.query.snippet import CLOSE, OPEN, plain
from schemas.jsonform import CONTROLS

LINKED = ("http", "https", "ftp")
"""Schemes of the URLs that become links."""
MAX_SHOWN = 20_000
"""Maximum characters of a value that a page shows."""

_UNSEEN = re.compile(f"[\\x00-\\x08\\x0b-\\x1f{CONTROLS}\\ufeff\\ud800-\\udfff]")
_CONTROL = re.compile("[\x00-\x20\x7f]")
_BROKER = re.compile(r"https?://([^/]+(?:/.*)?)/brokers/([a-z0-9-]+)")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def clean(text: str) -> str:
    """Return text with U+FFFD for each control and each mark of direction; lines and tabs are kept."""
    return _UNSEEN.sub("\ufffd", text.replace("\r\n", "\n"))


def value(raw: str | bytes) -> str:
    """Return a value of an attribute for display; the end of a long one is left out."""
    text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw
    left = len(text) - MAX_SHOWN
    return clean(text[:MAX_SHOWN]) + (f"\n… and {left:,} more characters: see the SOIF file" if left > 0 else "")


def highlighted(text: str) -> Markup:
    """Return text as HTML, with `mark` elements for what stands between U+0002 and U+0003."""
    pieces: list[Markup] = []
    for piece in text.split(OPEN):
        inside, close, rest = piece.partition(CLOSE)
        marked = bool(close) and bool(pieces)
        pieces.append(Markup("<mark>{}</mark>{}").format(clean(inside), clean(rest)) if marked else escape(clean(inside + rest)))
    return Markup("").join(pieces)


def code(text: str) -> Markup:
    """Return text as HTML, with `code` elements for what stands between backquotes."""
    pieces = (Markup("<code>{}</code>").format(piece) if at % 2 else escape(piece) for at, piece in enumerate(text.split("`")))
    return Markup("").join(pieces)


def link(url: str) -> str:
    """Return a URL that a page may link to; empty for any other scheme, and for one that a browser might take for another."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return url if parts.scheme in LINKED and parts.netloc and not _CONTROL.search(url) else ""


def size(count: int) -> str:
    """Return a number of bytes for people."""
    if count < 1_000:
        return f"{count} bytes"
    shown, unit = float(count), "bytes"
    for unit in ("kB", "MB", "GB", "TB"):  # noqa: B007 - the unit of the last step is the answer
        shown /= 1_000
        if shown < 999.95:
            break
    return f"{shown:.1f} {unit}"


def place(url: str) -> str:
    """Return a URL for people: percent-decoded, without controls."""
    return plain(readable(url))


def broker(label: str) -> str:
    """Return the name of a Broker for people, with its gateway if that is another one; it does not look like an address to open."""
    found = _BROKER.fullmatch(label)
    return clean(f"{found[2]} at {found[1]}" if found else label)


def moment(milliseconds: int) -> str:
    """Return a moment in ms since the epoch, such as 2024-03-05 17:30:00 UTC; empty for one outside the years 1 to 9999."""
    try:
        return (_EPOCH + timedelta(milliseconds=milliseconds)).strftime("%Y-%m-%d %H:%M:%S UTC")
    except OverflowError:
        return ""


def capitalized(text: str) -> str:
    """Return text with a capital letter at its beginning."""
    return text[:1].upper() + text[1:]
