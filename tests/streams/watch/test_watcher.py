"""The watching thread: roots are visited once they are watched, limits end in polling, and bursts in a visit of the root."""

from __future__ import annotations

import errno
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from streams.watch import inotify, watcher
from streams.watch.mounts import Mounts
from streams.watch.pending import Batch
from streams.watch.places import Place, Reach
from streams.watch.polling import PolledTrees
from streams.watch.watcher import Watcher, WatchSettings

PATIENCE = 60.0


@contextmanager
def watching(reach: Reach, *places: Place, **settings: Any) -> Iterator[Watcher]:
    """Watch places."""
    made = Watcher(WatchSettings(**{"method": "events", "pause": 0.1, "interval": 0.2, **settings}), reach)
    made.start()
    made.watch(places)
    try:
        yield made
    finally:
        made.close()
        assert made.error is None


def until(made: Watcher, condition: Callable[[Batch], bool]) -> Batch:
    """Return the first batch for which a condition is true."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        batch = made.batches.get(timeout=PATIENCE)
        if condition(batch):
            return batch
    raise AssertionError("no such batch")


def visited(made: Watcher, *places: Place) -> None:
    """Wait until these roots were to be visited."""
    left = {place.url for place in places}
    while left:
        left.difference_update(made.batches.get(timeout=PATIENCE).roots)


@pytest.mark.parametrize("method", ["events", "poll"])
def test_root_is_visited_as_a_whole_once_and_then_by_its_changes(
    reach: Reach, top: Path, place: Callable[..., Place], method: str
) -> None:
    """The first batch is the root, since it may have changed before; after that a change is the folder and what has changed."""
    with watching(reach, place(top), method=method) as made:
        assert made.batches.get(timeout=PATIENCE) == Batch((), (place(top).url,))
        (top / "sub" / "new.txt").write_text("new")
        assert until(made, lambda batch: bytes(top / "sub") + b"/" in batch.paths).roots == ()


def test_burst_is_a_visit_of_the_root(reach: Reach, top: Path, place: Callable[..., Place]) -> None:
    """More changed paths than the setting `burst` become a visit of the root that has them, and of no other one."""
    other = top.parent / "other"
    other.mkdir()
    with watching(reach, place(top), place(other), burst=20, pause=0.5) as made:
        visited(made, place(top), place(other))
        for number in range(30):
            (top / f"folder {number}").mkdir()
        assert until(made, lambda batch: bool(batch.roots)).roots == (place(top).url,)


@pytest.fixture
def dropping(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Whether the kernel drops all notices."""
    dropping, read = threading.Event(), inotify.Inotify.read
    lost = inotify.Notice(-1, inotify.OVERFLOW, b"")

    def received(self: inotify.Inotify) -> list[inotify.Notice]:
        notices = read(self)
        return [lost] if notices and dropping.is_set() else notices

    monkeypatch.setattr(inotify.Inotify, "read", received)
    return dropping


def test_dropped_notices_end_in_a_visit(reach: Reach, top: Path, place: Callable[..., Place], dropping: threading.Event) -> None:
    """If the kernel drops notices, since its queue is full, the roots that it watches are visited."""
    with watching(reach, place(top)) as made:
        until(made, lambda batch: bool(batch.roots))
        dropping.set()
        (top / "new.txt").write_text("new")
        assert until(made, lambda batch: bool(batch.roots)).roots == (place(top).url,)


