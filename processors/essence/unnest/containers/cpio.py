"""cpio in four formats: newc with and without checksum (SVR4), odc (POSIX.1-1988), and binary of either byte order.

A file with several names has its content at the last of them only (newc): the earlier names wait until the end, when the target of
their links is known. An invalid header is damage, and everything after it is lost. Data after the trailer is padding.
"""

from __future__ import annotations

import io
import stat
import struct
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from processors.essence.formats.container import Budget, Damaged, Member, MemberKind, Reader
from processors.essence.formats.streams import Slice, exact, need, skip
from processors.essence.unnest import Container

TRAILER = b"TRAILER!!!"
MAX_NAME = 1 << 16
MAX_TARGET = 1 << 16
NEWC, CRC, ODC = b"070701", b"070702", b"070707"
STRIPPED = b"07070X"
"""rpm's variant for files of more than 4 GB: sizes and names are in the header of the rpm."""
MAX_WAITING = 1 << 20
"""Maximum bytes of names without content that wait for the end; further ones are given as empty files, as they are stored."""
HEAD = 200
"""Bytes counted for a waiting name besides the name itself."""

KINDS: Mapping[int, MemberKind] = {stat.S_IFDIR: "folder", stat.S_IFLNK: "symlink", stat.S_IFREG: "file", 0: "file"}
DEVICES = {stat.S_IFCHR: b"character device", stat.S_IFBLK: b"block device", stat.S_IFIFO: b"fifo", stat.S_IFSOCK: b"socket"}


class Header(NamedTuple):
    """Header of a member."""

    inode: tuple[int, ...]
    """Identifies a file with several names, of which only one has the content; else empty."""
    mode: int
    owner: int
    group: int
    mtime: int
    size: int
    named: int
    """Bytes of the name, including its NUL."""
    device: tuple[int, int]
    align: int
    """Alignment of name and body in bytes."""
    before: int
    """Bytes of the header, which count for the padding of the name."""
    check: int = -1
    """Sum of all bytes of the body; -1: not stated."""


def _numbers(digits: bytes, width: int, base: int) -> list[int]:
    """Parse numeric fields of equal width. Raises Damaged."""
    # int() would also accept signs, spaces and underscores.
    if digits.strip(b"0123456789abcdefABCDEF"):
        raise Damaged("damaged header: no number where one belongs")
    try:
        return [int(digits[at : at + width], base) for at in range(0, len(digits), width)]
    except ValueError:
        raise Damaged("damaged header: no number where one belongs") from None


def _newc(rest: bytes, *, sums: bool) -> Header:
    n = _numbers(rest, 8, 16)
    inode = (n[0], n[7], n[8]) if n[4] > 1 else ()
    return Header(inode, n[1], n[2], n[3], n[5], n[6], n[11], (n[9], n[10]), 4, 110, n[12] if sums else -1)


def _odc(rest: bytes) -> Header:
    _, _, mode, owner, group, _, rdev = _numbers(rest[:42], 6, 8)
    (mtime,), (named,), (size,) = _numbers(rest[42:53], 11, 8), _numbers(rest[53:59], 6, 8), _numbers(rest[59:], 11, 8)
    return Header((), mode, owner, group, mtime, size, named, (rdev >> 8, rdev & 255), 1, 76)


def _binary(rest: bytes, order: str) -> Header:
    _, _, mode, owner, group, _, rdev, m1, m2, named, s1, s2 = struct.unpack(order + "12H", rest)
    # The upper half of 32-bit numbers comes first, whatever the byte order (PDP-11).
    return Header((), mode, owner, group, m1 << 16 | m2, s1 << 16 | s2, named, (rdev >> 8, rdev & 255), 2, 26)


