"""TNEF ([MS-OXTNEF]), Outlook's container for what MIME cannot express (winmail.dat): attachments and the text.

An attachment is a sequence of attributes, whose content may precede its name: the whole sequence is scanned first, and only
positions are kept. An attached message is TNEF again, an embedded OLE object is a compound file.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import BinaryIO, NamedTuple

from processors.essence.formats.compound_file import filetime_to_iso, windows_charset
from processors.essence.formats.container import Budget, Damaged, Member, Reader
from processors.essence.formats.dates import utc
from processors.essence.formats.mail.outlook_rtf import decompress_rtf
from processors.essence.formats.streams import CHUNK, Joined, seekable
from processors.essence.unnest import Container

MAGIC = b"\x78\x9f\x3e\x22"
SUBJECT, FROM, TEXT, PROPERTIES, CODEPAGE = 0x18004, 0x8000, 0x2800C, 0x69003, 0x69007
SENT, SENDER, MOMENT = 0x38005, 8, struct.Struct("<6H")
"""Attribute of the sending time; bytes before the sender's name; six numbers from year to second."""
START, TITLE, DATA, ATTACHED = 0x69002, 0x18010, 0x6800F, 0x69005
"""Attributes: start, title and content of an attachment, and its properties."""
NAMES = (0x3707, 0x3704, 0x3001)
CONTENT_TYPE, CONTENT, PLAIN, PAGE, RICH = 0x370E, 0x3701, 0x1000, 0x1013, 0x1009
"""Properties ([MS-OXPROPS]): content type and content of an attachment, and three forms of the text of a message."""
OF_MESSAGE, SUBMITTED = {"title": 0x0037, "author": 0x0C1A}, 0x0039
"""Properties of the message: subject and sender's name; time of sending."""
WIDTHS = {2: 4, 3: 4, 4: 4, 5: 8, 6: 8, 7: 8, 10: 4, 11: 4, 20: 8, 64: 8, 72: 16}
"""Sizes in bytes of the fixed-size types, with padding."""
NARROW, WIDE, OBJECT, BINARY, MANY = 0x1E, 0x1F, 0x0D, 0x102, 0x1000
COUNT, VALUES = 10_000, 10_000
"""Maximum number of properties in an attribute, and of values in all of them, that are read."""
MAX_NAME, MAX_TEXT = 2_048, 4 << 20
INTERFACE = 16
"""Bytes before the data of an object, which identify its interface."""
LEVELS, BLANK = (1, 2), b"\0\r\n"
"""Levels of attributes (message, attachment); and bytes that mail may add at the end."""
_HEADER = struct.Struct("<BII")


class _Place(NamedTuple):
    """Position of a value in the file."""

    at: int
    size: int
    kind: int = 0


class _Part:
    """A part of a file as a stream. Raises Damaged if the file ends before it, or if its checksum is wrong."""

    def __init__(self, file: BinaryIO, place: _Place, checksum: int = -1) -> None:
        self._file = file
        self._at, self._left, _ = place
        self._checksum = checksum
        self._sum = 0

    def read(self, size: int, /) -> bytes:
        if not self._left:
            if self._checksum >= 0 and self._sum & 0xFFFF != self._checksum:
                raise Damaged("its checksum fails")
            return b""
        self._file.seek(self._at)
        data = self._file.read(min(size, self._left, CHUNK))
        if not data:
            raise Damaged("truncated: the body ends early")
        self._sum += sum(data) if self._checksum >= 0 else 0
        self._at += len(data)
        self._left -= len(data)
        return data


class _Nothing:
    def read(self, size: int, /) -> bytes:
        return b""


