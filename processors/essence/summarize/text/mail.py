"""Messages of mail and news (RFC 5322, RFC 5536): sender, recipients, date, subject, thread, and text.

The text comes from the parts that are not attachments; of plain text and HTML alternatives, the plain text is used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import BinaryIO

from processors.essence.formats.container import UnnestError
from processors.essence.formats.dates import utc
from processors.essence.formats.mail.encoded_words import words
from processors.essence.formats.mail.mail_header import FIELD, Header
from processors.essence.formats.mail.mime import Part, declared_charset, field, is_text, message
from processors.essence.formats.streams import exact
from processors.essence.formats.text import decode
from processors.essence.summarize._base import Facts, Found, Summarizer, SummaryError
from processors.essence.summarize._text import add_references
from processors.essence.summarize.pages._markup import page, page_links, page_text
from processors.essence.summarize.text.rawtext import raw_text

MAX_TEXT = 262_144
"""Bytes of a part that are read, unless a longer full text is requested."""
MAX_PAGE_TEXT = 4_096
"""Bytes of the text of an HTML part, unless a full text is requested."""
LINKS = 200
PARTS = 1_000
"""Parts that are examined."""

FIELDS = {
    "from": "author", "to": "to", "cc": "cc", "organization": "organization", "newsgroups": "newsgroups", "summary": "description",
    "list-id": "list-id", "reply-to": "reply-to", "content-language": "language",
}  # fmt: skip
"""Header fields whose values are kept unchanged, and the attribute of each."""
LISTS = {"keywords": "keywords", "newsgroups": "newsgroups"}
IDS = {"message-id": "message-id", "in-reply-to": "in-reply-to", "references": "references", "supersedes": "supersedes"}

_ID = re.compile(r"<\s*+([^<>\s]{1,250}+)\s*+>")
_QUOTE = re.compile(r"^[ \t]?[>|].*\n?", re.MULTILINE)


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add title (the subject), author, to, cc, date, the ids of the message and of those that it answers, and partial-text."""
    head, parts = message(body)
    charset = facts.charset or declared_charset(head)
    _fields(head, charset, found)
    links: list[str] = []
    text, problem = _text(parts, charset, found, links)
    # Quoted lines are the text of others; a message of nothing else keeps them.
    own = text if found.full else _QUOTE.sub("", text)
    raw_text(own if own.strip() else text, found)
    add_references(found, text)
    # The links of an HTML part may be missing in the plain text.
    for url in dict.fromkeys(links[:LINKS]):
        if url.lower().startswith(("http://", "https://", "ftp://")):
            found.add("url-references", url, 500)
    if problem:
        raise SummaryError(f"Mail: {problem}")


def _text(parts: Iterator[Part], charset: str, found: Found, links: list[str]) -> tuple[str, str]:
    """Return the text of a message, and why it is incomplete ("" if it is not); add the links of its HTML parts to `links`."""
    plain, marked, before, problem = "", "", "", ""
    most = max(MAX_TEXT, found.full)
    try:
        for part in parts:
            if part.number > PARTS or len(plain) > most:
                break
            if not is_text(part):
                continue
            if not part.number:
                before = before or _plain(part, charset, most)
            elif part.type == "text/plain":
                plain += _plain(part, charset, most) + "\n"
            elif not marked or (found.full and len(marked) < most):
                marked += "\n" * bool(marked)
                tree = page(exact(part.body, most), part.charset)
                links += page_links(tree)
                marked += page_text(tree, found.most(MAX_PAGE_TEXT), whole=bool(found.full))
    except UnnestError as error:
        problem = error.reason
    # A note for old programs precedes the parts of a message; it is all of the text if the parts are missing.
    return next((t for t in (plain, marked, before) if t.strip()), "")[:most], problem


def _plain(part: Part, charset: str, most: int) -> str:
    return decode(exact(part.body, most), part.charset or charset).replace("\r\n", "\n")


def _fields(head: Header, charset: str, found: Found) -> None:
    found.add("title", _value(head, "subject", charset), 500)
    for name, attribute in FIELDS.items():
        if value := _value(head, name, charset):
            for each in value.split(",") if name in LISTS else (value,):
                found.add(attribute, each, 1_000)
    for each in _value(head, "keywords", charset).split(","):
        found.add("keywords", each, 200)
    for name, attribute in IDS.items():
        if value := field(head, name):
            found.extend(attribute, _ID.findall(value), 250)
    found.add("date", _date(field(head, "date")))


def _value(head: Header, name: str, charset: str) -> str:
    """Return a header field on one line; non-ASCII bytes, which should not occur, have the declared or guessed charset."""
    raw = head.raw(name)[:FIELD]
    return " ".join(words(decode(raw, charset)).split()) if raw else ""


def _date(value: str) -> str:
    """Return the date of a header in ISO 8601, UTC; unchanged if it cannot be parsed."""
    try:
        return utc(parsedate_to_datetime(value[:100]))
    except (ValueError, TypeError, OverflowError, IndexError):
        return value[:100]


SUMMARIZER = Summarizer(types=("Mail", "News"), run=run, modules=("encodings.raw_unicode_escape",))