def _header(body: Reader) -> Header:
    """Read the next header. Raises Damaged."""
    magic = need(body, 2, "the trailer is missing")
    if magic in (b"\xc7\x71", b"\x71\xc7"):
        return _binary(need(body, 24, "a header ends early"), "<" if magic == b"\xc7\x71" else ">")
    magic += exact(body, 4)
    if magic in (NEWC, CRC):
        return _newc(need(body, 104, "a header ends early"), sums=magic == CRC)
    if magic == ODC:
        return _odc(need(body, 70, "a header ends early"))
    if magic == STRIPPED:
        raise Damaged("a payload without names, for files of more than 4 GB")
    raise Damaged("damaged header: no mark of a member")


class _Summed:
    """A body that is verified against the sum of its bytes."""

    def __init__(self, reader: Reader, check: int) -> None:
        self._reader = reader
        self._check = check
        self._sum = 0

    def read(self, size: int, /) -> bytes:
        data = self._reader.read(size)
        self._sum += sum(data)
        if not data and self._sum & 0xFFFFFFFF != self._check:
            raise Damaged("its checksum fails")
        return data


class _Waiting:
    """Names without content that wait until it is known which other name has it."""

    def __init__(self) -> None:
        self._members: list[tuple[tuple[int, ...], Member]] = []
        self._named: dict[tuple[int, ...], bytes] = {}
        self._room = MAX_WAITING

    def keeps(self, head: Header, member: Member) -> bool:
        """Whether a member is held back until the end."""
        self._room -= len(member.name) + HEAD if head.inode else 0
        if not head.inode or member.kind != "file" or self._room < 0:
            return False
        if head.size:
            self._named.setdefault(head.inode, member.name)
            return False
        self._members.append((head.inode, member))
        return True

    def given(self, *, damaged: bool) -> Iterator[Member]:
        """Yield the held members in order: links, and files with several names that are empty or whose content is lost."""
        for inode, member in self._members:
            if target := self._named.get(inode, b""):
                yield member._replace(kind="hardlink", target=target, body=None)
            else:
                yield member._replace(size=-1, body=Slice(io.BytesIO(), 1)) if damaged else member


def _member(name: bytes, head: Header, body: Slice) -> Member:
    kind, target = KINDS.get(stat.S_IFMT(head.mode), "device"), b""
    if kind == "symlink":
        target = exact(body, min(head.size, MAX_TARGET))
    elif kind == "device":
        target = DEVICES.get(stat.S_IFMT(head.mode), b"device")
        target += b" %d:%d" % head.device if stat.S_IFMT(head.mode) in (stat.S_IFCHR, stat.S_IFBLK) else b""
    reader: Reader = body if head.check < 0 else _Summed(body, head.check)
    return Member(
        name=name,
        kind=kind,
        size=head.size if kind == "file" else 0,
        mtime=head.mtime * 1_000_000_000,
        owner=str(head.owner),
        group=str(head.group),
        mode=stat.S_IMODE(head.mode),
        target=target,
        body=reader if kind == "file" else None,
    )


def _members(body: Reader, waiting: _Waiting) -> Iterator[Member]:
    while True:
        head = _header(body)
        if not 0 < head.named <= MAX_NAME:
            raise Damaged(f"damaged header: a name of {head.named} bytes")
        name = need(body, head.named, "a name ends early").partition(b"\0")[0]
        if name == TRAILER and not head.size:
            return
        skip(body, -(head.before + head.named) % head.align, "a name ends early")
        # HP's cpio writes the device numbers into the size field.
        size = 0 if stat.S_IFMT(head.mode) in DEVICES else head.size
        content = Slice(body, size)
        member = _member(name, head, content)
        if not waiting.keeps(head, member):
            yield member
        content.drain()
        skip(body, -size % head.align, "a body ends early")


def open_cpio(body: Reader, budget: Budget) -> Iterator[Member]:
    """Yield the members of an archive. Raises Damaged."""
    waiting, damage = _Waiting(), None
    try:
        yield from _members(body, waiting)
    except Damaged as error:
        damage = error
    yield from waiting.given(damaged=damage is not None)
    if damage:
        raise damage


UNNESTER = Container(("Cpio",), open_cpio)
