"""PDF: the information dictionary and XMP; outline, number of pages, text of the first pages.

Read by pdfium, and by pdfminer if pdfium rejects the file. Of an encrypted document only that fact is reported.
"""

from __future__ import annotations

import ctypes
import importlib
import io
import re
import sys
from collections.abc import Iterator
from datetime import datetime
from html import unescape
from typing import BinaryIO

import pypdfium2 as pdfium  # type: ignore[import-untyped]
from pypdfium2 import raw

from processors.essence.formats.dates import pdf_date as moment
from processors.essence.formats.dates import utc
from processors.essence.formats.text import decode, squeeze
from processors.essence.summarize._base import Facts, Found, Summarizer, SummaryError
from processors.essence.summarize._placeholder_titles import spoken
from processors.essence.summarize.media._exif import add_xmp
from processors.essence.summarize.pages._docinfo import add_info
from processors.essence.summarize.pages._headline import headline
from processors.essence.summarize.pages._pdf_depth import exceeds_pdfminer_limits

MAX_PDF = 64_000_000
"""Maximum size of a document, which is read into memory."""
PAGES = 5
"""Pages whose text is read, unless the full text is requested."""
MAX_TEXT = 8_192
OUTLINE, OUTLINE_DEPTH = 200, 3
"""Maximum entries of the outline that are read, and levels of it."""
MAX_TITLE = 1_000
"""Maximum characters of an outline entry, or of a URL; longer ones are dropped."""
HEADLINE_IN = 1_500
"""Characters of the first page whose sizes are read: half a millisecond."""
LINKS = 200
"""Maximum links and annotations of a page that are read."""
MAX_NOTE, MAX_LANGUAGE = 4_096, 40
XMP, MAX_XMP, PACKETS = b"<x:xmpmeta", 65_536, 100
OWN = b"http://ns.adobe.com/pdf/1.3/"
"""Namespace of the properties that only PDFs have."""
ESCAPED = "\\376\\377"
DATES = {"CreationDate": "creation-date", "ModDate": "modification-date"}
MOMENTS = {b"Create": "creation-date", b"Modify": "modification-date"}
FALLBACK = "pdfminer.high_level"

