"""Inputs of the house tests: the files of the project, and its Python sources as syntax trees."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import pytest

GENERATED = {".git", ".venv", "__pycache__", "build", "harvest.egg-info", "harvest-data"}
"""Generated folders, which are not part of the project."""


def _listed(root: Path) -> list[Path]:
    """Return the files that git tracks; without git, all except those in generated folders."""
    answer = subprocess.run(["git", "-C", root, "ls-files", "-z"], check=False, capture_output=True)
    if answer.returncode == 0:
        return [root / name.decode() for name in answer.stdout.split(b"\0") if name]
    return [p for p in root.rglob("*") if not GENERATED & set(p.relative_to(root).parts) and "_cache" not in str(p)]


@pytest.fixture(scope="session")
def tracked(root: Path) -> Sequence[Path]:
    """The files of the project, absolute, in order."""
    return sorted(path for path in _listed(root) if path.is_file())


@pytest.fixture(scope="session")
def texts(root: Path, tracked: Sequence[Path]) -> Sequence[tuple[str, str]]:
    """The text files of the project, as (path relative to the root, content); samples are left out."""
    found = []
    for path in tracked:
        name = path.relative_to(root).as_posix()
        body = path.read_bytes()
        if b"\0" not in body and not (name.startswith("tests/samples/") and name.count("/") > 2):
            found.append((name, body.decode("utf-8", "replace")))
    return found


@pytest.fixture(scope="session")
def parsed(root: Path) -> Callable[[str], Sequence[tuple[str, ast.Module]]]:
    """Function from a folder to its Python sources, as (path relative to the root, syntax tree); samples are left out."""

    @cache
    def sources(folder: str) -> Sequence[tuple[str, ast.Module]]:
        paths = sorted(path.relative_to(root).as_posix() for path in (root / folder).rglob("*.py"))
        code = [name for name in paths if not (name.startswith("tests/samples/") and name.count("/") > 2)]
        return [(name, ast.parse((root / name).read_text("utf-8"), name)) for name in code]

    return sources
