"""Watched trees in a temporary folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from processors.essence.selection import Selection
from processors.identity import file_url
from streams.watch.places import Place, Reach


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """The folder of a root, with a file in a subfolder, beside a data folder."""
    (tmp_path / "data").mkdir()
    (tmp_path / "top" / "sub").mkdir(parents=True)
    (tmp_path / "top" / "sub" / "a.txt").write_text("a")
    return tmp_path / "top"


@pytest.fixture
def reach(top: Path) -> Reach:
    """What is watched with the default selection."""
    return Reach(Selection(), top.parent / "data")


@pytest.fixture
def place() -> Callable[..., Place]:
    """A function that returns a path as a place."""

    def of(path: Path, depth: int = -1) -> Place:
        return Place(file_url(bytes(path), folder=path.is_dir()), bytes(path), depth)

    return of
