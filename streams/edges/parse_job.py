"""The job of a sandboxed child for one object: Essence, with its records encoded and addressed.

The parent only moves the bytes: a frame names topic and partition. Before anything acts on a frame, the edge checks whose record it
is, and everything that goes to `crawl` and `rejected` (`streams.edges.frame_validation`).

Frame: topic number (1 byte), partition (2), length of the key (4), length of the record in msgpack (4; 0: left out), all
big-endian, then the key, the record in msgpack, and the encoded record. A reader that uses a record at once reads msgpack, in a
tenth of the time. A caller without a log asks for records alone (`Chunk.alone`): the number of a class (1 byte), then msgpack.
"""

from __future__ import annotations

import hashlib
import io
import os
import struct
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, BinaryIO, NamedTuple, get_type_hints

import msgspec

from processors.essence import recognize, stage, summarize
from processors.essence.extensions import OwnError
from processors.essence.fingerprint import rules_fingerprint
from processors.essence.summarize import Facts, SummaryError
from schemas.codec import encode, record_type
from schemas.records import (
    Attributes,
    Complete,
    Confirmed,
    CrawlEvent,
    FetchedObject,
    Partial,
    Record,
    Rejected,
    Summary,
    Withdrawn,
)
from streams.edges.extensions import Extensions, load
from streams.sandbox.programs import Command, ProgramError, Programs
from streams.sandbox.values import MistakeError, SandboxLimits
from streams.store.murmur2 import partition as partition_of
from streams.topology.flow import ESSENCE, REJECTED
from streams.topology.routing import Router

HEAD = struct.Struct(">BHII")

TOPICS = ("made", "crawl", "files", "rejected")
"""Topics by their number in a frame."""


MAX_DIGITS = 6
"""An object number in a chunk with this many digits is invalid."""

CARRIED = 1 << 18
"""Bytes of msgpack records that travel with the frames of one object; longer ones are staged, and read much later."""

MAX_TOLD, MAX_NAME = 8_000, 1_000
"""Maximum characters of a URL and of a name passed to a program: both go in one packet."""

END = b"\xff"
"""Replaces a frame: all records of one object have been sent."""
DAMAGED = b"\xfe"
"""Replaces all frames of an object: its body is not the one that was stored."""
PIECE = 1 << 20
"""Bytes read between two signs of life."""


class Job(msgspec.Struct, frozen=True, array_like=True):
    """An object to work on, and the members not to open again, each with the reason."""

    obj: FetchedObject
    skip: dict[str, str] = {}
    body: bytes | None = None
    """Body from the blob store, if it is small enough to travel with others."""
    stop: str = ""
    """The member after which nothing more is opened."""
    ends: dict[str, str] = {}
    """Members after which their containers are not read further, each with the reason."""


class Chunk(msgspec.Struct, frozen=True, array_like=True):
    """Objects for one child, one after the other; a body passed as a file belongs to the first one."""

    settings: bytes
    partitions: int
    jobs: tuple[Job, ...]
    carry: bool = False
    """Whether frames on `made` carry their records in msgpack, up to CARRIED bytes for each object."""
    check: bool = False
    """Whether bodies from the blob store are compared with their digests first, since a disk may damage them."""
    alone: bool = False
    """Whether summaries, rejections and refusals are returned as records alone."""


class Frame(NamedTuple):
    """A record on its way into the log."""

    topic: str
    partition: int
    key: bytes
    value: bytes
    record: Record | None = None
    """The decoded `value`, if it is known."""


_chunk = msgspec.msgpack.Decoder(Chunk).decode
pack = msgspec.msgpack.encode
_TEXTS = {str, bytes}
_hints = get_type_hints(Summary)
_attributes = dict[str, tuple[Any, ...]]
"""msgspec checks no further where a value may be of two kinds of text."""
_told = msgspec.msgpack.Decoder(
    msgspec.defstruct("_Told", [(n, _attributes if _hints[n] == Attributes else _hints[n]) for n in Summary.__struct_fields__])
).decode


def _summary(data: bytes) -> Summary:
    """Decode a summary in msgpack. Raises ValueError, msgspec.DecodeError."""
    summary = Summary(**msgspec.structs.asdict(_told(data)))
    if not {type(v) for found in (summary.attributes, summary.annotations) for vs in found.values() for v in vs} <= _TEXTS:
        raise ValueError("not a frame: a value that is no text")
    return summary


_CARRIED: dict[type[Record], Callable[[bytes], Record]] = {
    Summary: _summary,
    Complete: msgspec.msgpack.Decoder(Complete).decode,
    Partial: msgspec.msgpack.Decoder(Partial).decode,
    Withdrawn: msgspec.msgpack.Decoder(Withdrawn).decode,
    Confirmed: msgspec.msgpack.Decoder(Confirmed).decode,
}


Alone = Summary | Rejected | CrawlEvent
ALONE: Mapping[type[Record], Callable[[bytes], Alone]] = {
    Summary: _summary,
    Rejected: msgspec.msgpack.Decoder(Rejected).decode,
    CrawlEvent: msgspec.msgpack.Decoder(CrawlEvent).decode,
}
"""Records for callers without a log, and their decoders."""
_NUMBERS = {kind: bytes((number,)) for number, kind in enumerate(ALONE)}
_READ = tuple(ALONE.values())


@lru_cache(maxsize=4)
def _settings(data: bytes) -> stage.EssenceSettings:
    return msgspec.msgpack.decode(data, type=stage.EssenceSettings)


