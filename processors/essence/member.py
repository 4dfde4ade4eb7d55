"""Data of the walk (`walk.py`): objects and members, their stored bytes, their state, and the listing of a container."""

from __future__ import annotations

import hashlib
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from email.message import Message
from functools import lru_cache
from itertools import islice
from typing import Any, BinaryIO, NamedTuple, Protocol

import msgspec

from processors import identity
from processors.essence.formats.container import Budget, Member, Reader, UnnestLimits
from processors.essence.formats.streams import CHUNK, Digest, anonymous
from processors.essence.recognize import UNRECOGNIZED, Recognized
from processors.essence.selection import NOT_SELECTED, Selection
from processors.essence.summarize import Found
from processors.essence.unnest import Container
from schemas.records import File, Rejected, Summary

MAX_CONTENTS = 4_096
"""Maximum number of bytes of member names in the summary of an archive."""
_ONE_LINE = dict.fromkeys((*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A)), " ")
"""Replaces characters that end a line or change the direction of writing: names are listed one per line, for people."""
MAX_STEP, MAX_PATH = 4_096, 12_000
"""Bytes of one step of a path (Linux's PATH_MAX), and of a whole path. A longer name is replaced by its digest, since paths are
keys and URLs, and a sandbox reports to its parent the path that it is working on.
"""
MAX_HELD = 500
"""Records that are held back in memory; further ones are written to an anonymous file."""

MAX_LONG = (1 << 63) - 1
"""Largest number in a record (64 bits, signed)."""
BEHIND = "\n"
"""Prefix of a member's path in a progress report: the member is finished, and the walk looks for the next one."""
GIVEN_UP = "given up: "
"""Prefix of the reason of members that were not opened because of an earlier member."""

MemberRecord = File | Summary | Rejected
KINDS = (File, Summary, Rejected)


class EssenceSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of essence of a Gatherer; also in harvest.toml."""

    gatherer: str
    """Name from which the OIDs of this Gatherer are computed (DESIGN "Identity")."""
    select: Selection = Selection()
    limits: UnnestLimits = UnnestLimits()
    entries: bool = True
    """Give each entry of a list (packages, bibliographies, indexes) its own summary."""
    full_text: int = 0
    """Maximum bytes of full text in a summary, in place of its partial text; 0: no full text."""
    files: bool = False
    """Emit the metadata of every file (File records), including files that were not selected."""
    packages_members: bool = False
    """Keep the summaries of the members of a software package beside that of the package."""
    added: str = ""
    """Digest of the operator's extensions (`extensions.py`): when it changes, objects are summarized again."""


class Thing(NamedTuple):
    """Metadata of an object or a member, as its source or its archive states them."""

    path: str
    name: bytes
    """Last component of the path."""
    size: int = -1
    mtime: int = 0
    """Nanoseconds since the epoch."""
    owner: str = ""
    group: str = ""
    mode: int = 0
    stated: str = ""
    """Content-Type as stated by the source."""
    depth: int = 0
    """Number of containers and encodings around it."""
    url: str = ""
    """URL that a member was originally fetched from; "" if its container does not state one."""
    source: str = ""
    """For an entry of a list: the URL of the list."""


class Stored(Reader, Protocol):
    """Stored bytes of an object or a member, with a digest of the bytes that were read."""

    def digest(self) -> Digest:
        """Return the digest of the bytes that were read; without SHA-256 unless all were read."""
        ...


class DigestedBody:
    """A body whose digest was computed when it was fetched."""

    def __init__(self, file: BinaryIO, digest: Digest) -> None:
        self.file = file
        self._digest = digest

    def read(self, size: int, /) -> bytes:
        """Return the next bytes."""
        return self.file.read(size)

    def digest(self) -> Digest:
        """Return the digest of the whole body."""
        return self._digest


class State:
    """State of the analysis of an object or member; its summary is built from it at the end."""

    def __init__(self, rule: str = "", full: int = 0, *, linked: bool = True) -> None:
        self.found = Found(full, linked=linked)
        self.recognized = self.outer = Recognized(UNRECOGNIZED, "application/octet-stream", "content")
        """The type of the innermost layer, and of the encoding around it."""
        self.rule = rule
        """Selection rule that drops it, or ""."""
        self.reason = ""
        """Reason of its rejection, or ""."""
        self.detail = ""


class Listed:
    """Members of a container, recorded while it is read."""

    def __init__(self, above: str) -> None:
        self._above = above
        self._again: Counter[bytes] = Counter()
        self._contents: list[str] = []
        self._room = MAX_CONTENTS
        self.path = ""
        """Path of the member that was entered last."""
        self.names: set[bytes] = set()
        self.dropped: Counter[str] = Counter()
        """Number of members that were not selected, by rule."""
        self._size: int | None = 0
        """Total size in bytes; None: a member does not state its size."""

    def enter(self, member: Member) -> str:
        """Record a member that is not a folder, and return its path; a second member of the same name gets the suffix ";2"."""
        # A member without a name must not have the path of its container.
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
        """Add the attributes about members to the summary of a container; nothing for a document without members."""
        if document and not self.names:
            return
        found.add("member-count", str(len(self.names)))
        found.add("total-size", str(self._size) if self._size is not None else "")
        found.add("contents", "\n".join(self._contents))
        for rule, count in sorted(self.dropped.items()):
            found.add(NOT_SELECTED, f"{rule} {count}")