def test_folder_whose_notice_was_dropped_is_watched(
    reach: Reach, top: Path, place: Callable[..., Place], dropping: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that comes while the kernel drops notices is watched before its root is visited: later changes in it are found.

    So is one of a root of which a part is polled.
    """
    mounts = Mounts({b"/": "ext4", bytes(top / "sub"): "nfs4"})
    monkeypatch.setattr(Mounts, "read", lambda: mounts)
    with watching(reach, place(top), method="auto") as made:
        until(made, lambda batch: bool(batch.roots))
        dropping.set()
        (top / "new").mkdir()
        assert until(made, lambda batch: bool(batch.roots)).roots == (place(top).url,)
        dropping.clear()
        (top / "new" / "f.txt").write_text("f")
        until(made, lambda batch: bytes(top / "new") + b"/" in batch.paths)


def test_root_beyond_the_limit_of_watches_is_polled(
    reach: Reach, top: Path, place: Callable[..., Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A root that needs more watches than are left is polled, and a line names the limit to raise."""

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(inotify.Inotify, "add", full)
    with watching(reach, place(top)) as made:
        until(made, lambda batch: bool(batch.roots))
        line = made.lines.get(timeout=PATIENCE)
        assert re.search(r"\(raise (fs\.inotify\.max_user|user\.max_inotify)_watches, which is [\d,]+; a folder takes one\)", line)
        assert place(top).url in line
        assert (made.watched, made.polled) == (1, 1)
        (top / "sub" / "a.txt").write_text("changed")
        until(made, lambda batch: bytes(top / "sub") + b"/" in batch.paths)


def test_without_an_instance_everything_is_polled(
    reach: Reach, top: Path, place: Callable[..., Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the system has no instance of inotify left, roots are polled, and a line names the limit to raise."""

    def none(_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(inotify.Inotify, "__init__", none)
    with watching(reach, place(top)) as made:
        until(made, lambda batch: bool(batch.roots))
        line = made.lines.get(timeout=PATIENCE)
        assert re.search(
            r"\(raise (fs\.inotify\.max_user|user\.max_inotify)_instances, which is [\d,]+\); roots are read every", line
        )
        assert made.polled == 1


def test_silent_file_system_is_polled(
    reach: Reach, top: Path, place: Callable[..., Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `auto`, a root on a network file system is polled, and of a root on a disk the part that is on one."""
    mounts = Mounts({b"/": "ext4", bytes(top / "sub"): "nfs4"})
    monkeypatch.setattr(Mounts, "read", lambda: mounts)
    polled: list[tuple[bytes, bytes | None]] = []
    add = PolledTrees.add

    def noted(self: Any, place: Place, top: bytes | None = None) -> None:
        polled.append((place.path, top))
        add(self, place, top)

    monkeypatch.setattr(PolledTrees, "add", noted)
    with watching(reach, place(top), place(top / "sub"), method="auto") as made:
        visited(made, place(top), place(top / "sub"))
        assert made.polled == 2
    assert set(polled) == {(bytes(top / "sub"), None), (bytes(top), bytes(top / "sub"))}


def test_root_that_is_another_folder_is_watched(
    reach: Reach, top: Path, place: Callable[..., Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A root that is another folder, since a link above it leads elsewhere now, is watched anew and visited."""
    monkeypatch.setattr(watcher, "CHECK", 0.1)
    other, link = top.parent / "other", top.parent / "link"
    (other / "sub").mkdir(parents=True)
    link.symlink_to(top)
    root = place(link / "sub")
    with watching(reach, root) as made:
        visited(made, root)
        (top.parent / "next").symlink_to(other)
        (top.parent / "next").replace(link)
        visited(made, root)
        (other / "sub" / "new.txt").write_text("new")
        until(made, lambda batch: bytes(link / "sub") + b"/" in batch.paths)


def test_mounted_file_system_is_watched(
    reach: Reach, top: Path, place: Callable[..., Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    """When a file system is mounted on a root, the root is watched anew and visited."""
    kinds = {b"/": "ext4"}
    monkeypatch.setattr(Mounts, "read", lambda: Mounts(kinds))
    monkeypatch.setattr(watcher, "CHECK", 0.1)
    with watching(reach, place(top), method="auto") as made:
        until(made, lambda batch: bool(batch.roots))
        kinds[bytes(top)] = "nfs4"
        until(made, lambda batch: bool(batch.roots))
        assert made.polled == 1
