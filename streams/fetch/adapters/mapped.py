"""Reads objects of a server from a folder of this machine that has the server's files (local mapping).

Strategy: each component of the path is opened relative to the folder above it, from the mapped folder down, and must not be a link
(O_NOFOLLOW). A link is read instead, and its components are walked in the same way, so that one that leads outside is never
followed, not even one that is replaced between two system calls.

Laws:
- The object keeps the URL of the server. Owner and mode are not reported, since the server does not either.
- A link that leads outside of the mapped folder, or in a circle, counts as a missing file.
- A folder is what a server makes of it: its default document, or a redirect to the URL with a slash.
- A missing file is gone for the reason NOT_LOCAL, or failed for NO_FOLDER if the mapped folder is missing or empty and removals are
  not accepted; the frontier decides what follows.
- The data folder is never read.
"""

from __future__ import annotations

import asyncio
import errno
import os
import stat
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import msgspec

from processors.identity import file_path
from schemas.plan import NO_FOLDER, NOT_LOCAL
from schemas.records import FetchedObject, FetchRequest, Record
from streams.faults import fault
from streams.fetch.adapters import Tools
from streams.fetch.adapters.local import MISSING, OWN, EntryPath, failure_of, read_regular
from streams.fetch.answers import Answers, FetchError, StoreError

INDEXES = (b"index.html", b"index.htm", b"index.xhtml", b"default.html", b"default.htm")
"""Default documents of a folder, in the order in which they are looked for."""
MAX_LINKS = 40
"""Maximum number of links in one path (as in Linux)."""

_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Mapped:
    """An `Adapter` and `BulkAdapter` for requests that name a local file."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._own = os.path.realpath(os.fsencode(tools.own)) if tools.own is not None else None

    async def resolve(self, request: FetchRequest) -> list[Record]:
        """Return a resolved event without address and robots.txt: none is asked for here."""
        return Answers(request, self._tools.clock()).resolved("", b"")

    async def fetch(self, request: FetchRequest) -> list[Record]:
        """Return the records that answer a request. Raises StoreError."""
        return await asyncio.to_thread(self._read, request)

    def read_all(self, requests: Sequence[FetchRequest]) -> Iterator[list[Record]]:
        """Yield the records that answer each request. Raises StoreError."""
        for request in requests:
            fault("fetch.read")
            yield self._read(request)

    def _read(self, request: FetchRequest) -> list[Record]:
        answers = Answers(request, self._tools.clock())
        try:
            with ExitStack() as opened:
                return self._answer(answers, opened)
        except FetchError as failure:
            return answers.failed(failure)
        except StoreError:
            raise
        except OSError as error:
            return _missing(answers) if error.errno in (*MISSING, errno.ELOOP) else answers.failed(failure_of(error))
        except ValueError as error:  # an embedded NUL, or not a path
            return answers.failed(FetchError(f"not a path: {error}", retryable=False))

    def _answer(self, answers: Answers, opened: ExitStack) -> list[Record]:
        tools, request = self._tools, answers.request
        top, path = file_path(request.within).rstrip(b"/"), file_path(request.local)
        if not path.startswith(top + b"/"):
            return answers.gone(NOT_LOCAL)
        walk = _Walk(top, opened, self._own)
        place = walk.to(path[len(top) :])
        if place is None and not path.endswith(b"/"):
            return answers.moved(request.url + "/", 301)
        for name in INDEXES if place is None else ():
            try:
                place = walk.to(name)
            except FileNotFoundError:
                continue
            break
        if walk.own:
            return answers.refused(OWN)
        if place is None:
            return _missing(answers)
        records = read_regular(answers, place, tools.blobs, tools.settings.max_file)
        return [msgspec.structs.replace(each, headers={}) if isinstance(each, FetchedObject) else each for each in records]

    async def close(self) -> None:
        """Do nothing: no resources stay open."""


def _missing(answers: Answers) -> list[Record]:
    """Return the answer for a missing file."""
    request = answers.request
    if answers.now > request.root.accept and _is_empty(file_path(request.within)):
        return answers.failed(FetchError(NO_FOLDER, retryable=False))
    return answers.gone(NOT_LOCAL)


def _is_empty(folder: bytes) -> bool:
    """Return whether a folder is missing or empty."""
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is None
    except OSError as error:
        return error.errno in MISSING


class _Walk:
    """The open folders from the mapped one down; `own`: whether one of them is the data folder, or the first one is in it."""

    def __init__(self, top: bytes, opened: ExitStack, data: bytes | None) -> None:
        real = os.path.realpath(top)
        self._tops = (top, real)
        self._opened = opened
        self._links = 0
        self._data = os.stat(data) if data is not None else None
        self.own = data is not None and (real + b"/").startswith(data + b"/")
        # The mapped folder is reached as its user named it, links included.
        self._folders = [self._keep(os.open(top or b"/", _FOLDER & ~os.O_NOFOLLOW))]

    def to(self, path: bytes) -> EntryPath | None:
        """Go to a path from the present folder on; return the open folder and the name of a file in it, None for a folder.

        Raises OSError, ENOENT for what is outside and ENOTDIR for what is no regular file.
        """
        todo = deque(part for part in path.split(b"/") if part)
        while todo:
            name, at = todo.popleft(), self._folders[-1]
            if name == b"..":
                self._up()
            elif name != b".":
                kind = stat.S_IFMT(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode)
                if kind == stat.S_IFLNK:
                    todo.extendleft(reversed(self._target(os.readlink(name, dir_fd=at))))
                elif kind == stat.S_IFDIR:
                    self._folders.append(self._keep(os.open(name, _FOLDER, dir_fd=at)))
                elif kind != stat.S_IFREG or todo or path.endswith(b"/"):
                    raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
                else:
                    return at, name
        return None

    def _up(self) -> None:
        if len(self._folders) == 1:
            raise FileNotFoundError(errno.ENOENT, "outside of the mapped folder")
        self._folders.pop()

    def _target(self, target: bytes) -> list[bytes]:
        """Return the components of the target of a link; an absolute one below the mapped folder starts there."""
        self._links += 1
        if self._links > MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if target.startswith(b"/"):
            top = next((top for top in self._tops if target == top or target.startswith(top + b"/")), None)
            if top is None:
                raise FileNotFoundError(errno.ENOENT, "outside of the mapped folder")
            del self._folders[1:]
            target = target[len(top) :]
        return [part for part in target.split(b"/") if part]

    def _keep(self, fd: int) -> int:
        self._opened.callback(os.close, fd)
        self.own = self.own or (self._data is not None and os.path.samestat(os.fstat(fd), self._data))
        return fd
