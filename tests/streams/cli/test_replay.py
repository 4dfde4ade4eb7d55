"""`harvest replay` from a data folder into indexes in folders: what is applied again, and what stays unchanged."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, cast

import pytest

from processors.broker.definition import MAIN
from schemas.codec import encode
from schemas.ports import BrokerIndex, Logged, Refused
from schemas.query import Word
from sinks.index.tantivy.index import TantivyIndex
from streams.cli.output import replay_progress
from streams.logs import StoreLog
from streams.operations import rebuild, replay
from streams.operations.selection import ReplayProgress, Selection
from streams.store import Store
from streams.store.data_folder import index_folder
from tests.streams.cli.replays import DATA, Change, apply, held, last, offsets, removal, summary, titles, write
from tests.streams.cli.terminals import on_terminal

DAY = 86_400_000


def test_replay_without_options_repairs_the_index(harvest: Any, tree: Path) -> None:
    """Without options it equals `index rebuild`: an incomplete or damaged index is complete again, with its offsets."""
    harvest("gather", tree, "--quiet")
    whole, at = held(), offsets()
    (index_folder(DATA, MAIN) / "meta.json").write_text("nonsense")
    said = harvest("replay")
    read = sum(at.values())
    assert last(said) == f"harvest: {read} records read, {read} applied, 3 summaries held"
    assert said.stdout == ""
    assert (held(), offsets()) == (whole, at)
    assert [path.name for path in index_folder(DATA, MAIN).parent.iterdir()] == ["main"]
    (table,) = harvest.lines("gather", tree)
    assert table["nothing_changed"]


def test_replay_since_applies_latest_state_of_later_changes(harvest: Any) -> None:
    """The changes appended since a time are applied in their latest state; all other documents stay as they are."""
    old, new = [summary(n) for n in range(5)], [summary(n) for n in range(5, 9)]
    write(old, time=1_000)
    write([*new, summary(5, 2), removal(new[1], 2), summary(0, 2)], time=5_000)
    harvest("index", "rebuild")
    whole, at = held(), offsets()
    # Documents that an index lost or gained by mistake; their versions do not reveal it.
    index = shutil.copytree(index_folder(DATA, MAIN), "elsewhere")
    shutil.rmtree(index_folder(DATA, MAIN))
    apply([summary(1), summary(2, 7)])
    assert last(harvest("replay", "--since", "5000")) == "harvest: 7 records read, 5 applied, 6 summaries held"
    assert held() == titles([summary(0, 2), summary(1), summary(2, 7), summary(5, 2), *new[2:]])
    assert not offsets()
    shutil.rmtree(index_folder(DATA, MAIN))
    shutil.copytree(index, index_folder(DATA, MAIN))
    for since in ("0", "5000", "1970-01-01T00:00:05", "2999-01-01"):
        harvest("replay", "--since", since)
        assert (held(), offsets()) == (whole, at)
    assert last(harvest("replay", "--since", "2999-01-01")).startswith("harvest: 0 records read, 0 applied")


def test_replay_does_not_move_sink_offsets(harvest: Any, tmp_path: Path) -> None:
    """A replay does not move the sink's offsets: an index behind its topic gets the selected part, and later all from its sink."""
    folder = tmp_path / "texts"
    folder.mkdir()

    def gather(name: str) -> None:
        (folder / name).write_text(f"Of {name}.\n")
        harvest("gather", folder, "--quiet")

    gather("one")
    behind = shutil.copytree(index_folder(DATA, MAIN), tmp_path / "behind")
    gather("two")
    time = max(line["time"] for line in harvest.lines("cat", "broker.main")) + 1
    gather("three")
    whole, at = held(), offsets()
    shutil.rmtree(index_folder(DATA, MAIN))
    shutil.copytree(behind, index_folder(DATA, MAIN))
    before = offsets()
    harvest("replay", "--since", time)
    assert {Path(url).name for url in held()} >= {"one", "three"}
    assert "two" not in {Path(url).name for url in held()}
    assert offsets() == before != at
    harvest("gather", folder, "--quiet")
    assert (held(), offsets()) == (whole, at)


