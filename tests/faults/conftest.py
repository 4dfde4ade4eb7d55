"""A small tree of files, and the oracle of its content."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.faults.corpus import Corpus
from tests.faults.harness import MAX_FILE
from tests.faults.oracle import Oracle


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    """A tree of 200 files, some with bodies too large to be inline in the log."""
    os.makedirs(tmp_path / "tree")
    corpus = Corpus(os.fsencode(tmp_path / "tree"), 5, 200)
    corpus.build()
    for number in range(12):
        (tmp_path / "tree" / f"large{number}.txt").write_bytes(b"line %d of a large text\n" % number * 5_000)
    return corpus


@pytest.fixture
def oracle(corpus: Corpus) -> Oracle:
    """The expected content of the tree."""
    oracle = Oracle(corpus.root, MAX_FILE)
    oracle.look()
    return oracle
