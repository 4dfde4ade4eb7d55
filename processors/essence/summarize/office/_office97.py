"""Text in the streams of Office 97 and before: Word's piece table, Excel's records, PowerPoint's atoms.

Of each stream MAX_STREAM bytes are read, in one pass, with lengths checked against the available bytes; invalid data ends the pass.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

from processors.essence.formats.compound_file import Compound, windows_charset
from processors.essence.formats.line_buffer import Text
from processors.essence.summarize.office._links import fields

MAX_STREAM = 8 << 20
MAX_PIECES = 4_000
WORD = 0xA5EC
WORD97 = 0xC1
"""First version whose text has a piece table."""
BOUNDSHEET, FILEPASS, CODEPAGE, SST, LABEL = 0x85, 0x2F, 0x42, 0xFC, 0x204
BIFF8 = 0x600
TEXT_HEADER, TEXT_CHARS, TEXT_BYTES = 3999, 4000, 4008
LINK, STRING, TARGET = 4055, 4026, 1
"""Records of a link ([MS-PPT] 2.10.16, ExHyperlinkContainer) and of its strings, and the instance number of its address."""
TITLES = (0, 6)
MASTERS = (1016, 4041)
"""Masters of slides and of handouts."""
STRINGS = 2_000
STORIES = 8
"""Parts of a document with stated lengths: the text, footnotes, headers ... ([MS-DOC] 2.5.4)."""

_TOLD = re.compile(r"[\x14\x15]")
"""End of a field's instruction, which begins with \x13."""
_FIELD = re.compile(r"\x13[^\x13\x14\x15]*\x14?")
_ENDS = str.maketrans(
    {"\r": "\n", "\x07": "\t", "\x0b": "\n", "\x0c": "\n", "\x1e": "-", "\x1f": "", "\xa0": " "}
    | {chr(n): "" for n in (*range(7), 8, *range(14, 30))}
)


class Encrypted(Exception):  # noqa: N818 - a property of the document, not an error
    """A password is needed."""


def word(compound: Compound, limit: int, *, whole: bool = False) -> tuple[str, list[str]]:
    """Return the beginning of a Word document's text, and the targets of its links. Raises Encrypted, struct.error.

    `whole`: with footnotes, headers, comments and text boxes, which follow the text in this order.
    """
    fib = compound.read("WordDocument", 0x400)
    ident, version = struct.unpack_from("<HH", fib)
    flags = struct.unpack_from("<H", fib, 10)[0]
    if ident != WORD and version >= WORD97:
        return "", []
    if flags & 0x100:
        raise Encrypted
    if version < WORD97:
        start, end = struct.unpack_from("<II", fib, 0x18)
        text = compound.read("WordDocument", min(max(end - start, 0), 2 * limit), start).decode("cp1252", "replace")
    else:
        text = "".join(_pieces(compound, fib, "1Table" if flags & 0x200 else "0Table", 2 * limit, STORIES if whole else 1))
    told = (_TOLD.split(part, maxsplit=1)[0] for part in text.split("\x13")[1:])
    return _FIELD.sub("", text).translate(_ENDS)[:limit], [url for each in told for url in fields(each)]


