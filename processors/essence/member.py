"""What the walk carries along (`walk.py`): things, their stored bytes, their state, and the listing of a container."""

from __future__ import annotations

import hashlib
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from email.message import Message
from itertools import islice
from typing import Any, BinaryIO, NamedTuple, Protocol

import msgspec

from processors import identity
from processors.essence.formats.container import Budget, Member, Reader, UnnestLimits
from processors.essence.formats.streams import CHUNK, Digest, anonymous
from processors.essence.recognize import UNRECOGNIZED, Recognized
from processors.essence.selection import Selection
from processors.essence.summarize import Found
from processors.essence.unnest import Container
from schemas.records import File, Rejected, Summary

MAX_CONTENTS = 4_096
"""Bytes of the names of members that the summary of an archive keeps."""
_ONE_LINE = dict.fromkeys((*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A)), " ")
"""Names are listed one a line, as a person reads them: without what ends a line, or turns one round."""
MAX_STEP, MAX_PATH = 4_096, 12_000
"""Bytes of one step of a path (Linux's PATH_MAX), and of a whole one: longer names stand as their digest, since paths are
keys and URLs, and a sandbox tells its parent which one it works on."""
MAX_HELD = 500
"""Records that are held back in memory; further ones lie in an anonymous file."""

BEHIND = "\n"
"""Stands before the path of a member where it is told that the member is done with, and what comes behind it is looked for."""
GIVEN_UP = "given up: "
"""What the reason begins with of what was not opened because of something before it."""

MemberRecord = File | Summary | Rejected
KINDS = (File, Summary, Rejected)


class EssenceSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the owner of a Gatherer decides about essence; in harvest.toml too."""

    gatherer: str
    """The name that its OIDs are made of (DESIGN "Identity")."""
    select: Selection = Selection()
    limits: UnnestLimits = UnnestLimits()
    entries: bool = True
    """Give each entry of a list (packages, bibliographies, indexes) a summary of its own."""
    full_text: int = 0
    """Bytes of full text that a summary may have, in place of its partial text; 0: none."""
    files: bool = False
    """Give the facts of every file (File records), those that were not selected included."""
    added: str = ""
    """The digest of what the operator has added (`extensions.py`): what was made without it is to be made again."""


class Thing(NamedTuple):
    """An object or a member, as its source or its archive describes it."""

    path: str
    name: bytes
    """Last component."""
    size: int = -1
    mtime: int = 0
    """ns since the epoch."""
    owner: str = ""
    group: str = ""
    mode: int = 0
    stated: str = ""
    """Content-Type of the source."""
    depth: int = 0
    """Containers and encodings that it lies in."""
    url: str = ""
    """Where a member was once fetched from; "" if its container does not tell."""
    source: str = ""
    """Of an entry of a list: the URL of the list."""


class Stored(Reader, Protocol):
    """The stored bytes of a thing, with the digest of what was read of them."""

    def digest(self) -> Digest:
        """The digest of what was read; without SHA-256 where that was not all."""
        ...


class DigestedBody:
    """A body that was digested when it was fetched."""

    def __init__(self, file: BinaryIO, digest: Digest) -> None:
        self.file = file
        self._digest = digest

    def read(self, size: int, /) -> bytes:
        """The next bytes."""
        return self.file.read(size)

    def digest(self) -> Digest:
        """The digest of the whole body."""
        return self._digest


class State:
    """What is known of a thing so far; at the end, what its summary is made of."""

    def __init__(self, rule: str = "", full: int = 0, *, linked: bool = True) -> None:
        self.found = Found(full, linked=linked)
        self.recognized = Recognized(UNRECOGNIZED, "application/octet-stream", "content")
        self.rule = rule
        """The selection rule that drops it."""
        self.reason = ""
        """Why it is rejected."""
        self.detail = ""


class Listed:
    """The listing of a container, as it is walked through."""

    def __init__(self, above: str) -> None:
        self._above = above
        self._again: Counter[bytes] = Counter()
        self._contents: list[str] = []
        self._room = MAX_CONTENTS
        self.path = ""
        """That of the member that was entered last."""
        self.names: set[bytes] = set()
        self.dropped: Counter[str] = Counter()
        """Members that were not selected, by rule."""
        self._size: int | None = 0
        """None: a member does not state its size."""

    def enter(self, member: Member) -> str:
        """Note a member that is not a folder, and give its path: a second one of the same name gets ";2"."""
        # A member without a name must not get the path of its container.
        base = member.name or b";1"
        name, times = base, self._again[base]
        while name in self.names:
            times = max(times + 1, 2)
            name = b"%s;%d" % (base, times)
        if times:
            self._again[base] = times
        self.names.add(name)
        self._size = None if self._size is None or member.size < 0 else self._size + member.size
        path = self._step(name)
        if len(name) < self._room:
            shown = name.decode("utf-8", "replace").translate(_ONE_LINE)
            self._room -= len(shown.encode()) + 1
            if self._room >= 0:
                self._contents.append(shown)
        self.path = f"{self._above}#{path}" if self._above else path
        return self.path

    def _step(self, name: bytes) -> str:
        path = identity.member_path(name)
        size = len(path.encode())
        if size > MAX_STEP or size + len(self._above.encode()) > MAX_PATH:
            return "~" + hashlib.sha256(name).hexdigest()[:32]
        return path

    def tell(self, found: Found, *, document: bool = False) -> None:
        """Add what the summary of the container says of its members; of a document that has none, nothing."""
        if document and not self.names:
            return
        found.add("member-count", str(len(self.names)))
        found.add("total-size", str(self._size) if self._size is not None else "")
        found.add("contents", "\n".join(self._contents))
        for rule, count in sorted(self.dropped.items()):
            found.add("not-selected", f"{rule} {count}")


class Room:
    """How many members a container may give: of the entries of a list in an archive, half of what the object has left.

    So that a list of packages does not take the place of the files that come behind it; what is left out is told, and nothing else
    of the object suffers.
    """

    def __init__(self, budget: Budget, container: Thing, unnester: Container) -> None:
        self._left = -1 if not unnester.entries else budget.entries // 2 if container.path else budget.entries
        self._out = 0

    def full(self) -> bool:
        """Whether the next member is left out."""
        self._out += self._left == 0
        self._left -= self._left > 0
        return self._out > 0

    def tell(self, found: Found) -> None:
        """Say how many were left out."""
        found.add("entries-left-out", str(self._out) if self._out else "")


class RecordBuffer:
    """Records that wait for a decision, in groups; their memory is bounded."""

    def __init__(self, first: int = MAX_HELD) -> None:
        self._most = first
        self._groups: list[tuple[bytes, int]] = []
        self._first: list[MemberRecord] = []
        self._file: BinaryIO | None = None
        self.size = 0
        """Bytes of what lies in the file."""

    def append(self, name: bytes, records: Iterable[MemberRecord]) -> None:
        """Hold back what a member gives."""
        count = 0
        try:
            for record in records:
                self.keep(record)
                count += 1
        finally:
            self._groups.append((name, count))

    def keep(self, record: MemberRecord) -> None:
        """Hold back one that is asked for without its member."""
        if len(self._first) < self._most:
            self._first.append(record)
            return
        self._file = self._file or anonymous()
        # Not Avro: what nobody else reads need not be coded as a contract, which takes ten times as long.
        data = msgspec.msgpack.encode(record)
        self._file.write(struct.pack(">IB", len(data), KINDS.index(type(record))) + data)
        self.size += len(data)

    def groups(self) -> Iterator[tuple[bytes, list[MemberRecord]]]:
        """What was held back, by member, in order. To be asked once."""
        records = self.records()
        for name, count in self._groups:
            yield name, list(islice(records, count))

    def records(self) -> Iterator[MemberRecord]:
        """The same without its members, and what belongs to none. To be asked once."""
        yield from self._first
        if self._file:
            with self._file as file:
                file.seek(0)
                while head := file.read(5):
                    size, kind = struct.unpack(">IB", head)
                    yield _unpacked(KINDS[kind], msgspec.msgpack.decode(file.read(size)))


def _unpacked(kind: type[MemberRecord], fields: dict[str, Any]) -> MemberRecord:
    """A record of its fields, in which tuples have become lists."""
    for name in ("attributes", "annotations"):
        if name in fields:
            fields[name] = {key: tuple(values) for key, values in fields[name].items()}
    made: Callable[..., MemberRecord] = kind
    return made(**{name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()})


def digested(data: bytes) -> Digest:
    """The digest of bytes that are no content: without SHA-256, so that dedup leaves them alone."""
    return Digest(len(data), hashlib.md5(data, usedforsecurity=False).hexdigest(), "")


def digest_of(file: BinaryIO) -> Digest:
    """The digest of a file, which is left at its start."""
    md5, sha256, size = hashlib.md5(usedforsecurity=False), hashlib.sha256(), 0
    file.seek(0)
    while data := file.read(CHUNK):
        md5.update(data)
        sha256.update(data)
        size += len(data)
    file.seek(0)
    return Digest(size, md5.hexdigest(), sha256.hexdigest())


def text(value: bytes) -> str | bytes:
    """Bytes as text, where they are UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def bounded(value: str, limit: int) -> str:
    """Text that any record can carry: printable, valid, at most `limit` characters."""
    if len(value) <= limit and value.isascii() and value.isprintable():
        return value
    return "".join(c if c.isprintable() else " " for c in value[:limit]).encode("utf-8", "replace").decode()


def iso(mtime: int) -> str:
    """A time in ns since the epoch in ISO 8601, UTC, to the second; "" beyond the years that have four digits."""
    try:
        return datetime.fromtimestamp(mtime // 1_000_000_000, UTC).isoformat()[:19] + "Z"
    except (ValueError, OverflowError, OSError):
        return ""


def charset(stated: str) -> str:
    """The charset that a Content-Type declares, or ""."""
    if "charset" not in stated.lower():
        return ""
    message = Message()
    message["content-type"] = stated.replace("\r", " ").replace("\n", " ")
    try:
        return bounded(message.get_content_charset(""), 40)
    except (ValueError, LookupError, TypeError, AttributeError):
        # The standard library cannot bear all that RFC 2231 may be bent to.
        return ""
