"""Compound files: attachments of Outlook messages ([MS-OXMSG]), and files embedded in all other compound files.

Attachments are storages of the root, whose data is a stream. An attached message is a storage again; it is converted to a short
message with its subject, sender and text. An embedded file is a stream with a known name, in the root or below; an object that is a
storage itself (a drawing, a document of the same Office) has no bytes of its own to return.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from processors.essence.formats import FormatError
from processors.essence.formats.compound_file import STREAM, Compound, Entry
from processors.essence.formats.container import Budget, Damaged, Member, Reader
from processors.essence.formats.streams import Joined, Slice, need, seekable
from processors.essence.unnest import Container
from processors.essence.unnest.containers._embedded import package

ATTACHMENT = "__attach_version1.0_#"
DATA, MESSAGE = "__substg1.0_37010102", "__substg1.0_3701000D"
NAMES = ("3707", "3704", "3001")
"""Properties that name an attachment ([MS-OXPROPS]): long name, short name, display name."""
FIELDS = {"0037": "Subject", "0C1A": "From", "0E04": "To", "1035": "Message-ID"}
FILES = {"Package": b"PK\x03\x04", "CONTENTS": b"%PDF-"}
"""Streams that are complete files if they begin with these bytes: Office documents since 2007, and PDFs."""
NATIVE = "\x01Ole10Native"
"""Stream of a file that was embedded as a whole ([MS-OLEDS] 2.3.6)."""
STORAGE, STORAGES = 1, 200
"""Kind of entry that is a storage, and maximum number of storages searched."""
MAX_NAME = 2_048
MAX_TEXT = 1 << 20


class _Pieces:
    """A stream of a compound file. Raises Damaged if it is shorter than it states."""

    def __init__(self, pieces: Iterator[bytes], size: int) -> None:
        self._pieces = pieces
        self._data = b""
        self._left = size

    def read(self, size: int, /) -> bytes:
        if not self._left:
            return b""
        self._data = self._data or next(self._pieces, b"")
        if not self._data:
            raise Damaged("truncated: a stream of a compound file ends early")
        data, self._data = self._data[:size], self._data[size:]
        self._left -= len(data)
        return data


class _Nothing:
    def read(self, size: int, /) -> bytes:
        return b""


def _text(compound: Compound, parts: Mapping[str, Entry], number: str, limit: int = MAX_NAME) -> str:
    """Return a text property; "" if there is none."""
    for kind, charset in compound.strings.items():
        if raw := compound.part(parts.get(f"__substg1.0_{number}{kind}"), limit):
            return raw.decode(charset, "replace").rstrip("\0")
    return ""


def _message(compound: Compound, storage: Entry) -> bytes:
    """Return an attached message in the format of RFC 5322."""
    parts = compound.inside(storage)
    head = [f"{name}: {' '.join(_text(compound, parts, number).split())}" for number, name in FIELDS.items()]
    text = _text(compound, parts, "1000", MAX_TEXT)
    kind = "MIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8"
    return "\n".join([*(line for line in head if not line.endswith(": ")), kind, "", text]).encode("utf-8", "replace")


def _member(compound: Compound, storage: Entry) -> Member | None:
    parts = compound.inside(storage)
    name = next(filter(None, (_text(compound, parts, number) for number in NAMES)), "attachment")
    stated = _text(compound, parts, "370E")
    if MESSAGE in parts:
        made = _message(compound, parts[MESSAGE])
        return Member(name=name.encode("utf-8", "replace"), body=Joined(made, _Nothing()), stated="message/rfc822")
    if DATA not in parts:
        return None
    data = parts[DATA]
    body = _Pieces(compound.pieces(data), data.size)
    return Member(name=name.encode("utf-8", "replace"), size=data.size, body=body, stated=stated)


class _Objects:
    """Files embedded in a compound file. The first damaged header is recorded, and the other files are given."""

    def __init__(self, compound: Compound) -> None:
        self._compound = compound
        self._seen: set[int] = set()
        self.damage: Damaged | None = None

    def below(self, inside: Mapping[str, Entry], path: str = "") -> Iterator[Member]:
        """Yield the files of a storage, and of the storages in it; each storage is searched once."""
        for name, entry in sorted(inside.items()):
            if entry.kind == STORAGE and entry.child not in self._seen and len(self._seen) < STORAGES:
                self._seen.add(entry.child)
                yield from self.below(self._compound.inside(entry), f"{path}{name}/")
            elif entry.kind != STREAM or not entry.size:
                continue
            elif name in FILES and self._compound.part(entry, 8).startswith(FILES[name]):
                body = _Pieces(self._compound.pieces(entry), entry.size)
                yield Member(name=f"{path}{name}".encode("utf-8", "replace"), size=entry.size, body=body)
            elif name == NATIVE:
                yield from self._native(entry, path)

    def _native(self, entry: Entry, path: str) -> Iterator[Member]:
        body = _Pieces(self._compound.pieces(entry), entry.size)
        try:
            need(body, 4, "the size of an embedded file")
            name, size = package(body)
        except Damaged as error:
            self.damage = self.damage or error
            return
        yield Member(name=name or f"{path}object".encode("utf-8", "replace"), size=size, body=Slice(body, size))


def open_outlook(body: Reader, budget: Budget) -> Iterator[Member]:
    """Yield the attachments, or the embedded files. Raises Damaged, Refused."""
    with seekable(body, budget.limits) as file:
        try:
            compound = Compound(file)
        except FormatError:
            # The summary of the document reports this.
            return
        for name, entry in sorted(compound.streams.items()):
            member = _member(compound, entry) if name.startswith(ATTACHMENT) else None
            if member:
                yield member
        if not any(name.startswith(ATTACHMENT) for name in compound.streams):
            objects = _Objects(compound)
            yield from objects.below(compound.streams)
            if objects.damage:
                raise objects.damage


UNNESTER = Container(("OLE",), open_outlook, summarized=True)
