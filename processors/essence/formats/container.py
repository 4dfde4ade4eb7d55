"""What a container gives: members and readers, the errors that end them, and the budget of one root object."""

from __future__ import annotations

from typing import Literal, NamedTuple, Protocol

import msgspec

MemberKind = Literal["file", "folder", "symlink", "hardlink", "device"]
MAX_REASON = 200
FEW = 10_000
HOLES = 1 << 30
"""Bytes of holes in the sparse files of an object that are read; no more than `UnnestLimits.bytes`."""
SPARSE = 32
"""Bytes of an object for each of its members, where they are many: 60,000 that are empty take 6 bytes each, and 4 kB of the log."""


class UnnestError(Exception):
    """A file cannot be opened or read to its end: its author is at fault. `reason` has at most 200 characters."""

    def __init__(self, reason: str) -> None:
        self.reason = "".join(c if c.isprintable() else "?" for c in reason[:MAX_REASON])
        super().__init__(self.reason)


class Damaged(UnnestError):  # noqa: N818 - it says what the file is
    """The bytes break the rules of their format, or end too early."""


class Refused(UnnestError):  # noqa: N818 - the same
    """The bytes are sound, but not to be opened: encrypted, or of a method that is not known."""


class Empty(Refused):
    """A container without members: it is empty, or all of them are lost."""


class Exhausted(UnnestError):  # noqa: N818 - the same
    """The budget of the root object is spent: the walk ends here."""


class UnnestLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one root object may cost, with all that is nested in it. Sizes are bytes."""

    entries: int = 200_000
    """Members; beyond FEW, no more than one for each SPARSE bytes of the object."""
    bytes: int = 4 << 30
    """Bytes that come out of containers and encodings, each level counted."""
    ratio: int = 200
    """How many times its own size an object may give ..."""
    ratio_from: int = 64 << 20
    """... once it has given this much: small files of zeros are no bombs."""
    depth: int = 16
    """Containers and encodings inside each other."""
    names: int = 32 << 20
    memory: int = 8 << 20
    """A member's body up to this size is held in memory, above in an anonymous file."""
    member: int = 256 << 20
    """A body that must be held whole (a member that is summarized, a zip inside a tar) may have at most this size."""


class Budget:
    """The remaining allowance (members, bytes, depth, names) of one root object, which archives nested in it share."""

    def __init__(self, limits: UnnestLimits, size: int) -> None:
        self.limits = limits
        self.entries = self._members = min(limits.entries, max(FEW, size // SPARSE))
        self.names = limits.names
        self.given = 0
        self._holes = min(HOLES, limits.bytes)
        grown = max(size * limits.ratio, limits.ratio_from)
        self.bytes, self._which = min((limits.bytes, "bytes"), (grown, "ratio"))

    def spend(self, size: int) -> None:
        """Count bytes that came out. Raises Exhausted."""
        self.given += size
        if self.given > self.bytes:
            if self._which == "ratio":
                raise Exhausted(f"gives more than {self.limits.ratio} times its own size")
            raise Exhausted(f"gives more than {self.limits.bytes} bytes")

    def allow(self, size: int) -> bool:
        """Allow bytes beyond the limits, for holes of sparse files; return False, and allow none, for more than HOLES in all."""
        if size > self._holes:
            return False
        self._holes -= size
        self.bytes += size
        return True

    def enter(self, name: bytes) -> None:
        """Count a member. Raises Exhausted."""
        self.entries -= 1
        self.names -= len(name)
        if self.entries < 0:
            raise Exhausted(f"more than {self._members} members")
        if self.names < 0:
            raise Exhausted(f"names of more than {self.limits.names} bytes in all")

    def descend(self, depth: int) -> None:
        """Check a depth (1: the object's own container or encoding). Raises Damaged: what lies deeper is lost."""
        if depth > self.limits.depth:
            raise Damaged(f"nested more than {self.limits.depth} deep")


class Reader(Protocol):
    """A forward stream: `read` gives 1 to `size` bytes, b"" at the end only. It may raise UnnestError, and then does so again."""

    def read(self, size: int, /) -> bytes:
        """The next bytes."""
        ...


class Member(NamedTuple):
    """An entry of a container."""

    name: bytes
    """As stored, UTF-8 where its charset is known."""
    kind: MemberKind = "file"
    size: int = -1
    """As stated; -1: unknown."""
    mtime: int = 0
    """ns since the epoch; 0: unknown."""
    owner: str = ""
    group: str = ""
    mode: int = 0
    target: bytes = b""
    """Of a link: where it points to; of a device: its class and numbers."""
    body: Reader | None = None
    """Of a file: to be read before the next member is asked for, or not at all."""
    stated: str = ""
    """Its Content-Type, where the container states one."""
    url: str = ""
    """Where it was fetched from, if the container tells: its references are relative to that."""