class Room:
    """Limit on the entries of a list: the remaining budget of its object, or half of that for a list in an archive.

    A long list of packages therefore does not displace later files. Entries beyond the limit are counted, and the rest of the
    object is not affected. Containers that are not lists have no limit here.
    """

    def __init__(self, budget: Budget, container: Thing, unnester: Container) -> None:
        self._left = -1 if not unnester.entries else budget.entries // 2 if container.path else budget.entries
        self._out = 0

    def full(self) -> bool:
        """Count the next member, and return whether it is left out."""
        self._out += self._left == 0
        self._left -= self._left > 0
        return self._out > 0

    def tell(self, found: Found) -> None:
        """Add the number of entries that were left out."""
        found.add("entries-left-out", str(self._out) if self._out else "")


class RecordBuffer:
    """Records that wait for a decision, grouped by member; memory is bounded."""

    def __init__(self, first: int = MAX_HELD) -> None:
        self._most = first
        self._groups: list[tuple[bytes, int]] = []
        self._first: list[MemberRecord] = []
        self._file: BinaryIO | None = None
        self.size = 0
        """Bytes of the records in the anonymous file."""

    def append(self, name: bytes, records: Iterable[MemberRecord]) -> None:
        """Hold back the records of a member as one group."""
        count = 0
        try:
            for record in records:
                self.keep(record)
                count += 1
        finally:
            self._groups.append((name, count))

    def keep(self, record: MemberRecord) -> None:
        """Hold back one record, in no group; `records` returns it."""
        if len(self._first) < self._most:
            self._first.append(record)
            return
        self._file = self._file or anonymous()
        # Not Avro: internal data needs no contract encoding, which takes ten times as long.
        data = msgspec.msgpack.encode(record)
        self._file.write(struct.pack(">IB", len(data), KINDS.index(type(record))) + data)
        self.size += len(data)

    def groups(self) -> Iterator[tuple[bytes, list[MemberRecord]]]:
        """Yield the held records grouped by member, in order. Can be called once."""
        records = self.records()
        for name, count in self._groups:
            yield name, list(islice(records, count))

    def records(self) -> Iterator[MemberRecord]:
        """Yield the held records in order without their members, also those in no group. Can be called once."""
        yield from self._first
        if self._file:
            with self._file as file:
                file.seek(0)
                while head := file.read(5):
                    size, kind = struct.unpack(">IB", head)
                    yield _unpacked(KINDS[kind], msgspec.msgpack.decode(file.read(size)))


def _unpacked(kind: type[MemberRecord], fields: dict[str, Any]) -> MemberRecord:
    """Return a record built from decoded fields, in which tuples have become lists."""
    for name in ("attributes", "annotations"):
        if name in fields:
            fields[name] = {key: tuple(values) for key, values in fields[name].items()}
    made: Callable[..., MemberRecord] = kind
    return made(**{name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()})


def digested(data: bytes) -> Digest:
    """Return the digest of bytes that are not content: without SHA-256, so that dedup ignores them."""
    return Digest(len(data), hashlib.md5(data, usedforsecurity=False).hexdigest(), "")


def digest_of(file: BinaryIO) -> Digest:
    """Return the digest of a file, and rewind the file to its start."""
    md5, sha256, size = hashlib.md5(usedforsecurity=False), hashlib.sha256(), 0
    file.seek(0)
    while data := file.read(CHUNK):
        md5.update(data)
        sha256.update(data)
        size += len(data)
    file.seek(0)
    return Digest(size, md5.hexdigest(), sha256.hexdigest())


def text(value: bytes) -> str | bytes:
    """Return the bytes as text if they are UTF-8, else unchanged."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def bounded(value: str, limit: int) -> str:
    """Return text that is valid in any record: printable, encodable, at most `limit` characters."""
    if len(value) <= limit and value.isascii() and value.isprintable():
        return value
    return "".join(c if c.isprintable() else " " for c in value[:limit]).encode("utf-8", "replace").decode()


def iso(mtime: int) -> str:
    """Return a time (nanoseconds since the epoch) in ISO 8601, UTC, to the second; "" outside the years with four digits."""
    try:
        return datetime.fromtimestamp(mtime // 1_000_000_000, UTC).isoformat()[:19] + "Z"
    except (ValueError, OverflowError, OSError):
        return ""


@lru_cache(256)
def charset(stated: str) -> str:
    """Return the charset that a Content-Type declares, or ""."""
    if "charset" not in stated.lower():
        return ""
    message = Message()
    message["content-type"] = stated.replace("\r", " ").replace("\n", " ")
    try:
        return bounded(message.get_content_charset(""), 40)
    except (ValueError, LookupError, TypeError, AttributeError):
        # The standard library raises on some malformed parameters of RFC 2231.
        return ""
