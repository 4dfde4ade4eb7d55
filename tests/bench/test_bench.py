from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.bench.__main__ import GROUPS, main
from tests.bench.changes import Expected, change
from tests.bench.figures import Figure, Goal, shown
from tests.bench.memory import Sampled, family, pss


@pytest.mark.slow
def test_the_benchmark_runs(root: Path, tmp_path: Path) -> None:
    """`make bench ARGS="--quick --json"` ends well, with figures of every group, and counts that are as they should be."""
    command = [sys.executable, "-m", "tests.bench", "--quick", "--json", "--cache", str(tmp_path)]
    done = subprocess.run(command, cwd=root, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    figures = {(found["group"], found["name"]): found for found in map(json.loads, done.stdout.splitlines())}
    assert {group for group, _ in figures} >= {"objects", "log", "index", "sink", "outcomes", "second run", "sizes", "search"}
    assert all(set(found) == {"group", "name", "figure", "unit", "against", "goal", "met"} for found in figures.values())
    assert [figures["second run", f"objects {kind}"]["figure"] for kind in Expected._fields] == [40, 20, 40]
    wrong = {name: found["figure"] for (_, name), found in figures.items() if name.startswith("wrong") or "without one" in name}
    assert len(wrong) == 5
    assert not any(wrong.values())
    assert not os.listdir(tmp_path)


def test_an_unknown_group_is_a_mistake_of_the_user(capsys: pytest.CaptureFixture[str]) -> None:
    """A group that is not there ends with 2 and the names of those that are."""
    with pytest.raises(SystemExit, match="2"):
        main(["nothing"])
    said = capsys.readouterr().err
    assert all(name in said for name in GROUPS)


def test_a_goal_is_judged() -> None:
    """A figure says whether its goal is met, in the table and as JSON; one without a goal says nothing."""
    good, bad = (Figure("objects", "ratio", figure, "ratio", "plain", Goal(">=", 0.6)) for figure in (0.6, 0.59))
    assert (good.met, bad.met, good._replace(goal=None).met) == (True, False, None)
    assert ">= 0.6 met" in good.as_line()
    assert "MISSED" in bad.as_line()
    assert json.loads(bad.as_json()) == {
        "group": "objects",
        "name": "ratio",
        "figure": 0.59,
        "unit": "ratio",
        "against": "plain",
        "goal": ">= 0.6",
        "met": False,
    }


def test_numbers_have_as_many_digits_as_they_bear() -> None:
    """Counts are whole, large figures have no fraction, small ones three digits."""
    assert [shown(n) for n in (3, 12_345, 12_345.6, 12.34, 0.12345)] == ["3", "12,345", "12,346", "12.3", "0.123"]


def test_changes_are_what_was_asked_for(tmp_path: Path) -> None:
    """As many files are changed, added, removed and renamed as asked for; with too few to do so nothing is touched."""
    for number in range(10):
        (tmp_path / f"{number}.txt").write_text("text")
    paths = [os.fsencode(path) for path in tmp_path.iterdir()]
    with pytest.raises(ValueError, match="10 files that may be changed, not 12"):
        change(paths, 4)
    assert all(Path(os.fsdecode(path)).read_text() == "text" for path in paths)
    assert change(paths, 3) == Expected(added=6, changed=3, removed=6)
    after = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert sum(text == "text" and not name.startswith("renamed-") for name, text in after.items()) == 1
    assert sum(name.startswith("renamed-") for name in after) == 3
    assert sum(text.endswith("Changed.\n") for text in after.values()) == 3


def test_memory_counts_all_processes_below() -> None:
    """The most memory of a process tree holds what a grandchild took; it counts as one of three processes."""
    hungry = "held = bytearray(64 << 20)\nfor at in range(0, len(held), 4096): held[at] = 1\nprint('ready', flush=True)\ninput()"
    between = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {hungry!r}])"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {between!r}])"
    child = subprocess.Popen([sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    with Sampled(child.pid) as sampled:
        while not sampled.peak:
            time.sleep(0.01)
        assert len(family(child.pid)) == 3
    child.communicate(b"\n")
    assert sampled.peak > 64 << 20
    assert sampled.processes == 3
    assert pss(child.pid) == 0