def _pieces(compound: Compound, fib: bytes, table: str, limit: int, stories: int) -> Iterator[str]:
    """Yield the pieces of the text ([MS-DOC] 2.4.1), of its first `stories` parts."""
    place, size = struct.unpack_from("<II", fib, 0x1A2)
    clx = compound.read(table, min(size, MAX_STREAM), place)
    at = 0
    while clx[at : at + 1] == b"\x01":
        at += 3 + struct.unpack_from("<H", clx, at + 1)[0]
    if clx[at : at + 1] != b"\x02":
        return
    count = min((struct.unpack_from("<I", clx, at + 1)[0] - 4) // 12, (len(clx) - at - 9) // 12, MAX_PIECES)
    whole = (struct.unpack_from("<I", clx, at + 1)[0] - 4) // 12
    ends = struct.unpack_from(f"<{count + 1}I", clx, at + 5) if count > 0 else ()
    main = sum(struct.unpack_from(f"<{stories}I", fib, 0x4C))
    for number in range(max(count, 0)):
        where = struct.unpack_from("<I", clx, at + 5 + 4 * (whole + 1) + 8 * number + 2)[0]
        length = min(ends[number + 1], main) - ends[number]
        if length <= 0 or limit <= 0:
            return
        length = min(length, limit)
        limit -= length
        if where & 0x4000_0000:
            yield compound.read("WordDocument", length, (where & 0x3FFF_FFFF) // 2).decode("cp1252", "replace")
        else:
            yield compound.read("WordDocument", 2 * length, where).decode("utf-16-le", "replace")


def excel(raw: bytes) -> tuple[list[str], list[str]]:
    """Return the names of a workbook's sheets, and its first strings. Raises Encrypted, struct.error."""
    names: list[str] = []
    strings: list[str] = []
    wide = len(raw) >= 6 and struct.unpack_from("<H", raw, 4)[0] >= BIFF8
    at, charset = 0, "cp1252"
    while at + 4 <= len(raw) and len(strings) < STRINGS:
        kind, size = struct.unpack_from("<HH", raw, at)
        data = raw[at + 4 : at + 4 + size]
        if kind == FILEPASS:
            raise Encrypted
        if kind == BOUNDSHEET and len(data) > 7:
            if wide:
                names.append(_string(data, 6, data[6], 7)[0])
            else:
                names.append(data[7 : 7 + data[6]].decode(charset, "replace"))
        elif kind == CODEPAGE and len(data) >= 2:
            charset = windows_charset(struct.unpack_from("<H", data)[0])
        elif kind == SST:
            strings += _table(data)
        elif kind == LABEL and len(data) > 8:
            length = struct.unpack_from("<H", data, 6)[0]
            strings.append(_string(data, 6, length, 8)[0] if wide else data[8 : 8 + length].decode(charset, "replace"))
        # Four zeros are not a record, but padding to the end of a sector.
        elif kind == 0 and size == 0:
            break
        at += 4 + size
    return names, strings


def _string(data: bytes, at: int, length: int, flags_at: int) -> tuple[str, int]:
    """Return a BIFF8 string ([MS-XLS] 2.5.293) with its flags at `flags_at`, and the offset of its end."""
    flags = data[flags_at] if flags_at < len(data) else 0
    at = flags_at + 1
    runs = struct.unpack_from("<H", data, at)[0] if flags & 8 else 0
    at += 2 if flags & 8 else 0
    extra = struct.unpack_from("<I", data, at)[0] if flags & 4 else 0
    at += 4 if flags & 4 else 0
    end = at + length * (1 + (flags & 1))
    text = data[at:end].decode("utf-16-le" if flags & 1 else "latin-1", "replace")
    return text, end + 4 * runs + extra


def _table(data: bytes) -> Iterator[str]:
    """Yield the shared strings in a workbook's first SST record."""
    at = 8
    while at + 3 <= len(data):
        length = struct.unpack_from("<H", data, at)[0]
        try:
            text, at = _string(data, at, length, at + 2)
        except struct.error:
            return
        yield text


def powerpoint(raw: bytes, text: Text) -> tuple[list[str], list[str]]:
    """Add the text of a presentation; return the titles of its slides, each once ([MS-PPT] 2.3.1), and its links' targets."""
    titles: dict[str, None] = {}
    links: list[str] = []
    kind_of_text = -1
    at = end = 0
    while at + 8 <= len(raw) and not text.full:
        version, kind, size = struct.unpack_from("<HHI", raw, at)
        at += 8
        if version & 0xF == 0xF:
            end = at + size if kind == LINK else end
            # The text of masters is only instructions.
            at += size if kind in MASTERS else 0
            continue
        data = raw[at : at + size]
        if kind == TEXT_HEADER and len(data) >= 4:
            kind_of_text = struct.unpack_from("<I", data)[0]
        elif kind == STRING and at < end and version >> 4 == TARGET:
            links.append(data.decode("utf-16-le", "replace"))
        elif kind in (TEXT_CHARS, TEXT_BYTES):
            words = data.decode("utf-16-le" if kind == TEXT_CHARS else "latin-1", "replace").translate(_ENDS)
            if kind_of_text in TITLES:
                titles[" ".join(words.split())] = None
            for line in words.split("\n"):
                text.add(line)
                text.end()
        at += size
    return [t for t in titles if t], links
