"""Opens the bytes that a summary describes, for `GET /object/OID` of the gateway.

Strategy: a local file is sent as it lies on the disk. A member is taken out of its object by a sandboxed child, which gets the open
object and sends the bytes back; they wait in an anonymous temporary file, since their digest is known only at the end. A child
serves one request, so that what one archive does to it cannot affect the bytes of another; it is forked from a process that has
loaded everything, in some milliseconds.

Laws:
- Only files below a root of the Gatherer are opened, whatever a summary claims, and without following links below the root. An
  object of a server comes from the blob store, or not at all: nothing is fetched.
- Size and digests are those of the summary, or nothing is sent. The child is not trusted with that comparison.
- At most CHILDREN requests are prepared at once; each is bounded in time, memory and bytes.
"""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from threading import BoundedSemaphore
from typing import BinaryIO, Final, NamedTuple, cast

import msgspec

from processors.essence.extract import Source
from processors.essence.formats.container import UnnestLimits
from processors.essence.member import EssenceSettings, bounded
from processors.identity import frontier_key, oid
from processors.schemes import scheme_of
from schemas.ports import Blobs
from schemas.records import MAX_REASON, FetchRequest, Root, Summary
from sinks.gateway.ports import ObjectError
from streams.edges.extensions import Extensions
from streams.edges.member_job import COMPLETE, DATA, LONGER, MISSING, PRELOAD, UNREADABLE, WORK, MemberRequest, pack
from streams.fetch.verified import CHANGED, ChangedError, ContentDigest, open_regular, verified
from streams.sandbox.shared import SharedPool
from streams.sandbox.values import Done, Failed, Flooded, Lost, Outcome, OutOfMemory, SandboxError, SandboxLimits
from streams.store.errors import StoreError

CHILDREN: Final = 2
"""Requests that are prepared at once, and children for them."""
PATIENCE_S: Final = 30.0
"""Time that a request waits for others."""
EXTRACTION_S: Final = 300.0
"""Maximum time for one member, if `SandboxLimits.whole` is longer: a client waits for it."""
SYMLINK: Final = "inode/symlink"

_log = logging.getLogger("harvest.gateway")


class BodySources(NamedTuple):
    """Where the bytes of objects are."""

    roots: Callable[[], Iterable[Root]]
    """Returns the roots of the Gatherer, paused ones too. Called for each local object; may raise StoreError."""
    blobs: Blobs
    """The blob store of the data folder."""
    data: Path | None = None
    """The data folder: no file in it is sent, even if it lies below a root."""
    find: Callable[[str], Summary | None] = lambda _: None
    """Returns the summary of an OID: that of an object of a server states under which digest its bytes are stored."""


class BodyLimits(NamedTuple):
    """Limits on what is opened."""

    sandbox: SandboxLimits = SandboxLimits()
    unnest: UnnestLimits = UnnestLimits()
    max_file: int = 1 << 30
    """Maximum bytes of an object (`fetch.max_file`)."""

    @property
    def max_member(self) -> int:
        """Maximum bytes of a member."""
        return min(self.unnest.member, self.sandbox.file_size, self.sandbox.total)

    @classmethod
    def of(cls, sandbox: SandboxLimits, essence: EssenceSettings, max_file: int) -> BodyLimits:
        """Return the limits that the settings state."""
        return cls(sandbox, essence.limits, max_file)


