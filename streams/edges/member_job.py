"""The job of a sandboxed child for one member: takes its bytes out of the object that contains it.

Answer: frames of one kind (1 byte) and a text each. DATA carries bytes of the member; one frame of another kind ends the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO, Final

import msgspec

from processors.essence import recognize
from processors.essence.extensions import OwnError
from processors.essence.extract import MemberMissingError, Source, extract
from processors.essence.formats import text
from processors.essence.formats.container import UnnestError, UnnestLimits
from processors.essence.member import bounded
from schemas.records import MAX_REASON
from streams.edges.extensions import Extensions, load
from streams.sandbox.values import MistakeError

WORK, PRELOAD = "streams.edges.member_job:work", "streams.edges.member_job:preload"
"""The function that children run on a request, and the function that loads their modules."""

DATA: Final = b"\0"
COMPLETE: Final = b"\1"
LONGER: Final = b"\2"
"""The member has more bytes than `MemberRequest.size`; the rest is not sent."""
MISSING: Final = b"\3"
"""There is no such member, or it has no bytes: the reason follows."""
UNREADABLE: Final = b"\4"
"""The object or the member cannot be read: the reason follows."""


class MemberRequest(msgspec.Struct, frozen=True, array_like=True):
    """The member to take out of the object that is passed as a file. `size`: its number of bytes."""

    object: Source
    path: str
    size: int
    limits: UnnestLimits


_request = msgspec.msgpack.Decoder(MemberRequest).decode
pack = msgspec.msgpack.encode


def preload(added: str = "") -> None:
    """Load what recognition and unnesting need, before the child loses access to the file system. Raises MistakeError.

    `added`: the operator's additions, as `Extensions` in JSON, loaded after the rest: their types decide what is opened.
    """
    if not added:
        recognize.preload()
        text.preload()
        return
    try:
        load(msgspec.json.decode(added, type=Extensions))
    except OwnError as error:
        raise MistakeError(str(error)) from error


def work(request: bytes, body: BinaryIO | None, emit: Callable[[bytes], None], progress: Callable[[str], None]) -> None:
    """Do one task of the pool: emit the bytes of a member, and how they end."""
    wanted = _request(request)
    if body is None:
        raise ValueError("a request without its object")
    left = wanted.size
    try:
        for data in extract(wanted.object, body, wanted.path, wanted.limits, progress):
            left -= len(data)
            if left < 0:
                emit(LONGER)
                return
            emit(DATA + data)
    except MemberMissingError as error:
        emit(MISSING + bounded(str(error), MAX_REASON).encode())
    except UnnestError as error:
        emit(UNREADABLE + error.reason.encode("utf-8", "replace"))
    else:
        emit(COMPLETE)
