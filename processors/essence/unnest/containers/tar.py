"""tar in all dialects: V7, ustar, pax (POSIX.1-2017), GNU with long names and sparse files of four kinds, star, Solaris.

A header with a wrong checksum is damage: the following blocks are searched for the next valid header, and the damage is raised at
the end. The same holds for an archive without its end mark of zeros: how much it has lost is unknown.

A hard link has the content of its target, where that is available (`_tar_links`). Holes of sparse files are no expansion.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from processors.essence.formats.container import Budget, Damaged, Member, MemberKind, Reader, Refused
from processors.essence.formats.streams import Failing, Slice, exact, need, skip
from processors.essence.unnest import Container
from processors.essence.unnest.containers import _tar_header as header
from processors.essence.unnest.containers._tar_header import BLOCK, Header, Segments, Sparse
from processors.essence.unnest.containers._tar_links import Links

ZERO = bytes(BLOCK)
MAX_EXTENDED = 1 << 20
"""Maximum bytes of one extended header or long name; a larger one is damage."""
KINDS: Mapping[bytes, MemberKind] = {
    b"1": "hardlink",
    b"2": "symlink",
    b"3": "device",
    b"4": "device",
    b"5": "folder",
    b"6": "device",
    b"D": "folder",
}
DEVICES = {b"3": "character device", b"4": "block device", b"6": "fifo"}
NO_DATA = (b"1", b"2", b"3", b"4", b"5", b"6")
"""Types that have no data, whatever size they state."""
NO_MEMBER = (b"V", b"A", b"E", b"I", b"N")
"""Volume labels, and records of Solaris and of old GNU tars: their data is skipped."""
ASKED = frozenset(
    b"path linkpath size mtime uname gname GNU.sparse.name GNU.sparse.realsize GNU.sparse.size GNU.sparse.major".split()
)
"""Keys of extended headers that are used, and may occur in global ones."""

Records = Sequence[tuple[bytes, bytes]]


class _Tar:
    """Reads one tar; holds the values of its extended headers so far, and the damage found."""

    def __init__(self, body: Reader, budget: Budget | None = None) -> None:
        self._body = body
        self._budget = budget
        self._links = Links(body)
        self._globals: dict[bytes, bytes] = {}
        self._local: Records = ()
        self._name: bytes | None = None
        self._target: bytes | None = None
        self._problem = ""
        self._begun = False
        """Whether anything but zeros was read."""
        self._padding = 0
        """Bytes between a body and the next header."""

    def members(self) -> Iterator[Member]:
        """Yield every member in order. Raises Damaged at the end."""
        while (block := self._header()) is not None:
            try:
                head = header.parse(block)
            except Damaged as error:
                self._note(error.reason)
                continue
            if head.kind in (b"x", b"X", b"g", b"L", b"K"):
                self._extend(head)
            elif head.kind in NO_MEMBER:
                self._pass(head.size)
            else:
                yield from self._member(head)
                self._local, self._name, self._target = (), None, None
        if self._problem:
            raise Damaged(self._problem)

    def _note(self, problem: str) -> None:
        self._problem = self._problem or problem

    def _header(self) -> bytes | None:
        """Return the next block that is a valid header; None at the end. Raises Damaged if the stream ends without an end mark."""
        while True:
            padding, self._padding = self._padding, 0
            block = exact(self._body, padding + BLOCK)
            if len(block) < padding:
                raise Damaged("truncated: a body ends early")
            block = block[padding:]
            if block == ZERO and (self._begun or not (block := self._leading())):
                return None
            self._begun = True
            if len(block) < BLOCK:
                raise Damaged(self._problem or "truncated: the end of the archive is missing")
            if header.checked(block):
                return block
            self._note("damaged header: its checksum fails")

    def _leading(self) -> bytes:
        """Return the first block behind zeros at the start of the file; b"" if nothing else is in it."""
        block = ZERO
        while block == ZERO:
            block = exact(self._body, BLOCK)
        return block if block.strip(b"\0") else b""

    def _pass(self, size: int) -> None:
        skip(self._body, size + -size % BLOCK, "a body ends early")

    def _extend(self, head: Header) -> None:
        """Process a header with metadata for the next member, or for all that follow."""
        if head.size > MAX_EXTENDED:
            self._note(f"an extended header of more than {MAX_EXTENDED} bytes")
            return self._pass(head.size)
        data = need(self._body, head.size + -head.size % BLOCK, "an extended header ends early")[: head.size]
        try:
            self._say(head.kind, data)
        except Damaged as error:
            self._note(error.reason)

    def _say(self, kind: bytes, data: bytes) -> None:
        if kind == b"L":
            self._name = header.text(data)
        elif kind == b"K":
            self._target = header.text(data)
        elif kind == b"g":
            # Copied for each member, so only the keys in use are kept.
            self._globals |= {key: value for key, value in header.pax_records(data) if key in ASKED}
            # A global header may be repeated without limit: it must not fill the memory.
            if sum(map(len, self._globals.values())) > MAX_EXTENDED:
                self._globals.clear()
                self._note("global headers of too many bytes")
        else:
            self._local = header.pax_records(data)

    def _member(self, head: Header) -> Iterator[Member]:
        """Yield the member of a header; the unread rest of its body is skipped when the next one is requested."""
        # An empty value cancels an earlier one (POSIX.1-2017, pax Extended Header).
        said = self._globals or self._local
        said = {key: value for key, value in {**self._globals, **dict(self._local)}.items() if value} if said else {}
        size = 0 if head.kind in NO_DATA else self._size(head, said)
        segments: Segments | None = None
        if head.kind == b"S":
            segments = header.more_segments(self._body, head.sparse) if head.extended else head.sparse
        body = Slice(self._body, size)
        member = self._described(head, said, body, segments)
        yield member
        if body.left:
            body.drain()
        self._links.passed(member.name, member.body, member.size)
        # Read together with the next header: a read of its own costs as much as a small body.
        self._padding = -size % BLOCK

    def _size(self, head: Header, said: Mapping[bytes, bytes]) -> int:
        """Return the number of bytes that follow; a valid size in an extended header takes precedence."""
        try:
            return header.size(said[b"size"]) if b"size" in said else head.size
        except Damaged as error:
            self._note(error.reason)
            return head.size

    def _described(self, head: Header, said: Mapping[bytes, bytes], body: Slice, segments: Segments | None) -> Member:
        name = said.get(b"GNU.sparse.name") or said.get(b"path") or self._name or head.name
        kind = KINDS.get(head.kind, "file")
        if kind == "file" and name.endswith(b"/"):
            kind = "folder"
        target = said.get(b"linkpath") or self._target or head.target
        if kind == "device":
            target = DEVICES[head.kind].encode() + (b" %d:%d" % head.device if head.kind != b"6" else b"")
        reader: Reader | None = None
        size = 0
        if kind == "file":
            try:
                reader, size = self._content(head, said, body, segments)
                reader = self._links.passing(name, body) if reader is body else reader
            except Damaged as error:
                self._note(error.reason)
                reader = Failing(error)
        elif kind == "hardlink" and (content := self._links.linked(name, target)):
            reader, size = content
        return Member(
            name=name,
            kind=kind,
            size=size,
            mtime=header.nanoseconds(said[b"mtime"]) if b"mtime" in said else head.mtime * 1_000_000_000,
            owner=said.get(b"uname", b"").decode("utf-8", "replace") or head.owner,
            group=said.get(b"gname", b"").decode("utf-8", "replace") or head.group,
            mode=head.mode,
            target=target if kind in ("symlink", "hardlink", "device") else b"",
            body=reader,
        )

    def _content(self, head: Header, said: Mapping[bytes, bytes], body: Slice, segments: Segments | None) -> tuple[Reader, int]:
        """Return the body of a file and its size: expanded if it is sparse."""
        real = said.get(b"GNU.sparse.realsize") or said.get(b"GNU.sparse.size")
        size = header.size(real) if real else head.real
        if segments is None and said.get(b"GNU.sparse.major") == b"1":
            segments = header.data_segments(body)
        elif segments is None and any(k in said for k in (b"GNU.sparse.map", b"GNU.sparse.numblocks", b"GNU.sparse.offset")):
            segments = header.pax_segments(self._local)
        if segments is None:
            return body, body.left
        holes = size - sum(length for _, length in segments)
        if self._budget and holes > 0 and not self._budget.allow(holes):
            return Failing(Refused(f"a sparse file with {holes} bytes of holes")), size
        return Sparse(body, segments, size), size


def open_tar(body: Reader, budget: Budget) -> Iterator[Member]:
    """Yield the members of a tar. Raises Damaged at the end if any damage was found."""
    return _Tar(body, budget).members()


UNNESTER = Container(("Tar",), open_tar)
