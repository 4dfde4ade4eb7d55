"""File systems that report only a part of their changes are known by the type of the nearest mount."""

from __future__ import annotations

import pytest

from streams.watch.mounts import Mounts

MOUNTS = Mounts(
    {b"/": "ext4", b"/data": "nfs4", b"/data/local": "xfs", b"/mnt/a b": "fuse.sshfs", b"/mnt/a b/c": "cifs", b"/mnt/ab": "9p"}
)


@pytest.mark.parametrize(
    ("path", "silent"),
    [(b"/", False), (b"/srv/x", False), (b"/data", True), (b"/data/me/x", True), (b"/data/local/x", False), (b"/databank", False)],
)
def test_type_of_the_nearest_mount_decides(path: bytes, silent: bool) -> None:
    """A path is polled if the mount point nearest above it is that of a network file system, of FUSE or of layers."""
    assert MOUNTS.is_silent(path) is silent


def test_silent_file_systems_below_a_root_are_found() -> None:
    """Of a root on a disk the mount points of silent file systems below are returned, each with what is below it once."""
    assert MOUNTS.silent_below(b"/mnt") == [b"/mnt/a b", b"/mnt/ab"]
    assert MOUNTS.silent_below(b"/mnt/a") == []


def test_mounts_below_a_root_are_part_of_its_state() -> None:
    """What a root depends on differs once a file system is mounted below it, and not for mounts elsewhere."""
    before = Mounts({b"/": "ext4"})
    assert before.about(b"/srv") == Mounts({b"/": "ext4", b"/mnt": "xfs", b"/srvs": "xfs"}).about(b"/srv")
    assert before.about(b"/srv") != Mounts({b"/": "ext4", b"/srv/disk": "ext4"}).about(b"/srv")
    assert before.about(b"/srv") != Mounts({b"/": "ext4", b"/srv": "xfs"}).about(b"/srv")


def test_mounted_file_systems_of_this_machine_are_read() -> None:
    """The mount table of the system is read, with the root file system in it."""
    assert Mounts.read().kind_of(b"/")