class _Properties:
    """Positions of the properties in an attribute, by number; reading ends at the first damage."""

    def __init__(self, file: BinaryIO, place: _Place) -> None:
        self._file = file
        self._at, self._end = place.at, place.at + place.size
        self._values = VALUES
        self.found: dict[int, _Place] = {}
        try:
            for _ in range(min(self._number(), COUNT)):
                self._next()
        except Damaged:
            return

    def _take(self, size: int) -> bytes:
        if size > self._end - self._at:
            raise Damaged("a property ends early")
        self._file.seek(self._at)
        self._at += size
        return self._file.read(size)

    def _number(self) -> int:
        return int.from_bytes(self._take(4), "little")

    def _pass(self, size: int) -> None:
        self._at += size + -size % 4

    def _next(self) -> None:
        kind, number = struct.unpack("<HH", self._take(4).ljust(4, b"\0"))
        if number >= 0x8000:
            self._take(16)
            named = self._number()
            length = self._number()
            self._pass(length if named else 0)
        many, kind = kind & MANY, kind & ~MANY
        fixed = WIDTHS.get(kind, 0)
        count = self._number() if many or not fixed else 1
        for _ in range(count):
            self._values -= 1
            if self._values < 0:
                raise Damaged("too many values")
            size = fixed or self._number()
            if self._at + size > self._end:
                raise Damaged("a property ends early")
            self.found.setdefault(number, _Place(self._at, size, kind))
            self._pass(size)


class _Attachment:
    """Name, positions and checksum found for one attachment."""

    def __init__(self) -> None:
        self.name = b""
        self.data: _Place | None = None
        self.checksum = -1
        self.properties: dict[int, _Place] = {}


