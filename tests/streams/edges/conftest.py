"""Places whose objects are opened."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.samples.make_corpus import write
from tests.streams.edges.object_places import Place, made


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample corpus."""
    folder = tmp_path_factory.mktemp("corpus")
    write(folder)
    return folder


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, corpus: Path) -> Iterator[Place]:
    """A place over the corpus, for tests that change nothing in it."""
    with made(tmp_path_factory.mktemp("place"), corpus) as place:
        yield place


@pytest.fixture
def place(tmp_path: Path, corpus: Path) -> Iterator[Place]:
    """A place with a corpus of its own."""
    shutil.copytree(corpus, tmp_path / "root")
    with made(tmp_path, tmp_path / "root") as place:
        yield place