class ObjectBodies:
    """Opens the bytes of objects and members. Thread-safe; every method blocks.

    added: the operator's additions to Essence, whose types decide which files are opened.
    spool: folder of temporary files; empty: the system's.
    """

    def __init__(self, sources: BodySources, limits: BodyLimits, added: Extensions | None = None, spool: str = "") -> None:
        self._sources = sources
        self._limits = limits
        self._spool = spool or None
        whole = min(limits.sandbox.whole, EXTRACTION_S)
        sandbox = msgspec.structs.replace(limits.sandbox, tasks=1, whole=whole)
        self._pool = SharedPool(WORK, CHILDREN, sandbox, PRELOAD, added.ordered() if added else "")
        self._turns = BoundedSemaphore(CHILDREN)

    def open(self, summary: Summary) -> tuple[BinaryIO, int]:
        """Open the bytes that a summary describes at their start, and return their number. The caller closes the file.

        Reading the file raises OSError (ESTALE) if it is changed meanwhile. Raises ObjectError.
        """
        if summary.content_type == SYMLINK:
            raise ObjectError("a symbolic link has no bytes of its own", 404)
        if not summary.md5:
            raise ObjectError("its bytes were not read when it was summarized", 404)
        if not self._turns.acquire(timeout=PATIENCE_S):
            raise ObjectError("too many objects are being opened: try again", 503)
        try:
            return self._open(summary)
        except ChangedError as error:
            raise ObjectError(str(error), 409) from error
        except OSError as error:
            raise _unreadable(error) from error
        except StoreError as error:
            raise ObjectError(f"the data folder cannot be read: {error}", 503) from error
        finally:
            self._turns.release()

    def close(self) -> None:
        """End the children; requests in progress end with an error."""
        self._pool.close()

    def _open(self, summary: Summary) -> tuple[BinaryIO, int]:
        most = self._limits.max_member if summary.path else self._limits.max_file
        if summary.size > most:
            raise ObjectError(f"larger than {most:,} bytes", 413)
        body = self._object(summary)
        if not summary.path:
            return verified(body, _content(summary)), summary.size
        with body:
            return self._member(summary, body), summary.size

    # ---- the object ------------------------------------------------------------------------------------------------

    def _object(self, summary: Summary) -> BinaryIO:
        """Open the object of a summary, unverified."""
        if scheme_of(summary.object_url).realm == "machine":
            return self._local(summary.object_url)
        return self._stored(summary)

    def _local(self, url: str) -> BinaryIO:
        root = max((r for r in self._sources.roots() if is_below(url, r.url)), key=lambda r: len(r.url), default=None)
        if root is None:
            raise ObjectError("not below a root of this Gatherer", 403)
        try:
            file = open_regular(FetchRequest(url=url, host=frontier_key(url), version=0, time=0, root=root))
        except ValueError as error:  # an embedded NUL, or a path that leads up
            raise ObjectError("not a path below a root of this Gatherer", 403) from error
        if self._is_own(file):
            file.close()
            raise ObjectError("a file of the data folder is not sent", 403)
        return file

    def _is_own(self, file: BinaryIO) -> bool:
        """Return whether an open file is in the data folder."""
        if self._sources.data is None:
            return False
        place = os.readlink(f"/proc/self/fd/{file.fileno()}")
        return place.startswith(os.path.realpath(self._sources.data) + os.sep)

    def _stored(self, summary: Summary) -> BinaryIO:
        """Open the object of a server in the blob store."""
        holder = self._sources.find(oid(summary.gatherer, summary.object_url)) if summary.path else summary
        try:
            return self._sources.blobs.open(holder.sha256 if holder is not None else "")
        except FileNotFoundError as error:
            raise ObjectError(f"its bytes are not kept here: fetch {summary.object_url}", 404) from error

    # ---- a member --------------------------------------------------------------------------------------------------

    def _member(self, summary: Summary, body: BinaryIO) -> BinaryIO:
        """Return the bytes of a member as an anonymous file at its start."""
        size = os.fstat(body.fileno()).st_size
        if size > self._limits.max_file:
            raise ObjectError(f"its object is larger than {self._limits.max_file:,} bytes", 413)
        request = pack(MemberRequest(Source(summary.object_url, size), summary.path, summary.size, self._limits.unnest))
        file = cast("BinaryIO", tempfile.TemporaryFile(dir=self._spool))  # noqa: SIM115 - the caller of `open` closes it
        try:
            received = ReceivedMember(file, _content(summary))
            try:
                outcome = self._pool.run(request, body.fileno(), received.take)
            except SandboxError as error:
                _log.error("no child for the members of archives: %s", error)
                raise ObjectError("members cannot be taken out: see the log", 502) from error
            except InvalidFrameError as error:
                raise ObjectError(f"cannot be taken out of its archive: {error}", 502) from error
            received.check(outcome, self._limits)
            file.seek(0)
        except BaseException:
            file.close()
            raise
        return file


class InvalidFrameError(Exception):
    """A child sent what no child sends unless an archive took it over."""


class ReceivedMember:
    """Bytes of a member as they arrive from an untrusted child."""

    def __init__(self, file: BinaryIO, content: ContentDigest) -> None:
        self._file = file
        self._content = content
        self._left = content.size
        self._md5, self._sha256 = hashlib.md5(usedforsecurity=False), hashlib.sha256()
        self._end = b""
        """Kind of the last frame."""
        self._reason = ""

    def take(self, frame: bytes) -> None:
        """Process a frame. Raises InvalidFrameError, and OSError if the bytes cannot be written."""
        kind, data = frame[:1], frame[1:]
        if self._end or kind not in (DATA, COMPLETE, LONGER, MISSING, UNREADABLE):
            raise InvalidFrameError("invalid answer of the parser")
        if kind != DATA:
            self._end, self._reason = kind, bounded(data.decode("utf-8", "replace"), MAX_REASON)
            return
        self._left -= len(data)
        if self._left < 0:
            raise InvalidFrameError("invalid answer of the parser: too long")
        self._md5.update(data)
        self._sha256.update(data)
        self._file.write(data)

    def check(self, outcome: Outcome, limits: BodyLimits) -> None:
        """Check that all bytes arrived, and that they are those of the summary. Raises ObjectError, ChangedError."""
        if isinstance(outcome, Lost):
            raise ObjectError(f"the parser was stopped ({outcome.detail}): try again", 503)
        if isinstance(outcome, Flooded):
            raise ObjectError(f"larger than {limits.max_member:,} bytes", 413)
        if isinstance(outcome, Failed):
            _log.error("a member could not be taken out: %s", outcome.traceback)
        if not isinstance(outcome, Done) or not self._end:
            raise _unextracted(outcome.reason)
        if self._end == MISSING:
            raise ObjectError(self._reason, 404)
        if self._end == UNREADABLE:
            raise _unextracted(OutOfMemory("").reason if outcome.strained else self._reason)
        found = self._md5.hexdigest(), self._sha256.hexdigest()
        expected = self._content
        if self._end == LONGER or self._left or found[0] != expected.md5 or expected.sha256 not in ("", found[1]):
            raise ChangedError(CHANGED)


def is_below(url: str, root: str) -> bool:
    """Return whether a URL is a root, or begins with that of a root that is a folder."""
    return url == root or (root.endswith("/") and url.startswith(root))


def _content(summary: Summary) -> ContentDigest:
    return ContentDigest(summary.size, summary.md5, summary.sha256)


def _unextracted(reason: str) -> ObjectError:
    return ObjectError(f"cannot be taken out of its archive: {reason}", 502)


def _unreadable(error: OSError) -> ObjectError:
    """Return the error for a file that cannot be opened or read."""
    match error:
        case FileNotFoundError() | NotADirectoryError():
            return ObjectError("no such file any more", 404)
        case PermissionError():
            return ObjectError("permission denied", 403)
        case _:
            return ObjectError(f"cannot be read: {bounded(error.strerror or str(error), MAX_REASON)}", 502)
