"""The expected content of a tree of files, from a walk with the standard library; it shares only the form of URLs with Harvest."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import stat
import tarfile
import zipfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from processors.identity import file_url, member_path, member_url, oid, split_url


class Thing(NamedTuple):
    """One URL: MD5 and size of its stored bytes, the digest of its content if it has copies, and whether it is rejected."""

    md5: str
    size: int
    content: str = ""
    rejected: bool = False


Role = tuple[str, tuple[str, ...], int]


def thing(data: bytes, *, rejected: bool = False) -> Thing:
    """Build a thing from its complete bytes."""
    return Thing(hashlib.md5(data).hexdigest(), len(data), hashlib.sha256(data).hexdigest() if data else "", rejected)


LOST = Thing("", -1, "", True)
"""A member whose bytes could not be read completely."""


class Reading:
    """The current state of one object: its members by path, and whether all of it could be read."""

    def __init__(self, name: bytes, data: bytes) -> None:
        self.things: dict[str, Thing] = {}
        self.whole = True
        self._read(name, "", data)

    def _read(self, name: bytes, path: str, data: bytes) -> None:
        plain, sound = (unzipped(data), True) if not name.endswith(b".gz") else inflated(data)
        if name.endswith((b".tar", b".tar.gz")):
            sound &= self._members(path, tarred(plain))
        elif name.endswith(b".zip"):
            self._members(path, zipped(plain))
        self.whole &= sound
        self.things[path] = thing(data, rejected=not sound)

    def _members(self, path: str, members: Iterator[tuple[bytes, bytes | None] | None]) -> bool:
        """Record the members; return whether the container is complete."""
        seen: Counter[bytes] = Counter()
        for member in members:
            if member is None:
                return False
            name, data = member
            seen[name] += 1
            step = member_path(name + (b";%d" % seen[name] if seen[name] > 1 else b""))
            inner = f"{path}#{step}" if path else step
            if data is None:
                self.things[inner], self.whole = LOST, False
            elif not name.endswith(b"~"):
                self._read(name, inner, data)
        return True


def unzipped(data: bytes) -> bytes:
    """Return uncompressed data unchanged."""
    return data


def inflated(data: bytes) -> tuple[bytes, bool]:
    """The readable part of a gzip file, and whether it is complete."""
    decoder = zlib.decompressobj(31)
    plain = decoder.decompress(data)
    if decoder.eof:
        assert gzip.decompress(data) == plain
    return plain, decoder.eof


def tarred(data: bytes) -> Iterator[tuple[bytes, bytes | None] | None]:
    """Names and bodies of a tar: no body for a truncated member, and None at the end of a truncated tar."""
    try:
        with tarfile.open(fileobj=io.BytesIO(data), errorlevel=2) as tar:
            for info in tar:
                start = info.offset_data
                body = data[start : start + info.size]
                yield info.name.encode(), body if len(body) == info.size else None
            # A complete tar ends with two blocks of zeros.
            if not data[tar.offset :].startswith(bytes(512)):
                yield None
    except tarfile.ReadError:
        yield None


def zipped(data: bytes) -> Iterator[tuple[bytes, bytes | None] | None]:
    """Names and bodies of a zip; no body for a member with a wrong checksum."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for info in archive.infolist():
            try:
                yield info.filename.encode(), archive.read(info)
            except zipfile.BadZipFile:
                yield info.filename.encode(), None


class Oracle:
    """The tree at its last `look`, with the earlier content of objects that could not be read completely."""

    def __init__(self, root: bytes, max_file: int) -> None:
        self.root = root
        self.max_file = max_file
        self.objects: dict[str, dict[str, Thing]] = {}
        self.refused: set[str] = set()
        """Objects that are rejected without being read."""

    def look(self) -> None:
        """Walk the tree in its current state."""
        before, self.objects, self.refused = self.objects, {}, set()
        for top, folders, names in os.walk(self.root):
            for name in (*names, *(f for f in folders if os.path.islink(os.path.join(top, f)))):
                path = os.path.join(top, name)
                if not name.endswith(b"~"):
                    self._object(path, before.get(file_url(path), {}))

    def _object(self, path: bytes, before: dict[str, Thing]) -> None:
        url, found = file_url(path), os.lstat(path)
        if stat.S_ISLNK(found.st_mode):
            target = os.readlink(path)
            self.objects[url] = {"": thing(target)._replace(content="")}
        elif found.st_size > self.max_file:
            self.refused.add(url)
            self.objects[url] = before
        else:
            with open(path, "rb") as file:
                reading = Reading(os.path.basename(path), file.read())
            # A damaged object loses none of its earlier members.
            self.objects[url] = reading.things if reading.whole else {**before, **reading.things}

    def things(self) -> dict[str, Thing]:
        """Everything in the tree, by URL."""
        return {member_url(url, path): t for url, things in self.objects.items() for path, t in things.items()}

    def rejected(self) -> set[tuple[str, str]]:
        """(object URL, path) of everything that is currently rejected."""
        return {split_url(url) for url, t in self.things().items() if t.rejected} | {(url, "") for url in self.refused}

    def roles(self, gatherer: str) -> dict[str, Role]:
        """The role of each URL that has copies or is one: OID of the canonical holder, copies by rank, number of copies."""
        families: dict[tuple[str, int], list[str]] = defaultdict(list)
        for url, t in self.things().items():
            if t.content:
                families[t.content, t.size].append(url)
        roles: dict[str, Role] = {}
        for urls in families.values():
            first, *others = sorted(urls, key=lambda u: ("#" in u, len(u.encode()), u))
            if others:
                roles[first] = ("", tuple(others[:100]), len(others))
                roles |= {url: (oid(gatherer, first), (), 0) for url in others}
        return roles