class _Message:
    """Reads the attributes of a message in order."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.charset = "cp1252"
        self.texts: dict[int, _Place] = {}
        self._open: _Attachment | None = None

    def read(self) -> Iterator[Member]:
        """Yield the attachments, each at its end, then the text. Raises Damaged."""
        file, damage = self._file, None
        size = file.seek(0, 2)
        file.seek(0)
        if not file.read(6).startswith(MAGIC):
            raise Damaged("no TNEF")
        at = 6
        while at < size:
            file.seek(at)
            head = file.read(_HEADER.size)
            level, number, length = _HEADER.unpack(head.ljust(_HEADER.size, b"\0"))
            if not head.strip(BLANK):
                break
            if len(head) < _HEADER.size or level not in LEVELS:
                damage = Damaged(
                    "truncated: an attribute ends early" if level in LEVELS else "damaged: no attribute where one belongs"
                )
                break
            place = _Place(at + _HEADER.size, length)
            at = place.at + length + 2
            if number == START:
                yield from self._close()
                self._open = _Attachment()
            self._attribute(number, place)
            if at > size:
                damage = Damaged("truncated: an attribute ends early")
        yield from self._close()
        yield from self._text()
        if damage:
            raise damage

    def _head(self, place: _Place, most: int) -> bytes:
        self._file.seek(place.at)
        return self._file.read(min(place.size, most))

    def _attribute(self, number: int, place: _Place) -> None:
        if number == CODEPAGE:
            self.charset = windows_charset(int.from_bytes(self._head(place, 4), "little"))
        elif number == TEXT:
            self.texts[PLAIN] = place._replace(kind=NARROW)
        elif number == PROPERTIES:
            found = _Properties(self._file, place).found
            self.texts = {n: found[n] for n in (PLAIN, PAGE, RICH) if n in found} | self.texts
        elif self._open and number == TITLE:
            self._open.name = self._said(place._replace(kind=NARROW)).encode("utf-8", "replace")
        elif self._open and number == DATA:
            self._open.data = place
            self._file.seek(place.at + place.size)
            stated = self._file.read(2)
            self._open.checksum = int.from_bytes(stated, "little") if len(stated) == 2 else -1
        elif self._open and number == ATTACHED:
            self._open.properties = _Properties(self._file, place).found

    def _said(self, place: _Place | None, most: int = MAX_NAME) -> str:
        if not place:
            return ""
        raw = self._head(place, most)
        return raw.decode("utf-16-le" if place.kind == WIDE else self.charset, "replace").partition("\0")[0].strip()

    def _close(self) -> Iterator[Member]:
        """Yield the attachment that was just read, if there is one."""
        given, self._open = self._open, None
        if not given:
            return
        told = given.properties
        name = next(filter(None, (self._said(told.get(number)) for number in NAMES)), "").encode("utf-8", "replace")
        data, checksum, content = given.data, given.checksum, told.get(CONTENT)
        if content and content.kind == OBJECT and content.size > INTERFACE:
            data, checksum = _Place(content.at + INTERFACE, content.size - INTERFACE), -1
        elif content and content.kind == BINARY and not (data and data.size):
            data, checksum = content, -1
        if data:
            stated = self._said(told.get(CONTENT_TYPE))
            body = _Part(self._file, data, checksum)
            yield Member(name=name or given.name or b"attachment", size=data.size, stated=stated, body=body)

    def _text(self) -> Iterator[Member]:
        """Yield the text in the plainest form available."""
        plain, marked, packed = (self.texts.get(number) for number in (PLAIN, PAGE, RICH))
        if plain and (said := self._said(plain, MAX_TEXT)):
            stated = "text/plain; charset=utf-8"
            yield Member(name=b"message.txt", body=Joined(said.encode("utf-8", "replace"), _Nothing()), stated=stated)
        elif marked and marked.size:
            yield Member(name=b"message.html", size=marked.size, body=_Part(self._file, marked), stated="text/html")
        elif packed and (raw := decompress_rtf(self._head(packed, MAX_TEXT))):
            yield Member(name=b"message.rtf", size=len(raw), body=Joined(raw, _Nothing()), stated="application/rtf")


def open_tnef(body: Reader, budget: Budget) -> Iterator[Member]:
    """Yield the attachments and the text. Raises Damaged, Refused."""
    with seekable(body, budget.limits, damaged=True) as file:
        yield from _Message(file).read()


def about_tnef(head: bytes) -> Iterator[tuple[str, str]]:
    """Yield subject, sender and date of the message, from the data before its first attachment ([MS-OXTNEF] 2.1.3.3, 2.1.3.4)."""
    at, charset, said = 6, "cp1252", dict[str, str]()
    while head.startswith(MAGIC) and at + _HEADER.size <= len(head):
        level, number, length = _HEADER.unpack_from(head, at)
        place = _Place(at + _HEADER.size, length)
        if level != LEVELS[0]:
            break
        if number == CODEPAGE:
            charset = windows_charset(int.from_bytes(head[place.at : place.at + 4], "little"))
        for key, value in _told(number, place, head, charset):
            said.setdefault(key, value)
        at = place.at + length + 2
    yield from said.items()


def _told(number: int, place: _Place, head: bytes, charset: str) -> Iterator[tuple[str, str]]:
    """Yield the metadata in one attribute of a message."""
    data = head[place.at : place.at + min(place.size, MAX_NAME)]
    texts: dict[str, tuple[bytes, str]] = {}
    if number == SUBJECT:
        texts["title"] = (data, charset)
    elif number == FROM and len(data) > SENDER:
        texts["author"] = (data[SENDER : SENDER + int.from_bytes(data[4:6], "little")], charset)
    elif number == SENT and len(data) >= MOMENT.size:
        with suppress(ValueError, OverflowError):
            year, month, day, hour, minute, second = MOMENT.unpack_from(data)
            yield "date", utc(datetime(year, month, day, hour, minute, second, tzinfo=UTC))
    elif number == PROPERTIES:
        found = _Properties(io.BytesIO(head), place).found
        for key, asked in OF_MESSAGE.items():
            if value := found.get(asked):
                texts[key] = (
                    head[value.at : value.at + min(value.size, MAX_NAME)],
                    "utf-16-le" if value.kind == WIDE else charset,
                )
        if (when := found.get(SUBMITTED)) and when.size == 8 and len(raw := head[when.at : when.at + 8]) == 8:
            texts["date"] = (filetime_to_iso(int.from_bytes(raw, "little")).encode(), "ascii")
    for key, (raw, coded) in texts.items():
        if text := " ".join(raw.decode(coded, "replace").partition("\0")[0].split()):
            yield key, text


UNNESTER = Container(("TNEF",), open_tnef, about_tnef)
