"""Recognition of documents in zip packages with an unusual first member, by the names and content of the first members.

Laws:
- Only the local headers in the first bytes of a file are read, at most MEMBERS of them, and at most MAX_PART bytes of a member.
- A package is a document by what declares it: the relationships or content types of Office (ECMA-376-2, 9.3 and 10.1.2), the
  container of a book (EPUB 3.3, 4.2.6.3.1), the media type or the manifest of an OpenDocument (OASIS ODF 1.3, part 2, 3.2 and 3.3).
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator, Mapping

from processors.essence.formats.package_parts import TYPES, part_key

MEMBERS = 100
MAX_PART = 65_536
LOCAL, DESCRIBED = b"PK\x03\x04", 8
"""Start of a local header, and flag of a member whose sizes follow its data (PKWARE APPNOTE 6.3.10, 4.3.7 and 4.4.4)."""
STORED, DEFLATED = 0, 8
DECLARED = (TYPES, "_rels/.rels", "meta-inf/container.xml", "mimetype")
"""Members whose content tells the type."""
FOLDERS = {
    "word/": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xl/": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "ppt/": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
}
"""Media types by folder, if no content type is declared."""

_MAIN = re.compile(rb"[\"'](application/vnd\.[\w.-]{1,100}\.main(?:\+xml)?)[\"']")
_RELATED = re.compile(rb"(?:relationships/officeDocument|visio/2010/relationships/document)[\"']")
_NEXT = re.compile(rb"PK(?:\x07\x08|\x03\x04|\x01\x02)")
_OPEN = re.compile(rb"(?:application/vnd\.oasis\.opendocument\.|application/vnd\.sun\.xml\.)[\w.-]{1,60}")


def packaged(head: bytes) -> tuple[str, str] | None:
    """Return the type of a document in a package and its media type ("": unknown), or None. `head`: the first bytes of a zip."""
    found: dict[str, bytes] = {}
    for name, part in _members(head):
        found.setdefault(name, part)
    kind = found.get("mimetype", b"")
    if b"oebps-package" in found.get("meta-inf/container.xml", b"") or kind.startswith(b"application/epub+zip"):
        return "EPUB", ""
    if media := _OPEN.match(kind):
        return "OpenDocument", media[0].decode("ascii")
    if "content.xml" in found and "meta-inf/manifest.xml" in found:
        return "OpenDocument", ""
    return _office(found)


def _office(found: Mapping[str, bytes]) -> tuple[str, str] | None:
    main = _MAIN.search(found.get(TYPES, b""))
    declared = TYPES in found or "_rels/.rels" in found
    folder = next((media for name in found for start, media in FOLDERS.items() if declared and name.startswith(start)), "")
    if not (main or folder or _RELATED.search(found.get("_rels/.rels", b""))):
        return None
    return "OfficeDocument", _media(main[1].decode("ascii").lower()) if main else folder


def _media(declared: str) -> str:
    """Return the media type of a document from the content type of its main part; types with macros have a version."""
    if "visio" in declared:
        return declared
    media = declared.removesuffix("+xml").removesuffix(".main").replace("macroenabledtemplate", "macroenabled")
    return f"{media}.12" if media.endswith("macroenabled") else media


def _members(head: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the keys of the first members, and the content of those that declare a type, as far as the first bytes go."""
    at = 0
    for _ in range(MEMBERS):
        if not head.startswith(LOCAL, at) or len(head) < at + 30:
            return
        flags, method, packed, named, extended = struct.unpack_from("<2xHH8xI4xHH", head, at + 4)
        start = at + 30 + named + extended
        end = _end(head, start) if flags & DESCRIBED and not packed else start + packed
        key = part_key(head[at + 30 : at + 30 + named].decode("utf-8", "replace"))
        yield key, _content(head[start:end], method) if key in DECLARED else b""
        at = end


def _end(head: bytes, start: int) -> int:
    """Return the end of a member whose descriptor, with a signature or without, states its size; else the end of the bytes."""
    for match in _NEXT.finditer(head, start):
        at = match.start()
        signed = match[0] == b"PK\x07\x08"
        stated = at + 8 if signed else at - 8
        size = at - start if signed else at - 12 - start
        if size >= 0 and head[stated : stated + 4] == size.to_bytes(4, "little"):
            return at + 16 if signed else at
    return len(head)


def _content(raw: bytes, method: int) -> bytes:
    """Return the start of a member's content; b"" for other methods of compression, and for damaged data."""
    if method == STORED:
        return raw[:MAX_PART]
    try:
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(raw, MAX_PART) if method == DEFLATED else b""
    except zlib.error:
        return b""
