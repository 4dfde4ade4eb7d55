"""RAR, versions 1.5 to 5, by libarchive; one volume at a time: a file that continues in another volume is damaged.

libarchive ends at the first file that it cannot read. Those behind it are listed from their headers, each with the reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from processors.essence.formats.container import Budget, Damaged, Member, Reader, Refused, UnnestError
from processors.essence.formats.streams import CHUNK, Failing, sought
from processors.essence.unnest import Container
from processors.essence.unnest.containers import _libarchive as libarchive
from processors.essence.unnest.containers import _libarchive_c as c
from processors.essence.unnest.containers._appended import behind, find_appended
from processors.essence.unnest.containers._rar_headers import Head, Headers


class _Rar:
    """Reads one archive by libarchive, while its headers are collected."""

    def __init__(self, body: Reader) -> None:
        self._headers = Headers(body)
        self._given = Counter[bytes]()
        self._locked = False
        """Whether a file was encrypted."""

    def members(self, budget: Budget) -> Iterator[Member]:
        """Yield the members. Raises UnnestError."""
        headers, problem = self._headers, None
        try:
            for member in libarchive.members(headers, budget, c.RAR, c.RAR5):
                yield self._checked(member)
            problem = self._rest()
        except (Damaged, Refused) as error:
            problem = error
            self._rest()
        behind = _behind(headers.found, self._given)
        problem = self._reason(problem, behind)
        for head in behind:
            body = None if head.folder else Failing(Refused("encrypted") if head.encrypted else problem or Damaged("damaged"))
            yield Member(name=head.name, kind="folder" if head.folder else "file", size=head.size, body=body)
        if problem:
            raise problem

    def _checked(self, member: Member) -> Member:
        """Return a member, without its body if that is encrypted: libarchive 3.6 returns such bytes of RAR 5 as content."""
        at, name = self._given.total(), member.name.rstrip(b"/")
        self._given[name] += 1
        head = self._headers.found[at] if at < len(self._headers.found) else None
        if head is None or not head.encrypted or member.body is None or head.name.rstrip(b"/") != name:
            return member
        self._locked = True
        return member._replace(body=Failing(Refused("encrypted")))

    def _rest(self) -> UnnestError | None:
        """Collect the remaining headers; return the failure of the stream, if any."""
        try:
            while self._headers.read(CHUNK):
                pass
        except (Damaged, Refused) as error:
            return error
        return None

    def _reason(self, problem: UnnestError | None, behind: Sequence[Head]) -> UnnestError | None:
        """Return what is wrong with the archive as a whole."""
        headers = self._headers
        if headers.hidden:
            return Refused("encrypted, with its names")
        if part := headers.part():
            return Damaged(part)
        lost = not (headers.ended or headers.found)
        cut = Damaged("truncated: the end of the archive is missing") if headers.cut() and not lost else None
        if problem and self._locked:
            return Refused("encrypted files before it end the reading") if behind else cut
        if not problem and behind:
            return Damaged("damaged: its data were not found")
        return problem or cut or (Damaged("truncated: no header of a file") if lost else None)


def _behind(found: Sequence[Head], given: Counter[bytes]) -> list[Head]:
    """Return the files that were not given."""
    left, behind = given.copy(), []
    for head in found:
        name = head.name.rstrip(b"/")
        if left[name] > 0:
            left[name] -= 1
        else:
            behind.append(head)
    # Names that libarchive decodes in another way must not be listed twice.
    return behind if len(behind) + given.total() == len(found) else list(found[given.total() :])


def open_rar(body: Reader, budget: Budget) -> Iterator[Member]:
    """Yield the members of an archive. Raises UnnestError."""
    file = sought(body)
    place = find_appended(file) if file and file.read(4) != b"Rar!" else None
    if file:
        file.seek(0)
    yield from _Rar(behind(file, place.at) if file and place and place.kind == "Rar" else body).members(budget)


UNNESTER = Container(("Rar",), open_rar)