# Simple properties of XMP are elements or attributes.
_IS = rb"(?:\s{0,9}=\s{0,9}[\"']|[^<>]{0,100}>)"
_MOMENT = re.compile(rb"(?:xmp|xap):(Create|Modify)Date" + _IS + rb"([^<\"']{4,40})")
_KEYWORDS = re.compile(rb"pdf:Keywords" + _IS + rb"([^<\"']{1,4000})")
_TONGUE = re.compile(rb"<dc:language[^<>]{0,100}>\s{0,99}(?:<rdf:\w{3}>\s{0,99}<rdf:li[^<>]{0,100}>)?\s{0,99}([A-Za-z]{2,8})\b")
_OCTAL = re.compile(rb"\\([0-7]{3})")
_SCHEME = re.compile(r"(https?|ftp):[/\\]{1,9}|mailto:", re.IGNORECASE)


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add title, author, description, keywords, pages, headings, url-references and partial-text. Raises SummaryError."""
    data = body.read(MAX_PDF + 1)
    if len(data) > MAX_PDF:
        raise SummaryError(f"PDF: more than {MAX_PDF // 1_000_000} MB")
    try:
        document = pdfium.PdfDocument(data)
    except pdfium.PdfiumError as error:
        if error.err_code == raw.FPDF_ERR_PASSWORD:
            found.add("encrypted", "a password is needed")
            return
        _by_pdfminer(data, found)
        return
    try:
        called = _by_pdfium(document, found)
    finally:
        document.close()
    if packet := _packet(data, silent=not found.attributes.keys() & {"title", "author"}):
        _add_xmp(packet, found)
    found.set("title", called, 300)


def _packet(data: bytes, *, silent: bool) -> bytes:
    """Return the document's XMP (ISO 32000-1, 14.3.2); b"" if there is none, or if it may be that of a picture.

    Changes are appended to a document, so the last packet with PDF properties is taken. If none has any, the first one is, but only
    if the document has no other metadata.
    """
    at = data.rfind(XMP)
    for _ in range(PACKETS):
        if at < 0:
            break
        packet = data[at : at + MAX_XMP].partition(b"</x:xmpmeta>")[0]
        if OWN in packet:
            return packet
        at = data.rfind(XMP, 0, at)
    at = data.find(XMP) if silent else -1
    return data[at : at + MAX_XMP] if at >= 0 else b""


def _add_xmp(packet: bytes, found: Found) -> None:
    """Add XMP properties that the information dictionary lacks: it has one string for all authors, and each entry is optional."""
    said = Found()
    add_xmp(packet, said)
    for name, values in said.attributes.items():
        known = [value.casefold() for value in found.attributes.get(name, ()) if isinstance(value, str)]
        for value in map(_unescaped, (value for value in values if isinstance(value, str))):
            # A part of a title or of a list of authors is known already; a keyword inside of another one is a keyword of its own.
            held = value.casefold() in (known if name == "keywords" else " ".join(known))
            if not held:
                found.add(name, spoken(name, value), 1_000)
    for match in _MOMENT.finditer(packet):
        found.set(MOMENTS[match[1]], _iso(match[2].decode("ascii", "replace")))
    if "keywords" not in found.attributes and (words := _KEYWORDS.search(packet)):
        for part in re.split(r"[,;]", unescape(decode(words[1]))):
            found.add("keywords", squeeze(part), 1_000)
    if tongue := _TONGUE.search(packet):
        found.set("language", tongue[1].decode("ascii").lower())


def _unescaped(value: str) -> str:
    """Decode a value that a program wrote as a PDF string with octal escapes (ISO 32000-1, 7.9.2)."""
    if not value.startswith(ESCAPED):
        return value
    raw = _OCTAL.sub(lambda match: bytes((int(match[1], 8) & 0xFF,)), value.encode("latin-1", "replace"))
    return raw.decode("utf-16", "replace")


def _iso(value: str) -> str:
    """Return a date of XMP (ISO 16684-1, 8.2.1.2) in UTC; "" if it cannot be parsed."""
    try:
        return utc(datetime.fromisoformat(value.strip()))
    except (ValueError, OverflowError):
        return ""


def _by_pdfium(document: pdfium.PdfDocument, found: Found) -> str:
    """Add what pdfium reads. Returns the headline of the first page if there is no title in the metadata."""
    called = ""
    info = document.get_metadata_dict(skip_empty=True)
    add_info(info, found)
    for name, attribute in DATES.items():
        found.add(attribute, _date(info.get(name, "")))
    found.add("pages", str(len(document)))
    found.add("language", _language(document))
    outline = [squeeze(title) for title in _outline(document)]
    for title in outline:
        found.add("headings", title, 200)
    texts: list[str] = []
    room = found.most(MAX_TEXT)
    for number in range(len(document) if found.full else min(len(document), PAGES)):
        # The raw interface, since pypdfium2's objects take a tenth of the time of most pages. A broken page does not affect the
        # others.
        if not (page := raw.FPDF_LoadPage(document, number)):
            continue
        try:
            for url in _references(document, page):
                found.add("url-references", url, 500)
            if room > 0:
                headed, text = _headline_and_text(page, 2 * room, headed=not number and "title" not in found.attributes)
                called = called or headed
                said = [text, *(_notes(page) if found.full else ())]
                room -= sum(map(len, said))
                texts += said
        finally:
            raw.FPDF_ClosePage(page)
        # A request for the full text wants all links too, even if the text is longer than may be kept.
        if room <= 0 and not found.full:
            break
    _add_text("\n".join([*texts, *(outline if found.full else ())]), found)
    return called


def _headline_and_text(page: raw.FPDF_PAGE, limit: int, *, headed: bool) -> tuple[str, str]:
    """Return the headline of a page (if `headed`) and its text, at most `limit` characters; "" if there is none."""
    text = raw.FPDFText_LoadPage(page)
    if not text:
        return "", ""
    try:
        return _headline(text) if headed else "", _text(text, limit)
    finally:
        raw.FPDFText_ClosePage(text)


def _headline(text: raw.FPDF_TEXTPAGE) -> str:
    """Return the first lines in the page's largest type; "" if it is hardly larger than the rest."""
    count = min(raw.FPDFText_CountChars(text), HEADLINE_IN)
    chars = [chr(min(raw.FPDFText_GetUnicode(text, at), sys.maxunicode)) for at in range(count)]
    sizes = [raw.FPDFText_GetFontSize(text, at) for at in range(count)]
    return headline(chars, sizes)


def _text(text: raw.FPDF_TEXTPAGE, limit: int) -> str:
    """Return the text of a page, at most `limit` characters."""
    count = min(raw.FPDFText_CountChars(text), limit)
    if count <= 0:
        return ""
    # Two units a character, for those that UTF-16 writes as two, and one for the terminator.
    units = (ctypes.c_ushort * (2 * count + 2))()
    given = raw.FPDFText_GetText(text, 0, count, units)
    return bytes(memoryview(units)[: max(given - 1, 0)]).decode("utf-16-le", "ignore")


