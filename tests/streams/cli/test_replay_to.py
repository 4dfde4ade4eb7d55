"""`harvest replay --to`: separate indexes in folders, and targets that are refused before anything is created."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from processors.broker.definition import MAIN
from processors.query import parse
from sinks.index.tantivy.index import TantivyIndex
from streams.operations import rebuild
from streams.store import Store
from streams.store.data_folder import index_folder
from tests.streams.cli.replays import DATA, held, offsets, removal, summary, titles, write


def test_replay_to_a_folder_whole_or_partial(harvest: Any) -> None:
    """A whole replay to a folder, beside a runner, has offsets, a partial one none; --data searches it; a repeat replaces it."""
    mine, others = [summary(n) for n in range(4)], [summary(n, by="b") for n in range(3)]
    write([*mine, *others, removal(mine[0], 2), removal(others[0], 2)], time=1_000)
    write([summary(9)], time=9_000)
    harvest("index", "rebuild")
    before, at = held(), offsets()
    with Store(DATA, runner=True):
        said = harvest("replay", "--to", "other folder").stderr
    assert said.splitlines()[-2] == "harvest: 10 records read, 10 applied, 6 summaries held"
    assert said.splitlines()[-1] == "harvest: to search it: harvest search --data 'other folder' QUERY"
    assert (held(Path("other folder")), offsets(Path("other folder"))) == (before, at)
    assert len(harvest.lines("search", "*", "--data", "other folder")) == 6
    harvest("replay", "--to", "other folder", "--gatherer", "b")
    assert held(Path("other folder")) == titles(others[1:])
    assert not offsets(Path("other folder"))
    harvest("replay", "--to", "third", "--since", "9000")
    assert held(Path("third")) == titles([summary(9)])
    assert [str(path) for path in Path("third").rglob("*") if path.is_dir()] == ["third/index", "third/index/main"]
    assert (held(), offsets()) == (before, at)


def test_two_replays_give_equal_indexes(harvest: Any, tree: Path) -> None:
    """A topic that is replayed into two indexes gives equal indexes."""
    harvest("gather", tree, "--quiet")
    (tree / "page.html").unlink()
    harvest("gather", tree, "--quiet")
    found: list[object] = []
    for name in ("one", "two"):
        harvest("replay", "--to", name, "--quiet")
        with closing(TantivyIndex(index_folder(Path(name), MAIN), writable=False)) as index:
            asked = [parse(text) for text in ("*", "Ishmael", "type:RawText")]
            found.append([(index.search(query, copies=True), list(index.scroll(query)), index.offsets()) for query in asked])
    assert found[0] == found[1]
    assert held(Path("one")) == held()


def test_replay_of_summaries_has_no_copies(harvest: Any, tree: Path) -> None:
    """A replay of the Gatherer's `summaries` has no copies, so each is a hit; annotations and removals are applied."""
    harvest("gather", tree, "--quiet")
    harvest("annotate", tree / "notes" / "a.txt", "keywords=leviathan")
    (tree / "page.html").unlink()
    harvest("gather", tree, "--quiet")
    assert len(harvest.lines("search", "Ishmael")) == 1
    harvest("replay", "--topic", "summaries", "--to", "database")
    assert len(harvest.lines("search", "Ishmael", "--data", "database")) == 2
    assert len(harvest.lines("search", "leviathan", "--data", "database")) == 1
    assert held(Path("database")) == held()
    assert not offsets(Path("database"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--topic", "summaries"), "summaries: the index that serves is not made from this topic; use --to TARGET"),
        (("--topic", "crawl"), "crawl: an index is made of broker.main or summaries"),
        (("--since", "yesterday"), "yesterday: not a time. "),
        (("--to", "harvest-data"), "harvest-data: that is the index that serves, which is replayed without --to"),
        (("--to", "./harvest-data/"), "./harvest-data/: that is the index that serves"),
        (("--to", "http://u:secret@host:9200"), "http://host:9200: no index on OpenSearch, as http://HOST:PORT/NAME"),
        (("--to", "http://host/Name"), "http://host/Name: no index on OpenSearch"),
    ],
)
def test_invalid_options_are_an_error_of_one_line(harvest: Any, words: tuple[str, ...], said: str) -> None:
    """Options that cannot be combined or parsed are an error of one line, exit code 2, and nothing is created."""
    write([summary(1)])
    result = harvest("replay", *words, code=2)
    assert result.stderr.startswith(f"harvest: {said}")
    assert result.stderr.count("\n") == 1
    assert not index_folder(DATA, MAIN).exists()


def test_target_without_slash_is_an_index_on_the_server(harvest: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a server configured, a TARGET without a slash is an index there; an invalid name and the current index are refused."""
    write([summary(1)])
    monkeypatch.setenv("HARVEST_INDEX_URL", "http://127.0.0.1:1/")
    assert "Other: no name of an index" in harvest("replay", "--to", "Other", code=2).stderr
    for name in ("harvest", "http://127.0.0.1:1/harvest"):
        assert "that is the index that serves" in harvest("replay", "--to", name, code=2).stderr
    said = harvest("replay", "--to", "other", code=1).stderr
    assert said == "harvest: the index cannot be reached: http://127.0.0.1:1\n"
    said = harvest("replay", "--to", "./other").stderr
    assert said.splitlines()[-1] == "harvest: to search it: HARVEST_INDEX_URL= harvest search --data other QUERY"


@pytest.mark.parametrize("there", ["letter.txt", "index/other/x", "index/main/photo.png", "index/main"])
def test_folder_with_other_files_is_refused(harvest: Any, there: str) -> None:
    """A folder with any other file than an index is refused and not changed."""
    write([summary(1)])
    file = Path("target", there)
    file.parent.mkdir(parents=True)
    file.write_text("dear")
    said = harvest("replay", "--to", "target", code=1).stderr
    assert said.startswith("harvest: target: contains something other than an index: ")
    assert file.read_text() == "dear"
    assert len([path for path in Path("target").rglob("*") if path.is_file()]) == 1


def test_index_in_use_is_not_touched(harvest: Any) -> None:
    """An index in use by another runner or replay is not touched, and the error is one line."""
    write([summary(1)])
    harvest("index", "rebuild")
    with Store(DATA, runner=True):
        assert "in use by another run of harvest" in harvest("replay", "--since", "1h", code=1).stderr
    said = list[str]()

    def meanwhile(point: str) -> None:
        said.append(harvest("replay", "--to", "target", code=1).stderr)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rebuild, "fault", meanwhile)
        harvest("replay", "--to", "target")
    assert set(said) == {"harvest: target: an index is being made there by another run of harvest\n"}
    with closing(TantivyIndex(index_folder(Path("target"), MAIN))):
        assert "written by another process" in harvest("replay", "--to", "target", code=1).stderr
    assert held(Path("target")) == titles([summary(1)])
