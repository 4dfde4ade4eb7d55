"""Both kinds of watching find what is written, moved and removed below a root, and watch only what the walk enters."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from streams.watch.events import EventTrees
from streams.watch.inotify import Inotify
from streams.watch.places import Place, Reach
from streams.watch.polling import PolledTrees

Trees = EventTrees | PolledTrees


@pytest.fixture(params=[EventTrees, PolledTrees])
def trees(request: Any, reach: Reach) -> Iterator[Trees]:
    """An empty set of watched trees, of either kind."""
    made: Trees = request.param(reach)
    yield made
    if isinstance(made, EventTrees):
        made.close()


def names(trees: Trees, base: Path) -> set[str]:
    """Return what has changed, relative to a folder."""
    return {os.fsdecode(os.path.relpath(path, bytes(base))) + "/" * path.endswith(b"/") for path in trees.take()}


def test_written_file_is_a_change(trees: Trees, top: Path, place: Callable[..., Place]) -> None:
    """A file that is written, twice within a second, is found each time: itself, or by its folder."""
    trees.add(place(top))
    for content in ("b", "c"):
        (top / "sub" / "a.txt").write_text(content * 3)
        assert names(trees, top) & {"sub/a.txt", "sub/"}
    assert names(trees, top) == set()


def test_new_moved_and_removed_files_are_changes_of_their_folders(trees: Trees, top: Path, place: Callable[..., Place]) -> None:
    """What comes, is moved or goes is found as a change of each folder concerned."""
    trees.add(place(top))
    (top / "new.txt").write_text("new")
    assert "./" in names(trees, top)
    (top / "new.txt").rename(top / "sub" / "moved.txt")
    assert {"./", "sub/"} <= names(trees, top)
    (top / "sub" / "moved.txt").unlink()
    assert "sub/" in names(trees, top)


def test_new_tree_is_watched_to_its_leaves(trees: Trees, top: Path, place: Callable[..., Place]) -> None:
    """Folders that come are watched too: a file that is written there later is found, and after the tree was moved as well."""
    trees.add(place(top))
    (top / "x" / "y").mkdir(parents=True)
    assert "./" in names(trees, top)
    (top / "x" / "y" / "f.txt").write_text("f")
    assert "x/y/" in names(trees, top)
    (top / "x").rename(top / "z")
    assert "./" in names(trees, top)
    (top / "z" / "y" / "g.txt").write_text("g")
    found = names(trees, top)
    assert "z/y/" in found
    assert not {path for path in found if path.startswith("x")}


def test_replaced_folder_is_a_change_of_itself(trees: Trees, top: Path, place: Callable[..., Place]) -> None:
    """A folder that is replaced by another one of its name is listed, and so are the folders in it: their names may be known."""
    (top / "sub" / "deep").mkdir()
    trees.add(place(top))
    shutil.copytree(top / "sub", top.parent / "other")
    (top.parent / "other" / "deep" / "b.txt").write_text("b")
    shutil.rmtree(top / "sub")
    (top.parent / "other").rename(top / "sub")
    assert {"./", "sub/", "sub/deep/"} <= names(trees, top)


def test_links_and_dropped_names_are_not_watched(trees: Trees, top: Path, place: Callable[..., Place]) -> None:
    """Changes behind a link, in the insides of version control, of backups and in the data folder are none."""
    outside, data = top.parent / "outside", top.parent / "data"
    outside.mkdir()
    (top / "link").symlink_to(outside)
    (top / ".git").mkdir()
    data.rename(top / "data")
    trees.add(place(top))
    (outside / "f.txt").write_text("f")
    (top / ".git" / "HEAD").write_text("ref")
    (top / "sub" / "a.txt~").write_text("backup")
    (top / "data" / "store.sqlite").write_text("rows")
    assert names(trees, top) == set()
    (top / "link").unlink()
    assert "./" in names(trees, top)


def test_hidden_and_foreign_names_are_watched(trees: Trees, top: Path, place: Callable[..., Place]) -> None:
    """Hidden folders are watched as the walk enters them, and names that are not UTF-8 are found as they are."""
    (top / ".hidden").mkdir()
    strange = bytes(top) + b"/caf\xe9"
    os.mkdir(strange)
    trees.add(place(top))
    (top / ".hidden" / "f.txt").write_text("f")
    Path(os.fsdecode(strange + b"/n\xef.txt")).write_text("n")
    assert {bytes(top) + b"/.hidden/", strange + b"/"} <= set(trees.take())


def test_folders_below_the_depth_of_the_root_are_not_watched(trees: Trees, top: Path, place: Callable[..., Place]) -> None:
    """A root with a limit of depth is watched down to it."""
    (top / "1" / "2").mkdir(parents=True)
    trees.add(place(top, depth=1))
    (top / "1" / "2" / "f.txt").write_text("f")
    assert names(trees, top) == set()
    (top / "1" / "f.txt").write_text("f")
    assert "1/" in names(trees, top)


def test_root_that_is_one_file_is_watched(trees: Trees, top: Path, place: Callable[..., Place]) -> None:
    """A root that is a file is found when it is written, replaced and removed; what is beside it is no change."""
    file = top / "sub" / "a.txt"
    trees.add(place(file))
    (top / "sub" / "b.txt").write_text("b")
    assert trees.take() == []
    file.write_text("changed")
    assert trees.take() == [bytes(file)]
    (top / "sub" / "b.txt").rename(file)
    assert trees.take() == [bytes(file)]
    file.unlink()
    assert trees.take() == [bytes(file)]


def test_root_that_goes_and_comes_back_is_watched(trees: Trees, top: Path, place: Callable[..., Place]) -> None:
    """A root that is removed is a change of itself; made again, it is watched as before."""
    trees.add(place(top))
    shutil.rmtree(top)
    assert "./" in names(trees, top)
    (top / "sub").mkdir(parents=True)
    assert "./" in names(trees, top)
    (top / "sub" / "new.txt").write_text("new")
    assert "sub/" in names(trees, top)


def test_dropped_root_is_not_watched_any_more(trees: Trees, top: Path, place: Callable[..., Place]) -> None:
    """After a root was dropped, changes below it are none, but for what another root has."""
    whole, part = place(top), place(top / "sub")
    trees.add(whole)
    trees.add(part)
    trees.drop(whole)
    (top / "new.txt").write_text("new")
    assert names(trees, top) == set()
    (top / "sub" / "new.txt").write_text("new")
    assert "sub/" in names(trees, top)


def test_new_folder_without_a_watch_left_is_reported(
    reach: Reach, top: Path, place: Callable[..., Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A root for whose new folder the system has no watch left is named, so that it can be polled."""
    made = EventTrees(reach)
    made.add(place(top))

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Inotify, "add", full)
    (top / "more").mkdir()
    made.take()
    assert made.full == {place(top).url}
    made.close()


def test_renewed_root_has_the_watches_of_its_folders(reach: Reach, top: Path, place: Callable[..., Place]) -> None:
    """Watching a root again ends the watches of folders that have left it unnoticed, and names those that have other paths."""
    trees = EventTrees(reach)
    (top / "out").mkdir()
    trees.add(place(top))
    (top / "sub").rename(top / "new")
    (top / "out").rename(top.parent / "out")
    trees._inotify.read()
    trees.renew(place(top))
    assert set(trees._paths.values()) == {(bytes(top),), (bytes(top / "new"),)}
    assert len(trees) == 2
    trees.close()