@lru_cache(maxsize=1)
def _router() -> Router:
    return Router(ESSENCE, REJECTED)


def preload(added: str = "") -> Callable[[SandboxLimits], None] | None:
    """Import and warm up everything that a child needs, before it loses access to the file system.

    `added`: the operator's additions, as `Extensions` in JSON, loaded after the rest. Returns what each child must do before it is
    sealed, if anything. Raises MistakeError.
    """
    if added:
        return _add(msgspec.json.decode(added, type=Extensions))
    recognize.preload()
    summarize.preload()
    rules_fingerprint(stage.EssenceSettings(gatherer=""))
    _router()
    return None


def _add(added: Extensions) -> Callable[[SandboxLimits], None] | None:
    programs = Programs()
    try:
        rules = load(added, partial(_by_program, programs))
    except OwnError as error:
        raise MistakeError(str(error)) from error
    programs.commands = {name: Command(p.command, p.seconds, p.reads) for name, p in rules.programs.items()}
    return programs.begin if programs.commands else None


def _by_program(programs: Programs, name: str, facts: Facts, body: BinaryIO) -> bytes:
    """Return the output of the program for a file's type. Raises SummaryError."""
    about = {"TYPE": facts.type, "NAME": facts.name.decode(errors="replace")[:MAX_NAME], "URL": facts.url[:MAX_TOLD]}
    try:
        return programs.run(name, about, body)
    except ProgramError as error:
        program = os.path.basename(programs.commands[name].arguments[0])
        raise SummaryError(f"{facts.type}: {program}: {error}") from error


def work(request: bytes, body: BinaryIO | None, emit: Callable[[bytes], None], progress: Callable[[str], None]) -> None:
    """Do one task of the pool: emit every record of each object as a frame, or DAMAGED, and then an END."""
    chunk = _chunk(request)
    for number, job in enumerate(chunk.jobs):
        at = partial(_say, progress, number)
        at("")
        if job.body is not None:
            body = io.BytesIO(job.body)
        if chunk.check and body is not None and not _whole(job.obj.blob, body, at):
            emit(DAMAGED)
        else:
            _give(chunk, job, body, emit, at)
        emit(END)
        body = None


def _give(chunk: Chunk, job: Job, body: BinaryIO | None, emit: Callable[[bytes], None], at: Callable[[str], None]) -> None:
    """Emit the records of one object."""
    records = stage.essence(job.obj, body, _settings(chunk.settings), job.skip, at, job.stop, job.ends)
    if chunk.alone:
        for record in records:
            if isinstance(record, Summary | Rejected) or (isinstance(record, CrawlEvent) and record.kind == "refused"):
                emit(_NUMBERS[type(record)] + pack(record))
        return
    route = _router().route
    room = CARRIED if chunk.carry else 0
    for record in records:
        topic, key, _ = route(record)
        # A child never reads its records again: a cache of them came to 75 MB, and was never used.
        value = encode(record, kept=False)
        carried = pack(record) if room and topic == "made" else b""
        if len(carried) > room:
            carried = b""
        room -= len(carried)
        head = HEAD.pack(TOPICS.index(topic), partition_of(key, chunk.partitions), len(key), len(carried))
        emit(b"".join((head, key, carried, value)))


def _whole(digest: str, body: BinaryIO, at: Callable[[str], None]) -> bool:
    """Return whether a body has the SHA-256 under which it is stored; leaves it at its beginning."""
    found = hashlib.sha256()
    while piece := body.read(PIECE):
        found.update(piece)
        at("")
    body.seek(0)
    return found.hexdigest() == digest


def _say(progress: Callable[[str], None], number: int, path: str) -> None:
    progress(f"{number}\n{path}")


def find_culprit(culprit: str) -> tuple[int, str]:
    """Return the number of the object in its chunk, and the path of the member, at or behind which the child died.

    (0, "") if it had not reached any, or if the report is invalid, as a compromised child may send.
    """
    number, _, path = culprit.partition("\n")
    return (int(number), path) if number.isdecimal() and len(number) < MAX_DIGITS else (0, "")


def single_record(frame: bytes) -> Alone:
    """Return the record of a frame that holds nothing else. Raises ValueError for anything else."""
    if not frame or frame[0] >= len(_READ):
        raise ValueError("not a frame: no record that is read alone")
    try:
        return _READ[frame[0]](frame[1:])
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"not a frame: {error}"[:200]) from error


def unpack(frame: bytes) -> Frame:
    """Decode a frame from a child. Raises ValueError for anything else: a compromised child may send any bytes."""
    try:
        number, partition, length, carried = HEAD.unpack_from(frame)
        topic = TOPICS[number]
    except (struct.error, IndexError) as error:
        raise ValueError(f"not a frame: {error}") from error
    key_end = HEAD.size + length
    start = key_end + carried
    if start > len(frame):
        raise ValueError("not a frame: shorter than its key and record")
    value = frame[start:]
    return Frame(topic, partition, frame[HEAD.size : key_end], value, _carried(frame[key_end:start], value) if carried else None)


def _carried(data: bytes, value: bytes) -> Record:
    """Return the record carried beside its encoded form, of the same class. Raises ValueError."""
    kind = record_type(value)
    if kind not in _CARRIED:
        raise ValueError(f"not a frame: a {kind.__name__} is not carried")
    try:
        return _CARRIED[kind](data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"not a frame: {error}"[:200]) from error
