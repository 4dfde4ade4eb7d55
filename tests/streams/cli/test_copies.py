"""Data folders that were copied or moved, and very long names."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any


def urls(harvest: Any, query: str) -> list[str]:
    """The URLs of the hits of a query."""
    return [hit["url"] for hit in harvest.lines("search", query, "--data", "d")]


def test_index_ahead_of_its_log_is_rebuilt(harvest: Any, tree: Path) -> None:
    """An index with offsets beyond the end of its log is rebuilt from the log."""
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


def test_large_file_with_a_long_name_is_indexed(harvest: Any, tree: Path) -> None:
    """A body in the blob store is read however long the record with its digest is."""
    deep = tree.joinpath(*["深" * 80] * 6)
    deep.mkdir(parents=True)
    (deep / "whale.txt").write_text("An axolotl begins this file.\n" + "Nothing more to be said.\n" * 4_000)
    harvest("gather", tree, "--data", "d")
    assert len(urls(harvest, "axolotl")) == 1
