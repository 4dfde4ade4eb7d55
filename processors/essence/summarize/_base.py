"""Interface of summarizers: Facts in, Found out, SummaryError for damaged input.

Laws:
- Found enforces its bounds silently: a summarizer may add all that it finds, and a summary stays under 64 kB.
- Values are text that UTF-8 can encode (no lone surrogates, no NUL), or bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import BinaryIO, NamedTuple

from processors.essence.formats import FormatError
from processors.essence.formats.robots_directives import Directives
from schemas.records import Link, LinkKind

MAX_SUMMARY = 65_536
"""Bytes of all values of a summary together."""
MAX_VALUE = 4_096
"""Bytes of one value, unless its summarizer specifies another bound."""
MAX_VALUES = 200
"""Values of one attribute."""
MAX_REFERENCES = 1_000
"""Values of url-references when the full text is requested: the full text leaves nothing out."""
MAX_TITLE = 300
"""Bytes that are reserved for the title until there is one."""
MAX_LINKS = 10_000
"""Links of one document."""
MAX_URL = 2_000
"""Characters of a link."""
MAX_ANCHOR = 200
"""Characters of the text of a link."""


class SummaryError(FormatError):
    """The input is damaged, or exceeds the limits of a summarizer; the message is a reason of at most 200 characters."""


class Facts(NamedTuple):
    """Properties of a file that are known before it is summarized."""

    name: bytes
    """Last component of its path."""
    url: str
    type: str
    """Essence's name of the type, from `recognize`."""
    content_type: str
    """Media type from `recognize`, without parameters."""
    size: int
    """Bytes; -1 if unknown."""
    mtime: int
    """ns since the epoch; 0 if unknown."""
    charset: str
    """Declared by the source; "" if it declared none."""
    fetched: int = 0
    """Time of the fetch in ms since the epoch; 0 if unknown."""


class Found:
    """The attributes and links that summarizers have found, within the bounds above.

    `full`: requested bytes of full text; 0: only the usual partial text.
    `linked`: whether links are kept, with their texts; False if no one follows them, which saves the work.
    """

    def __init__(self, full: int = 0, *, linked: bool = True) -> None:
        self.full = full
        self.linked = linked
        self.whole = ""
        """The text that the partial text is taken from, as far as it was read."""
        self.part = ""
        """The partial text that a full text replaces."""
        self.attributes: dict[str, list[str | bytes]] = {}
        self.links: list[Link] = []
        self.robots = Directives()
        """Robots directives of the source, to which a page adds its own."""
        self.room = MAX_SUMMARY
        self.given = frozenset[str]()
        """Attributes that were known before the content was read."""

    def add(self, name: str, value: str | bytes, limit: int = MAX_VALUE) -> None:
        """Add a value, cut to `limit` bytes; drop empty values, duplicates and those beyond the bounds."""
        if not value:
            return
        value = _clean(value) if isinstance(value, str) else value
        values = self.attributes.get(name, [])
        most = MAX_REFERENCES if self.full and name == "url-references" else MAX_VALUES
        if not value or value in values or len(values) >= most:
            return
        kept = 0 if name == "title" or "title" in self.attributes else MAX_TITLE
        value, size = cut(value, max(0, min(limit, self.room - kept)))
        if size:
            self.room -= size
            self.attributes.setdefault(name, values).append(value)

    def extend(self, name: str, values: Iterable[str], limit: int = MAX_VALUE) -> None:
        """Add many values, with the rules of `add`."""
        held = self.attributes.get(name, [])
        known = set(held)
        kept = 0 if name == "title" or "title" in self.attributes else MAX_TITLE
        for value in map(_clean, values):
            if not value or value in known or len(held) >= MAX_VALUES:
                continue
            shown, size = cut(value, max(0, min(limit, self.room - kept)))
            if size:
                self.room -= size
                held.append(shown)
                known.add(shown)
        if held:
            self.attributes[name] = held

    def set(self, name: str, value: str | bytes, limit: int = MAX_VALUE) -> None:
        """Add a value unless the attribute has one already."""
        if name not in self.attributes:
            self.add(name, value, limit)

    def most(self, usual: int) -> int:
        """Return the bytes of text that a summarizer should produce: those of the full text if it is requested, else `usual`."""
        return self.full or usual

    def body(self, text: str, usual: int = MAX_VALUE, whole: str = "") -> None:
        """Add the text of a document, once: its first `usual` bytes as partial-text, or all of it as full-text, if requested.

        `whole`: the full text, if `text` is an excerpt. A full text does not count against the room of the other attributes.
        """
        if not self.full:
            self.whole = self.whole or whole or text
            self.set("partial-text", text, usual)
        elif "full-text" not in self.attributes:
            kept, size = cut(_clean(whole or text), self.full)
            if size:
                self.attributes["full-text"] = [kept]
                self.part = str(cut(_clean(text[:usual]), usual)[0])

    def new(self) -> frozenset[str]:
        """Return the names of the attributes that the content gave: those of the file, as its name and mode, are always there."""
        return frozenset(self.attributes).difference(self.given)

    @property
    def said(self) -> str:
        """The text that was added, full or partial; "" if none was."""
        return self.text("full-text" if self.full else "partial-text")

    def text(self, name: str) -> str:
        """Return the first value of an attribute if it is text, else ""."""
        first = self.attributes.get(name, [""])[0]
        return first if isinstance(first, str) else ""

    def link(self, url: str, text: str = "", *, page: bool = True, feed: bool = False) -> None:
        """Add a link to another document; `page`: whether it is followed as links of pages are; `feed`: whether it lists pages."""
        if self.linked and len(self.links) < MAX_LINKS and 0 < len(url) <= MAX_URL:
            kind: LinkKind = "listing" if feed else "page" if page else "unknown"
            self.links.append(Link(url=_clean(url), kind=kind, text=_clean(text[:MAX_ANCHOR])))


class Summarizer(NamedTuple):
    """A plug-in, which each module of this package exposes as SUMMARIZER."""

    types: tuple[str, ...]
    """The types that it serves; types that extend one of them in `types.toml` are served too, unless they have their own."""
    run: Callable[[Facts, BinaryIO, Found], None]
    """Reads the body (seekable, at its start) and adds attributes. May raise; any exception becomes a SummaryError."""
    modules: tuple[str, ...] = ()
    """Modules that `run` imports lazily: preload() imports them."""
    beside: bool = False
    """An operator's only: it runs after the types' own summarizers and adds attributes, also for types that extend these."""


def _clean(text: str) -> str:
    """Return text that UTF-8 can encode, without NUL or surrounding white space."""
    text = text.strip()
    if text.isascii():
        return text if "\0" not in text else text.replace("\0", " ")
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", " ")


def cut(value: str | bytes, limit: int) -> tuple[str | bytes, int]:
    """Return the start of a value that fits in `limit` bytes of UTF-8, and its size in bytes. Cuts between words."""
    if isinstance(value, bytes):
        return value[:limit], len(value[:limit])
    if len(value) <= limit and value.isascii():
        return value, len(value)
    raw = value.encode()
    if len(raw) <= limit:
        return value, len(raw)
    whole = raw[: max(limit, 0)].decode("utf-8", "ignore")
    words = whole.rpartition(" ")[0]
    # If more than half of the value is one unbroken word, cut within it.
    kept = words.rstrip() if len(words) * 2 > len(whole) else whole
    return kept, len(kept.encode())
