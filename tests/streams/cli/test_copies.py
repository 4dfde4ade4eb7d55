"""Data folders that were moved about, and names of unusual length."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any


def urls(harvest: Any, query: str) -> list[str]:
    """The URLs that a search finds."""
    return [hit["url"] for hit in harvest.lines("search", query, "--data", "d")]


def test_an_index_of_another_day(harvest: Any, tree: Path) -> None:
    """An index that knows more than the log it stands beside is made anew from it."""
    harvest("gather", tree, "--data", "d")
    shutil.copytree("d", "older", ignore=shutil.ignore_patterns("index"))
    (tree / "later.txt").write_text("A capybara that the older log never saw.\n")
    harvest("gather", tree, "--data", "d")
    assert urls(harvest, "capybara")
    shutil.copytree(Path("d") / "index", Path("older") / "index")
    shutil.rmtree("d")
    Path("older").rename("d")
    (tree / "later.txt").unlink()
    harvest("gather", tree, "--data", "d")
    assert urls(harvest, "capybara") == []
    assert len(urls(harvest, "ishmael")) == 1


def test_a_large_file_with_a_long_name(harvest: Any, tree: Path) -> None:
    """A body in the blob store is read whatever the length of the record that names it."""
    deep = tree.joinpath(*["深" * 80] * 6)
    deep.mkdir(parents=True)
    (deep / "whale.txt").write_text("An axolotl begins this file.\n" + "Nothing more to be said.\n" * 4_000)
    harvest("gather", tree, "--data", "d")
    assert len(urls(harvest, "axolotl")) == 1
