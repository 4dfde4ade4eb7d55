"""Translations: GNU gettext's sources and catalogs (PO, MO), Qt Linguist's (TS), XLIFF; project, people, progress and text.

Strategy: the first bytes of a file decide its format, whatever its name. An MO catalog is two tables of offsets, which may point
anywhere: each is limited to the bytes that were read, and the text of all messages is bounded (gettext manual, 10.3). PO is read
line by line: a keyword, then quoted strings that may continue on the next lines (2.1); lines that begin with `#~` are obsolete.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import BinaryIO

from lxml import etree

from processors.essence.formats.text import decode
from processors.essence.formats.xml import attribute, elements, local, tree
from processors.essence.summarize._base import Facts, Found, Summarizer, SummaryError
from processors.essence.summarize.source._message_catalog import Catalog

MAX_READ = 4_000_000
MAX_LINES = 200_000
SAID = 500
"""Messages of an MO catalog whose text is read."""
MAX_MESSAGE = 65_536
"""Bytes of one message."""
LITTLE, BIG = b"\xde\x12\x04\x95", b"\x95\x04\x12\xde"

_CHARSET = re.compile(rb"charset=([\w.:-]{1,40})")
_STRING = re.compile(r'(msgctxt|msgid|msgid_plural|msgstr|msgstr\[\d{1,3}\])?[ \t]*+"((?:[^"\\]++|\\.|(?!))*+)"?')
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\n"}
_GONE = frozenset(("obsolete", "vanished"))
"""Qt's states of messages that no longer exist (Linguist's TS file format)."""


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add project, author, organization, language, dates, counts of messages, title and partial-text. Raises SummaryError."""
    raw = body.read(MAX_READ)
    catalog = Catalog(found)
    try:
        if raw.startswith((LITTLE, BIG)):
            _compiled(raw, catalog)
        elif raw[:1_024].lstrip(b"\xef\xbb\xbf\xff\xfe\xfe\xff \t\r\n\0").startswith(b"<"):
            _marked(tree(raw), catalog, found)
        else:
            _written(raw, facts.charset, catalog)
    finally:
        catalog.tell(facts)


def _compiled(raw: bytes, catalog: Catalog) -> None:
    """Read a binary catalog (MO). Raises SummaryError."""
    order = "<" if raw.startswith(LITTLE) else ">"
    if len(raw) < 20:
        raise SummaryError("Translation: truncated: the header is cut off")
    revision, count, sources, targets = struct.unpack(order + "4I", raw[4:20])
    if revision >> 16 > 1:
        raise SummaryError("Translation: a catalog of an unknown format")
    ends = [len(raw) - at - 8 * count for at in (sources, targets)]
    if min(ends) < 0:
        raise SummaryError("Translation: damaged: its tables lie behind its end")
    lengths = struct.iter_unpack(order + "II", raw[targets : targets + 8 * count])
    catalog.messages, catalog.translated = count, sum(length > 0 for length, _ in lengths)
    charset = ""
    for number in range(min(count, SAID)):
        source, target = (_message(raw, at + 8 * number, order) for at in (sources, targets))
        if not source:
            charset = _charset(target)
            catalog.messages, catalog.translated = catalog.messages - 1, catalog.translated - bool(target)
            catalog.header(decode(target, charset))
        else:
            # A context precedes a message, its plural follows it.
            catalog.say(*(decode(each.rpartition(b"\4")[2].replace(b"\0", b"\n"), charset) for each in (source, target)))


def _message(raw: bytes, at: int, order: str) -> bytes:
    length, place = struct.unpack(order + "II", raw[at : at + 8])
    return raw[place : place + min(length, MAX_MESSAGE)]


def _charset(header: bytes) -> str:
    found = _CHARSET.search(header)
    return found[1].decode("ascii", "replace") if found else ""


def _written(raw: bytes, declared: str, catalog: Catalog) -> None:
    """Read the source of a catalog (PO). `declared`: charset if its header has none."""
    text = decode(raw, _charset(raw[:16_384]) or declared).replace("\r\n", "\n").replace("\r", "\n")
    for fuzzy, parts in _entries(text):
        source = parts.get("msgid", "")
        target = parts.get("msgstr") or parts.get("msgstr[0]", "")
        if source or "msgctxt" in parts:
            catalog.add(source, target, fuzzy=fuzzy and bool(target))
        else:
            catalog.header(target)


def _entries(text: str) -> Iterator[tuple[bool, dict[str, str]]]:
    """Yield the messages of a text: whether each is marked as fuzzy, and its strings by keyword."""
    fuzzy, parts, keyword = False, dict[str, str](), ""
    for line in text.split("\n", MAX_LINES)[:MAX_LINES]:
        bare = line.strip()
        said = _STRING.match(bare)
        begins = bare[:1] == "#" or (said is not None and said[1] in ("msgctxt", "msgid"))
        if begins and any(key.startswith("msgstr") for key in parts):
            yield fuzzy, parts
            fuzzy, parts, keyword = False, {}, ""
        if bare.startswith("#,"):
            fuzzy = fuzzy or "fuzzy" in bare
        elif said:
            keyword = said[1] or keyword
            if len(parts.get(keyword, "")) < MAX_MESSAGE:
                parts[keyword] = parts.get(keyword, "") + _ESCAPE.sub(lambda m: _ESCAPED.get(m[1], m[1]), said[2])
    if any(key.startswith("msgstr") for key in parts):
        yield fuzzy, parts


def _marked(root: etree._Element | None, catalog: Catalog, found: Found) -> None:
    """Read a catalog in XML: Qt's TS, or XLIFF 1.2 and 2.0. Raises SummaryError."""
    if root is None:
        raise SummaryError("Translation: damaged: no element in it can be read")
    source = target = state = ""
    for name, element, begins in elements(root):
        if name in ("TS", "file", "xliff") and begins:
            _stated(element, found)
        elif name == "source":
            source, target, state = _text(element), "", ""
        elif name in ("translation", "target"):
            # The start and the end event of an element set the same values.
            target, state = _text(element), attribute(element, "type" if name == "translation" else "state")
        elif name in ("message", "trans-unit", "segment") and not begins:
            if state not in _GONE:
                catalog.add(source, target, fuzzy=bool(target) and (state == "unfinished" or state.startswith("needs-")))
            source = target = state = ""


def _stated(element: etree._Element, found: Found) -> None:
    for name in ("target-language", "trgLang", "language"):
        found.set("language", attribute(element, name), 40)
    for name in ("source-language", "srcLang", "sourcelanguage"):
        found.set("source-language", attribute(element, name), 40)
    found.set("project", attribute(element, "product-name") or attribute(element, "original"), 300)
    found.set("date", attribute(element, "date"), 40)


def _text(element: etree._Element) -> str:
    """Return the text of an element; plural forms are separated by a space."""
    between = " " if len(element) and local(element[0]) == "numerusform" else ""
    return between.join(map(str, element.itertext()))[:MAX_MESSAGE]


SUMMARIZER = Summarizer(types=("Translation",), run=run)
