"""What a sandboxed child does with one object: Essence, its records encoded and addressed.

The parent moves the bytes on: a frame names topic and partition. Before anything acts on it, the edge checks whose record it
is, and all of what goes to `crawl` and `rejected` (`streams.edges.believing`).

Frame: topic number (1 byte), partition (2), length of the key (4), all big-endian, then the key and the encoded record.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from functools import lru_cache, partial
from typing import BinaryIO, NamedTuple, cast

import msgspec

from processors import essence, recognize, summarize
from schemas.codec import decode, encode
from schemas.records import FetchedObject, Record
from streams.routing import Router
from streams.store.murmur2 import partition as partition_of
from streams.topology import REJECTED, topology

HEAD = struct.Struct(">BHI")

TOPICS = ("made", "crawl", "files", "rejected")
"""Topics by the number in a frame."""


MAX_DIGITS = 6
"""A number of an object in a chunk that has as many digits is nonsense."""

END = b"\xff"
"""In place of a frame: the records of one object are whole."""


class Job(msgspec.Struct, frozen=True, array_like=True):
    """An object to work on: its record as the log has it, and the members that are not to be opened again, each with why."""

    record: bytes
    skip: dict[str, str] = {}
    body: bytes | None = None
    """A body of the blob store, where it is small enough to travel with others."""
    stop: str = ""
    """The member behind which the object is given up."""


class Chunk(msgspec.Struct, frozen=True, array_like=True):
    """Objects for one child, one after the other; a body that is handed over as a file is the first one's."""

    settings: bytes
    partitions: int
    jobs: tuple[Job, ...]


class Frame(NamedTuple):
    """A record on its way into the log."""

    topic: str
    partition: int
    key: bytes
    value: bytes
    record: Record | None = None
    """What `value` is, where it was made in this process."""


_chunk = msgspec.msgpack.Decoder(Chunk).decode
pack = msgspec.msgpack.encode


@lru_cache(maxsize=4)
def _settings(data: bytes) -> essence.EssenceSettings:
    return msgspec.msgpack.decode(data, type=essence.EssenceSettings)


@lru_cache(maxsize=1)
def _router() -> Router:
    return Router(topology().stage("essence"), REJECTED)


def preload() -> None:
    """Import and warm up all that a child needs, before it loses the file system."""
    recognize.preload()
    summarize.preload()
    essence.rules_fingerprint(essence.EssenceSettings(gatherer=""))
    _router()


def work(request: bytes, body: BinaryIO | None, emit: Callable[[bytes], None], progress: Callable[[str], None]) -> None:
    """One task of the pool: every record of each object as a frame, and an END behind them."""
    chunk = _chunk(request)
    settings, route = _settings(chunk.settings), _router().route
    for number, job in enumerate(chunk.jobs):
        at = partial(_say, progress, number)
        at("")
        obj = cast("FetchedObject", decode(job.record))
        if job.body is not None:
            body = io.BytesIO(job.body)
        for record in essence.essence(obj, body, settings, job.skip, at, job.stop):
            topic, key, _ = route(record)
            head = HEAD.pack(TOPICS.index(topic), partition_of(key, chunk.partitions), len(key))
            emit(head + key + encode(record))
        emit(END)
        body = None


def _say(progress: Callable[[str], None], number: int, path: str) -> None:
    progress(f"{number}\n{path}")


def blamed(culprit: str) -> tuple[int, str]:
    """The number of the object in its chunk, and the path of its member, that a child was at when it died.

    (0, "") where it was at none yet, or said nonsense, as a child that was taken over may.
    """
    number, _, path = culprit.partition("\n")
    return (int(number), path) if number.isdecimal() and len(number) < MAX_DIGITS else (0, "")


def unpack(frame: bytes) -> Frame:
    """The frame that a child made. Raises ValueError for anything else: a child that was taken over says what it likes."""
    try:
        number, partition, length = HEAD.unpack_from(frame)
        topic = TOPICS[number]
    except (struct.error, IndexError) as error:
        raise ValueError(f"not a frame: {error}") from error
    key_end = HEAD.size + length
    if key_end > len(frame):
        raise ValueError("not a frame: shorter than its key")
    return Frame(topic, partition, frame[HEAD.size : key_end], frame[key_end:])
