from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.bench.__main__ import GROUPS, main
from tests.bench.changes import Expected, change
from tests.bench.cpu import by_stage, spent
from tests.bench.documents import MOST, taken
from tests.bench.figures import BenchError, Figure, Goal, shown
from tests.bench.glimpse import as_file
from tests.bench.judged import Collection, Document, Topic, collections
from tests.bench.library import KINDS, Asking, Library
from tests.bench.memory import Sampled, family, pss
from tests.bench.queries import Kind, Timed, ways
from tests.bench.ranking import BM25, asked_of
from tests.bench.summaries import PAPER_STEPS
from tests.bench.workers import STAGES

DISTRIBUTED = ("stage", "workers", "recovery", "sink")
READERS = ("tika",)
PASSES = ("second-pass",)
SITES = ("gatherer",)
EMBEDDED = tuple(group for group in GROUPS if group not in (*DISTRIBUTED, *READERS, *PASSES, *SITES))


def quick(root: Path, cache: Path, groups: Sequence[str]) -> dict[tuple[str, str], dict[str, Any]]:
    """The figures of `make bench ARGS="--quick --json GROUP..."`, by group and name."""
    command = [sys.executable, "-m", "tests.bench", "--quick", "--json", "--cache", str(cache), *groups]
    done = subprocess.run(command, cwd=root, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert not os.listdir(cache)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(set(one) == {"group", "name", "figure", "unit", "against", "goal", "met"} for one in found)
    return {(one["group"], one["name"]): one for one in found}


@pytest.mark.slow(100)
@pytest.mark.timeout(900)  # half a minute on two idle cores
def test_embedded_groups_succeed(root: Path, tmp_path: Path) -> None:
    """The groups of the embedded runner succeed, and their counts are as expected."""
    figures = quick(root, tmp_path, EMBEDDED)
    assert {group for group, _ in figures} >= {
        *("objects", "log", "index", "outcomes", "second run", "sizes", "search", "recognition", "essence"),
        *("unnest", "10 GB", "ratio", "steps", "speed", "pages, 1 host", "pages, 50 hosts"),
    }
    assert [figures["second run", f"objects {kind}"]["figure"] for kind in Expected._fields] == [40, 20, 40]
    assert figures["recognition", "right, average of types"]["figure"] == 100
    assert figures["retrieval", "documents"]["figure"] == 30
    assert {name for group, name in figures if group == "retrieval"} > {
        "any word, 40 hits: recall",
        "two words, 40 hits: precision",
    }
    assert figures["ranking, made", "tantivy"]["figure"] > 0.9
    assert figures["refresh, current", "4 years, 1 d"]["figure"] > 1
    searched = {name: one["figure"] for (group, name), one in figures.items() if group == "query, tantivy"}
    assert searched.keys() == {*KINDS, "median of kinds to bare", *(f"{way.name} to the first" for way in ways())}
    assert all(searched.values())
    assert figures["query, index", "bytes to words alone"]["figure"] > 1
    assert figures["pages, 50 hosts", "harvest gather"]["figure"] > 0
    assert figures["essence", "no summary, no rejection"]["figure"] == 0
    assert sum(found["figure"] for (group, name), found in figures.items() if group == "steps" and name in PAPER_STEPS) > 99.9
    wrong = {name: found["figure"] for (_, name), found in figures.items() if name.startswith("wrong") or "without one" in name}
    assert len(wrong) == 5
    assert not any(wrong.values())


@pytest.mark.slow(110)
@pytest.mark.timeout(900)  # a minute on two idle cores: fifteen workers start, one after the other
def test_distributed_groups_succeed(root: Path, tmp_path: Path) -> None:
    """The groups of the distributed runner succeed; each contender, stage and table has figures above zero."""
    figures = quick(root, tmp_path, DISTRIBUTED)
    groups = {group: {name.strip() for of, name in figures if of == group} for group, _ in figures}
    assert set(groups) == {"stage", "workers, objects", "recovery", "sink"}
    assert groups["stage"] >= {"ours", "Faust", "aiokafka", "confluent-kafka", "ours, rows", "Faust, rows", "ours to Faust"}
    assert groups["workers, objects"] >= {"embedded", "1 worker", "2 workers", "1 worker to embedded", "2 workers to embedded"}
    assert groups["workers, objects"] >= {f"{count}: {who}" for count in ("1 worker", "2 workers") for who in (*STAGES, "Kafka")}
    assert groups["recovery"] >= {"start-up", "rows recovered", "start, store empty", "start, store in order"}
    assert groups["sink"] >= {"sink", "sink to the best raw loop"}
    rates = [one["figure"] for one in figures.values() if one["unit"].endswith("/s")]
    assert rates
    assert all(rates)


@pytest.mark.slow(60)
@pytest.mark.timeout(900)  # half a minute on two idle cores
def test_tika_group_succeeds(root: Path, tmp_path: Path) -> None:
    """The group that measures against Tika succeeds: texts are similar, all facts found, and both rates above zero."""
    figures = quick(root, tmp_path, READERS)
    for kind in ("HTML", "mail"):
        found = {name: one["figure"] for (of, name), one in figures.items() if of == f"tika, {kind}"}
        assert found["F1 of the text, worst"] > 0.9
        assert found["found: title"] == 1
        assert {"tika-server, text x 1", "tika-server, xml x 2", "harvest summarize", "to tika-server"} <= found.keys()
        assert all(found.values())


@pytest.mark.slow
@pytest.mark.timeout(900)  # half a minute on two idle cores
def test_group_of_passes_succeeds(root: Path, tmp_path: Path) -> None:
    """The group of the passes over a changing site succeeds, and no pass treats a page wrongly."""
    figures = quick(root, tmp_path, PASSES)
    assert {group for group, _ in figures} == {
        f"pass: {name}" for name in ("first", "links", "dates", "marks", "sitemap", "lie", "truth")
    }
    wrong = {(group, name): one["figure"] for (group, name), one in figures.items() if name.startswith("wrong")}
    assert len(wrong) == 40
    assert not any(wrong.values()), wrong
    assert figures["pass: sitemap", "to the pass without a sitemap"]["figure"] < 0.5


@pytest.mark.slow
@pytest.mark.timeout(900)  # half a minute on two idle cores
def test_gatherer_group_succeeds(root: Path, tmp_path: Path) -> None:
    """The experiment of 1995 succeeds: two connections a file by FTP, one for each stream, which is smaller than the files."""
    figures = quick(root, tmp_path, SITES)
    for site in ("documents", "empty files"):
        found = {name: one["figure"] for (of, name), one in figures.items() if of == f"gatherer, {site}"}
        assert (found["files"], found["FTP, connections"]) == (100, 200)
        assert "101 connections" in figures[f"gatherer, {site}", "FTP, connection kept"]["against"]
        streams = [figures[f"gatherer, {site}", kind]["against"] for kind in ("whole stream", "changes of 1 per cent")]
        assert all(one.endswith(" bytes both ways, 1 connection") for one in streams)
        assert "100 summaries" in figures[f"gatherer, {site}", "gathered locally"]["against"]
        assert found["bytes of stream to changes"] > 1
        assert found["bytes by FTP to stream"] > 1
    assert figures["gatherer, documents", "bytes of files to stream"]["figure"] > 1
    rates = [one["figure"] for one in figures.values() if one["unit"] == "MB/s"]
    assert len(rates) == 12
    assert all(rates)


def test_unknown_group_exits_with_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown group ends with exit code 2 and the names of all groups."""
    with pytest.raises(SystemExit, match="2"):
        main(["nothing"])
    said = capsys.readouterr().err
    assert all(name in said for name in GROUPS)


def test_figure_shows_whether_its_goal_is_met() -> None:
    """A figure shows whether its goal is met, in the table and as JSON; without a goal it shows nothing."""
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


def test_numbers_are_shown_with_suitable_digits() -> None:
    """Counts are whole, large figures have no fraction, small ones three digits."""
    assert [shown(n) for n in (3, 12_345, 12_345.6, 12.34, 0.12345)] == ["3", "12,345", "12,346", "12.3", "0.123"]


def test_requested_numbers_of_files_are_changed(tmp_path: Path) -> None:
    """The requested numbers of files are changed, added, removed and renamed; with too few files, none is touched."""
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


def test_cpu_counts_for_the_stage_of_the_command() -> None:
    """The CPU of processes below a `harvest worker` counts for the stage in their command line, also after they have ended."""
    busy = "import subprocess, sys, time\nwhile time.process_time() < 0.3: pass\nprint('ready', flush=True)\ninput()"
    stage = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}]); print('ended', flush=True); input()"
    above = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {stage!r}, 'worker', 'catalog', '--data'])"
    supervisor = subprocess.Popen([sys.executable, "-c", above], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert supervisor.stdout is not None
    assert supervisor.stdin is not None
    for said in ("ready\n", "ended\n"):
        assert supervisor.stdout.readline() == said
        found = by_stage([supervisor.pid])
        assert set(found) == {"catalog"}
        assert 0.2 < found["catalog"] <= spent(supervisor.pid)
        supervisor.stdin.write("\n")
        supervisor.stdin.flush()
    supervisor.communicate()
    assert spent(supervisor.pid) == 0
    assert by_stage([supervisor.pid]) == {}


def test_memory_includes_all_descendants() -> None:
    """The peak memory of a process tree includes a grandchild, which counts as one of three processes."""
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


def test_same_documents_are_chosen_in_any_folder(tmp_path: Path) -> None:
    """From a manual with too many documents, every run chooses the same ones, whatever the folder."""
    found = []
    for name in ("here", "there"):
        folder = tmp_path / name / "manual"
        folder.mkdir(parents=True)
        for number in range(2 * MOST["PDF"]):
            (folder / f"{number}.pdf").touch()
        found.append([(kind, path.name) for kind, path in taken(folder)])
    assert found[0] == found[1]
    assert len(set(found[0])) == MOST["PDF"]


def test_library_is_the_same_each_time() -> None:
    """Summaries and queries are the same in each run, and the first summaries do not depend on the number of all."""
    made = list(Library(30).summaries())
    assert made == list(Library(60).summaries())[:30]
    assert len({one.oid for one in made}) == 30
    asked = [[make(ask) for make in KINDS.values() for _ in range(5)] for ask in (Asking(Library(30)), Asking(Library(30)))]
    assert asked[0] == asked[1]


def test_words_are_marked_for_glimpse() -> None:
    """The file of a summary ends with the words of title and author, each with the attribute's name before it."""
    made = next(Library(1).summaries())
    *template, marked = as_file(made).decode().splitlines()
    assert template[0] == f"@FILE {{ {made.url}"
    title, author = (str(made.attributes[name][0]).lower().rstrip(".").split() for name in ("title", "author"))
    assert marked.split() == [f"title{word}" for word in title] + [f"author{word}" for word in author]


def test_ratio_of_a_kind_is_of_medians() -> None:
    """The ratio of a kind of query divides the median of the Broker's index by that of the bare engine."""
    assert Kind([Timed(2.0, 1.0), Timed(9.0, 2.0), Timed(6.0, 4.0)], [1, 2, 3], exact=True).ratio == 3


def test_average_precision() -> None:
    """Average precision is trec_eval's: hits by score, none with the score 0, and answers that are not found count."""
    documents = [Document(name, "", "", "") for name in "abcd"]
    asked = asked_of(Collection("", documents, [Topic("", frozenset("bcd"))], titled=False))
    assert asked.precision_by([np.array([4.0, 3.0, 2.0, 0.0])]) == pytest.approx([(1 / 2 + 2 / 3) / 3])


def test_bm25() -> None:
    """The score is that of the formula: a word that occurs twice in one text of two, which has the average length."""
    scores = BM25([["a", "a"], ["b", "c"]]).scores(["a"])
    assert scores == pytest.approx([math.log(2) * 2 * 2.2 / (2 + 1.2), 0.0])


def test_collections_that_are_absent(tmp_path: Path) -> None:
    """Test collections that are absent are reported in one line."""
    with pytest.raises(BenchError, match=r"^no test collections .*: No such file or directory$"):
        list(collections(tmp_path))
