"""Text of parts that Word imports when it opens a document (ECMA-376-1, 17.17.2.1, altChunk): HTML, MHTML, RTF, text, Word.

Laws:
- The content tells the format of a part; the content type, whether text is a page.
- At most IMPORTS parts of a document and of the documents in it are read, at most DEPTH deep, and PARSED bytes of all of them,
  each counted as often as it is displayed: markup of tiny elements takes a second for each megabyte.
"""

from __future__ import annotations

import io
import re

from selectolax.lexbor import LexborHTMLParser

from processors.essence.formats.container import UnnestError
from processors.essence.formats.line_buffer import Text
from processors.essence.formats.mail.mime import BODY, message
from processors.essence.formats.streams import exact
from processors.essence.formats.text import decode, squeeze
from processors.essence.formats.xml import MAX_PART
from processors.essence.summarize._base import Found, SummaryError
from processors.essence.summarize.office._office import Office
from processors.essence.summarize.office._package import add_reference
from processors.essence.summarize.office._word import add_document, style_names
from processors.essence.summarize.office.rtf import rtf_text
from processors.essence.summarize.pages._markup import page, page_links, page_text

KIND = "aFChunk"
"""Kind of the relationship that leads to an imported part."""
IMPORTS, DEPTH = 50, 3
IMPORT, PARSED = 4 << 20, 4 << 20
"""Maximum bytes of an imported part, and of all markup and text in imported parts."""
NAME = 32
"""Bytes that a part's name counts for, whether the part is read or not."""
PAGE_HEADINGS = 100
ZIPPED = b"PK"
"""Start of a document in a package, of which only the parts that are read count."""

_MARKUP = re.compile(rb"\s*+<(?:!doctype\s++html|\?xml|!--|html|head|body|meta|div|table|p[\s>]|h[1-6][\s>])", re.IGNORECASE)
_WORD = re.compile(rb"<(?:[\w.-]{1,30}:)?(?:document|package)[\s>]")
_MESSAGE = re.compile(rb"(?:[\w-]{1,60}:[^\n]{0,1000}\n[ \t]?){0,20}?(?:mime-version|content-type):", re.IGNORECASE)


class Imports:
    """Adds the text of imported parts, and counts them."""

    def __init__(self, text: Text, found: Found) -> None:
        self.text = text
        self.found = found
        self.left = IMPORTS
        self.room = PARSED
        """Bytes that may still be parsed."""
        self.depth = 0
        self.problem = ""
        """Why a part could not be read."""

    def add(self, office: Office, source: str, identity: str) -> None:
        """Add the text of the part that a part of a package refers to by the id of a relationship."""
        key = office.relations.target(source, identity)
        if self.left <= 0 or self.room <= 0 or self.depth >= DEPTH or self.text.full:
            return
        raw = office.part(key or f"imported part {identity[:50]}")
        self.left -= 1
        self.room -= 0 if raw.startswith(ZIPPED) else len(raw)
        try:
            self._add(raw, office.relations.content_type(key) or key)
        except (SummaryError, UnnestError) as error:
            self.problem = self.problem or f"imported part: {error}"

    def _add(self, raw: bytes, kind: str) -> None:
        """Add the text of a part; `kind`: its content type, or else its name. Raises SummaryError, UnnestError."""
        if raw.startswith(ZIPPED):
            self._package(raw)
        elif raw.lstrip()[:5] == b"{\\rtf":
            self._lines(rtf_text(raw, self.found.most(MAX_PART)))
        elif _WORD.search(raw, 0, 4_096):
            add_document(raw, {}, self.text, self.found, lambda _: None)
        elif "message/" in kind or kind.endswith(("mht", "mhtml", "eml")) or _MESSAGE.match(raw):
            self._message(raw)
        elif "html" in kind or kind.endswith((".htm", ".html")) or ("text/plain" not in kind and _MARKUP.match(raw)):
            self._page(page(raw))
        else:
            self._lines(decode(raw))

    def _package(self, raw: bytes) -> None:
        """Add the text of a document in the document."""
        inner = Office(io.BytesIO(raw), len(raw), max(self.room, 0))
        main = next(iter(inner.mains()), "")
        styles = inner.one(main, "styles")
        chunks = dict.fromkeys(inner.relations.targets(main, KIND)[:IMPORTS], IMPORT)
        inner.load({main: MAX_PART, styles: MAX_PART} | chunks)
        names = style_names(inner.parts.get(styles, b""))
        self.room = inner.package.room - inner.package.given - NAME * len(inner.package.names)
        self.depth += 1
        add_document(inner.part(main), names, self.text, self.found, lambda identity: self.add(inner, main, identity))
        self.depth -= 1
        self.text.end()
        # The end of a part that was cut to the limit is not damage.
        if len(raw) < IMPORT:
            inner.package.close(inner.missing)

    def _message(self, raw: bytes) -> None:
        """Add the page of an archived web page (RFC 2557), or else its text."""
        plain = ""
        for part in message(io.BytesIO(raw))[1]:
            if part.type == "text/html":
                self._page(page(exact(part.body, IMPORT), part.charset))
                return
            if part.type in BODY and not plain:
                plain = decode(exact(part.body, IMPORT), part.charset)
        self._lines(plain)

    def _page(self, tree: LexborHTMLParser) -> None:
        for node in tree.css("h1,h2,h3")[:PAGE_HEADINGS]:
            self.found.add("headings", squeeze(node.text()[:500]), 200)
        for url in page_links(tree):
            add_reference(url, self.found)
        self._lines(page_text(tree, self.found.most(MAX_PART), whole=True))

    def _lines(self, text: str) -> None:
        for line in text.splitlines():
            self.text.add(line)
            self.text.end()
            if self.text.full:
                break