def _language(document: pdfium.PdfDocument) -> str:
    """Return the language that the catalog states (ISO 32000-1, 14.9.2)."""
    tag = (ctypes.c_ushort * MAX_LANGUAGE)()
    size = raw.FPDFCatalog_GetLanguage(document, tag, 2 * MAX_LANGUAGE)
    name = bytes(tag)[: size - 2].decode("utf-16-le", "replace") if 2 <= size <= 2 * MAX_LANGUAGE else ""
    return name.partition("-")[0].strip().lower()[:8]


def _notes(page: raw.FPDF_PAGE) -> Iterator[str]:
    """Yield the text of a page's annotations (ISO 32000-1, 12.5.2) and form fields (12.7.3)."""
    for number in range(min(raw.FPDFPage_GetAnnotCount(page), LINKS)):
        note = raw.FPDFPage_GetAnnot(page, number)
        for key in (b"Contents", b"V"):
            size = raw.FPDFAnnot_GetStringValue(note, key, None, 0)
            if 2 < size <= 2 * MAX_NOTE:
                value = (ctypes.c_ushort * (size // 2))()
                raw.FPDFAnnot_GetStringValue(note, key, value, size)
                yield bytes(value)[: size - 2].decode("utf-16-le", "replace")
        raw.FPDFPage_CloseAnnot(note)


def _references(document: pdfium.PdfDocument, page: raw.FPDF_PAGE) -> Iterator[str]:
    """Yield the URLs of a page's links (ISO 32000-1, 12.6.4.7)."""
    at, link, url = ctypes.c_int(), raw.FPDF_LINK(), ctypes.create_string_buffer(MAX_TITLE)
    for _ in range(LINKS):
        if not raw.FPDFLink_Enumerate(page, at, link):
            return
        size = raw.FPDFAction_GetURIPath(document, raw.FPDFLink_GetAction(link), url, MAX_TITLE)
        text = url.value.decode("utf-8", "replace") if 0 < size <= MAX_TITLE else ""
        if scheme := _SCHEME.match(text):
            # Clients that follow links accept any number of slashes or backslashes (the URL Standard, 4.4).
            yield (f"{scheme[1]}://" if scheme[1] else scheme[0]) + text[scheme.end() :]


def _outline(document: pdfium.PdfDocument) -> Iterator[str]:
    """Yield the titles of the outline in order. The outline may be cyclic, so its entries are counted."""
    waiting = [(raw.FPDFBookmark_GetFirstChild(document, None), 1)]
    for _ in range(OUTLINE):
        if not waiting:
            return
        entry, level = waiting.pop()
        if not entry:
            continue
        title = (ctypes.c_ushort * MAX_TITLE)()
        size = raw.FPDFBookmark_GetTitle(entry, title, 2 * MAX_TITLE)
        yield bytes(title)[: size - 2].decode("utf-16-le", "replace") if 2 <= size <= 2 * MAX_TITLE else ""
        waiting.append((raw.FPDFBookmark_GetNextSibling(document, entry), level))
        if level < OUTLINE_DEPTH:
            waiting.append((raw.FPDFBookmark_GetFirstChild(document, entry), level + 1))


def _by_pdfminer(data: bytes, found: Found) -> None:
    """Add the text that pdfminer reads from a document that pdfium rejects. Raises SummaryError, MemoryError."""
    # Without a header near its start (ISO 32000-1, annex H.3.4.1) a file would only cost pdfminer a second.
    if b"%PDF-" not in data[:1_024]:
        raise SummaryError("PDF: no header")
    if exceeds_pdfminer_limits(data):
        raise SummaryError("PDF: damaged, and nested too deep for pdfminer")
    miner = importlib.import_module(FALLBACK)
    try:
        text = miner.extract_text(io.BytesIO(data), maxpages=0 if found.full else PAGES)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - what pdfminer meets has many names, which tell a reader of reasons nothing
        text = ""
    _add_text(text, found)
    if not found.said:
        raise SummaryError("PDF: damaged: neither pdfium nor pdfminer reads it")


def _date(value: str) -> str:
    """Return a date in ISO 8601, UTC; "" if it cannot be parsed."""
    when = moment(value)
    return utc(when) if when else ""


def _add_text(text: str, found: Found) -> None:
    # pdfium marks a hyphen at the end of a line with U+FFFE or U+0002; the parts of the word are joined.
    whole = re.sub(r"[\ufffe\x02]\s*", "", text.replace("\r\n", "\n"))
    found.body("\n".join(filter(None, map(str.strip, whole.split("\n")))), MAX_TEXT)


SUMMARIZER = Summarizer(types=("PDF",), run=run, modules=(FALLBACK,))
