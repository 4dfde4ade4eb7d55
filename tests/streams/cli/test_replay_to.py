"""`harvest replay --to`: indexes of their own, in folders; what is refused before anything is made."""

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


def test_to_a_folder(harvest: Any) -> None:
    """Into a folder, beside a runner: whole with its offsets, or a part without; searched by --data; made again over itself."""
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


def test_twice(harvest: Any, tree: Path) -> None:
    """A topic that is replayed into two indexes gives equal ones."""
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


def test_from_summaries(harvest: Any, tree: Path) -> None:
    """From the Gatherer's database, whose summaries are nobody's copies: each is a hit; annotations and removals are in it."""
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
def test_used_wrongly(harvest: Any, words: tuple[str, ...], said: str) -> None:
    """What is asked for wrongly is one line and exit code 2, and makes nothing."""
    write([summary(1)])
    result = harvest("replay", *words, code=2)
    assert result.stderr.startswith(f"harvest: {said}")
    assert result.stderr.count("\n") == 1
    assert not index_folder(DATA, MAIN).exists()


def test_names_on_a_server(harvest: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the settings name a server a TARGET without a slash is a name there: one that cannot be, or serves, is refused."""
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
def test_a_folder_that_holds_something_else(harvest: Any, there: str) -> None:
    """A folder that holds anything but an index is refused, and stays as it is."""
    write([summary(1)])
    file = Path("target", there)
    file.parent.mkdir(parents=True)
    file.write_text("dear")
    said = harvest("replay", "--to", "target", code=1).stderr
    assert said.startswith("harvest: target: contains something other than an index: ")
    assert file.read_text() == "dear"
    assert len([path for path in Path("target").rglob("*") if path.is_file()]) == 1


def test_one_at_a_time(harvest: Any) -> None:
    """While another runner or another replay is at work on an index, it is left alone, and that is said in a line."""
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