def test_replay_by_gatherer_leaves_others_unchanged(harvest: Any) -> None:
    """With --gatherer the summaries of that Gatherer are applied and its removals removed; those of others stay."""
    mine, others = [summary(n) for n in range(6)], [summary(n, by="b") for n in range(4)]
    # Summaries that a Gatherer imported from another one keep a foreign OID, so a removal alone does not show whose they are.
    foreign = [summary(n, of="elsewhere") for n in range(10, 13)]
    strange = [summary(n, by="b", of="elsewhere") for n in range(10, 12)]
    write([*mine, *others, *foreign[:1], *strange])
    gone = [removal(each, 2) for each in (mine[0], others[0], foreign[0], strange[0])]
    # The log no longer contains the summaries of these removals.
    write([*gone, removal(foreign[1], 2), removal(strange[1], 2)])
    write([summary(1, 2), b"no record"])
    apply([*mine[:1], *others, *foreign, *strange])
    said = last(harvest("replay", "--gatherer", "a"))
    kept = [summary(1, 2), *mine[2:], *others, foreign[2], *strange]
    assert said == f"harvest: 21 records read, 8 applied, {len(kept)} summaries held"
    assert held() == titles(kept)
    assert not offsets()
    harvest("replay", "--gatherer", "b", "--gatherer", "nobody")
    assert held() == titles([summary(1, 2), *mine[2:], *others[1:], foreign[2]])
    harvest("replay", "--gatherer", "a", "--to", "target")
    assert held(Path("target")) == titles([summary(1, 2), *mine[2:]])


def test_replay_without_data_or_index_is_an_error(harvest: Any) -> None:
    """Without a data folder, or without an index for a partial replay, the error is one line, and nothing is created."""
    assert harvest("replay", "--since", "1h", code=1).stderr.startswith("harvest: harvest-data: no ")
    assert harvest("replay", "--to", "other", code=1).stderr.startswith("harvest: harvest-data: no ")
    assert not list(Path().iterdir())
    write([summary(1)])
    said = harvest("replay", "--since", "1h", code=1).stderr
    assert said.startswith("harvest: there is no index yet: harvest-data/index/main")
    assert said.endswith("make it first: harvest index rebuild\n")
    assert not index_folder(DATA, MAIN).exists()


