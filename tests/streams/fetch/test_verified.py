"""Files that are sent only as they were gathered."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from pathlib import Path
from typing import BinaryIO

import pytest

from processors.identity import file_url
from schemas.records import FetchRequest, Root
from streams.fetch.verified import ChangedError, ContentDigest, open_regular, verified

DATA = b"words " * 500_000


def content(data: bytes) -> ContentDigest:
    """Return the digests of bytes."""
    return ContentDigest(len(data), hashlib.md5(data).hexdigest(), hashlib.sha256(data).hexdigest())


def opened(path: Path) -> BinaryIO:
    """Open a file below its folder."""
    root = Root(url=file_url(os.fsencode(path.parent), folder=True), run="1")
    return open_regular(FetchRequest(url=file_url(os.fsencode(path)), host="", version=1, time=1, root=root))


def test_unchanged_file_is_read_whole_and_by_ranges(tmp_path: Path) -> None:
    """A verified file gives its bytes from the start, and can be sought in."""
    path = tmp_path / "f"
    path.write_bytes(DATA)
    with verified(opened(path), content(DATA)) as file:
        assert file.read() == DATA
        file.seek(6)
        assert file.read(5) == b"words"
        assert file.seek(-6, os.SEEK_END) == len(DATA) - 6
        assert file.read() == b"words "


@pytest.mark.parametrize("other", [DATA[:-1], DATA + b"x", b"Words " + DATA[6:]])
def test_other_content_is_refused(other: bytes, tmp_path: Path) -> None:
    """A file of another length, or of other bytes, is not sent."""
    path = tmp_path / "f"
    path.write_bytes(other)
    file = opened(path)
    with pytest.raises(ChangedError):
        verified(file, content(DATA))
    assert file.closed


@pytest.mark.parametrize("change", [lambda f: f.truncate(10), lambda f: f.write(b"W"), lambda f: f.seek(0, 2) and f.write(b"x")])
def test_change_after_verification_ends_reading(change: object, tmp_path: Path) -> None:
    """A file that is truncated, overwritten or extended while it is sent gives an error instead of other bytes."""
    path = tmp_path / "f"
    path.write_bytes(DATA)
    os.utime(path, (1, 1))
    with verified(opened(path), content(DATA)) as file:
        with path.open("r+b") as writer:
            assert callable(change)
            change(writer)
        with pytest.raises(OSError, match="changed") as raised:
            file.read()
        assert raised.value.errno == errno.ESTALE


@pytest.mark.parametrize("kind", [stat.S_IFIFO, stat.S_IFSOCK, stat.S_IFDIR, stat.S_IFLNK])
def test_other_kinds_of_files_are_not_opened(kind: int, tmp_path: Path) -> None:
    """A fifo, a socket, a folder or a link in place of the file is not opened, and blocks nothing."""
    path = tmp_path / "f"
    if kind == stat.S_IFDIR:
        path.mkdir()
    elif kind == stat.S_IFLNK:
        path.symlink_to("/etc/passwd")
    else:
        os.mknod(path, 0o644 | kind)
    with pytest.raises(ChangedError):
        opened(path)
