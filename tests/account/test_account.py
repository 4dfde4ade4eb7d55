from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.bench import corpora
from tests.bench.changes import Expected, change
from tests.bench.outcomes import outcomes
from tests.bench.tree import Run, gather

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("account")]

MACHINE = 250
"""Number of files taken from the machine's documentation, if it has any."""
CHANGES = 20


class Gathered(NamedTuple):
    """A tree, its data folder after one run, and the result of that run."""

    tree: Path
    data: Path
    run: Run


@pytest.fixture(scope="module")
def gathered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gathered]:
    """Some of the machine's documentation, synthetic files, and files that cause trouble, gathered once."""
    work = tmp_path_factory.mktemp("account")
    tree = corpora.synthetic(work / "tree", 150)
    corpora.copied(corpora.chosen(corpora.found(corpora.DOCUMENTATION), MACHINE), tree / "machine")
    corpora.troubled(tree / "troubled")
    yield Gathered(tree, work / "data", gather([tree], work / "data"))
    shutil.rmtree(work)


def test_every_path_has_exactly_one_outcome(gathered: Gathered) -> None:
    """Every file and link of the tree is either summarized, refused by a rule, or rejected; no other object has a summary."""
    paths = corpora.found([gathered.tree])
    found = outcomes(gathered.data, paths)
    assert not found.wrong
    assert found.summarized + found.refused.total() + found.rejected.total() == len(paths)


def test_files_that_cause_trouble_have_the_intended_outcome(gathered: Gathered) -> None:
    """Files that cause trouble are refused by the intended rule or rejected for the intended reason; the others are summarized."""
    paths = corpora.found([gathered.tree / "troubled"])
    found = outcomes(gathered.data, paths)
    assert found.refused == {"editor-backup": 1, "stop-name": 1, "version-control": 1, "object-beside-source": 1}
    assert found.rejected.total() == 3
    assert found.summarized == len(paths) - 7


def test_path_without_an_outcome_is_reported(gathered: Gathered) -> None:
    """A path that was never gathered is reported as one without an outcome, and an object without a path as a stranger."""
    paths = corpora.found([gathered.tree / "part-0"])
    found = outcomes(gathered.data, [*paths, b"/never/gathered"])
    assert found.nothing == ["file:///never/gathered"]
    assert len(found.strangers) + len(paths) == outcomes(gathered.data, corpora.found([gathered.tree])).summarized + 3


def test_second_run_reads_only_changes(gathered: Gathered) -> None:
    """20 files each changed, added, removed and renamed: the second run reads only these (40 added, 20 changed, 40 removed)."""
    expected = change(corpora.found([gathered.tree]), CHANGES)
    assert expected == Expected(added=40, changed=20, removed=40)
    second = gather([gathered.tree], gathered.data).said
    assert Expected(added=second["added"], changed=second["changed"], removed=second["removed"]) == expected
    assert second["objects"] == 60
    assert second["unchanged"] == gathered.run.said["objects"] - 60
    assert not outcomes(gathered.data, corpora.found([gathered.tree])).wrong