@pytest.mark.parametrize("words", [(), ("--to", "target"), ("--since", "1")])
def test_interrupted_replay_keeps_the_index(harvest: Any, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C gives exit code 130; the existing index stays in use with its offsets, and no partial index is left."""
    write(summary(n) for n in range(20))
    harvest("index", "rebuild")
    harvest("replay", "--to", "target", "--quiet")
    before = {folder: (held(folder), offsets(folder)) for folder in (DATA, Path("target"))}
    for module in (rebuild, replay):
        monkeypatch.setattr(module, "BATCH", 3)
        monkeypatch.setattr(module, "fault", third())
    harvest("replay", *words, code=130)
    for folder, known in before.items():
        assert (held(folder), offsets(folder)) == known
        assert [path.name for path in index_folder(folder, MAIN).parent.iterdir()] == ["main"]


def third() -> Callable[[str], None]:
    """A function that raises KeyboardInterrupt at its third call, as Ctrl-C does."""
    passed = iter(range(3))

    def point(_: str) -> None:
        if next(passed) == 2:
            raise KeyboardInterrupt

    return point


@pytest.mark.slow
@pytest.mark.parametrize("words", [("replay",), ("replay", "--to", "target"), ("replay", "--gatherer", "a")])
def test_killed_replay_keeps_the_index(harvest: Any, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """After a killed replay the existing index stays in use; its leftovers do not hinder the next replay."""
    write([summary(n) for n in range(20)])
    harvest("index", "rebuild")
    before = (held(), offsets())
    monkeypatch.setenv("HARVEST_FAULT", "rebuild.applied:1:kill,replay.applied:1:kill")
    process: subprocess.Popen[bytes] = harvest.start(*words)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    monkeypatch.delenv("HARVEST_FAULT")
    assert (held(), offsets()) == before
    harvest(*words)
    for folder in {DATA, *map(Path, words[2:3] if "--to" in words else ())}:
        assert (held(folder), offsets(folder)) == before
        assert [path.name for path in index_folder(folder, MAIN).parent.iterdir()] == ["main"]


class Interrupted(Exception):  # noqa: N818 - it is no error
    """The index accepts no more batches."""


class Failing:
    """An index that accepts the given number of batches."""

    def __init__(self, index: BrokerIndex, batches: int) -> None:
        self._index = index
        self._left = batches
        self.count, self.scroll = index.count, index.scroll

    def apply(self, changes: Sequence[Change], offsets: Mapping[int, int]) -> Sequence[Any]:
        """Raises Interrupted."""
        if not self._left:
            raise Interrupted
        self._left -= 1
        return self._index.apply(changes, offsets)


@pytest.fixture
def log(harvest: Any) -> Iterator[StoreLog]:
    """A log in which a summary precedes its removal of long ago by many records."""
    long_gone = summary(1)
    write([long_gone, *(summary(n) for n in range(100, 140)), removal(long_gone, 2, time=DAY)])
    write([removal(summary(2, 1), 2, time=200 * DAY)])
    with StoreLog(Store(DATA, readonly=True)) as opened:
        yield opened


def test_removed_summary_is_not_restored(log: StoreLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """A summary whose removal the index no longer remembers is not restored, wherever the replay is interrupted."""
    monkeypatch.setattr(replay, "BATCH", 3)
    for batches in range(0, 16, 5):
        folder = Path(f"index-{batches}")
        with closing(TantivyIndex(folder, heap=15_000_000)) as index:
            index.apply([removal(summary(2, 1), 2, time=200 * DAY)], {})
            with suppress(Interrupted):
                replay.apply_selection(
                    log, Selection("broker.main", since=0), cast("BrokerIndex", Failing(index, batches)), lambda _: None
                )
            assert not index.count(Word("http://example.org/a/1", "url")), batches


def test_highest_counter_wins_at_any_position(harvest: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The latest version of an OID has the highest counter, at any position and under any key; a tombstone is no version.

    A former owner of a partition may write an older record behind a newer one. The index contains the latest; so does an index that
    is rebuilt or replayed into, and the counts agree.
    """
    monkeypatch.setattr(replay, "BATCH", 2)
    monkeypatch.setattr(rebuild, "BATCH", 2)
    newest = [summary(1, 3), summary(2, 1), summary(3, 1), summary(4, 1), summary(5, 3)]
    gone, later = [summary(6, 1), summary(8, 1)], [summary(6, 2), summary(8, 2)]
    write([summary(1, 1), newest[0], summary(1, 2), *gone, *(removal(one, 3) for one in gone), *later])
    write([removal(summary(5), 2), newest[4]])
    write(newest[1:4])
    with Store(DATA) as store:
        # Foreign records: one under the key of another OID, and a tombstone of a summary that was never removed.
        pairs = [(newest[1], summary(4, 2)), (newest[2], None)]
        values = [(key.oid.encode(), None if value is None else encode(value)) for key, value in pairs]
        StoreLog(store).write(Logged("broker.main", -1, -1, 1_000, key, value) for key, value in values)
    whole = titles([*newest[:3], summary(4, 2), newest[4]])
    harvest("index", "rebuild")
    assert held() == whole
    for since in ("0", "999"):
        shutil.rmtree(index_folder(DATA, MAIN))
        apply([summary(7)])
        harvest("replay", "--since", since)
        assert held() == {**whole, **titles([summary(7)])}


class Choosy(TantivyIndex):
    """An index that refuses changes with a counter above 5."""

    def apply(self, changes: Sequence[Change], offsets: Mapping[int, int]) -> Sequence[Refused]:
        """Apply the other changes, of each OID the latest, as an engine does."""
        super().apply([change for change in changes if change.published <= 5], offsets)
        return [Refused(change, "too new") for change in changes if change.published > 5]


def test_refused_change_keeps_the_earlier_version(harvest: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the index refuses a change, the earlier version stays and is counted; a refused new document is not counted."""
    monkeypatch.setattr(rebuild, "BATCH", 2)
    write([summary(1, 1), summary(2, 1), summary(3, 1), summary(1, 9), removal(summary(2), 9), summary(4, 9)])
    with StoreLog(Store(DATA, readonly=True)) as log, closing(Choosy(Path("choosy"), heap=15_000_000)) as index:
        filler = rebuild.Filler(log, index, Selection("broker.main"))
        filler.catch_up()
        filler.count()
        assert (filler.tally.held, filler.tally.refused) == (3, 3)


def test_progress_lines_count_records(harvest: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A progress line states the records read, applied and remaining; --quiet suppresses these and the closing line."""
    write(summary(n) for n in range(50))
    monkeypatch.setattr(replay_progress, "PLAIN", 0.0)
    monkeypatch.setattr(rebuild, "BATCH", 10)
    lines = harvest("replay").stderr.splitlines()
    assert len(lines) > 5
    assert all(line.startswith("harvest: ") and " read, " in line for line in lines)
    assert "harvest: 10 read, 10 applied, 40 to go, " in lines[0]
    assert " 0 to go, " in lines[-2]
    for command in (("replay",), ("index", "rebuild"), ("replay", "--since", "1"), ("replay", "--to", "other")):
        result = harvest(*command, "--quiet")
        assert (result.stdout, result.stderr) == ("", "")


def test_progress_on_a_terminal_respects_no_color(harvest: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal progress is drawn, without colors under NO_COLOR, and the closing line follows."""
    write(summary(n) for n in range(5))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    often = "from streams.cli import main; from streams.cli.output import replay_progress; replay_progress.LIVE = 0.0; main()"
    seen = on_terminal([sys.executable, "-c", often, "replay"], harvest.folder, errors=True)
    assert b" read, " in seen
    assert b"\x1b[3" not in seen
    assert seen.endswith(b"harvest: 5 records read, 5 applied, 5 summaries held\r\n")


def test_closing_line_counts_refused_changes(harvest: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The closing line counts refused changes separately."""
    write([summary(1)])
    monkeypatch.setattr(rebuild, "in_folder", lambda *_: ReplayProgress(read=3, applied=2, refused=1, held=2))
    said = harvest("replay").stderr
    assert said == "harvest: 3 records read, 2 applied, 2 summaries held, 1 refused by the index\n"
