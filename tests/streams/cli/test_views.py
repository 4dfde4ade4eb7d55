"""`harvest view`, and `view:` in a search."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def shells(harvest: Any, tmp_path: Path) -> Path:
    """A gathered folder of three texts."""
    folder = tmp_path / "shells"
    folder.mkdir()
    for name, text in (("a", "The unix shell"), ("b", "A sea shell"), ("c", "unix kernel")):
        (folder / f"{name}.txt").write_text(text)
    harvest("gather", folder, "--quiet")
    return folder


def tagged(harvest: Any) -> dict[str, list[str]]:
    """Views by name of the file, as last published in the Broker's topic."""
    lines = [json.loads(line) for line in harvest("cat", "broker.main", "--json").stdout.splitlines()]
    records = [line["value"] for line in lines]
    return {record["url"].rpartition("/")[2]: record.get("views", []) for record in records}


def listed(harvest: Any) -> dict[str, int]:
    """Numbers of summaries by path."""
    return {view["path"]: view["summaries"] for view in harvest.lines("view", "list", "main")}


def test_views_are_tagged_counted_and_searched(harvest: Any, shells: Path) -> None:
    """A new, changed or removed view shows in tags, counts and searches at once; what comes later is tagged, too."""
    harvest("view", "create", "main", "Computing", "unix")
    harvest("view", "create", "main", "computing/Shells", "shell")
    assert tagged(harvest) == {"a.txt": ["Computing", "Computing/Shells"], "b.txt": [], "c.txt": ["Computing"]}
    assert listed(harvest) == {"Computing": 2, "Computing/Shells": 1}
    (hit,) = harvest.lines("search", "view:computing/shells")
    assert hit["url"].endswith("/a.txt")
    (shells / "d.txt").write_text("another unix shell")
    harvest("gather", "--quiet")
    assert tagged(harvest)["d.txt"] == ["Computing", "Computing/Shells"]
    harvest("view", "create", "main", "Computing", "kernel")
    assert tagged(harvest)["a.txt"] == []
    harvest("view", "remove", "main", "computing/shells")
    harvest("view", "remove", "main", "computing")
    assert set(map(len, tagged(harvest).values())) == {0}
    assert listed(harvest) == {}


def test_hits_are_counted_by_view(harvest: Any, shells: Path) -> None:
    """`--facets view` counts the hits in each view, with the term that narrows the search to it; `all` has the other facets."""
    harvest("view", "create", "main", "Open systems", "unix")
    harvest("view", "create", "main", "Open systems/Shells", "shell")
    lines = harvest("search", "shell", "--facets", "view,type", "--limit", 0).stdout.splitlines()
    assert lines == [
        "type", "  2  RawText  type:RawText",
        "view", '  1  Open systems         view:"Open systems"', '  1  Open systems/Shells  view:"Open systems/Shells"',
    ]  # fmt: skip
    assert harvest("search", 'view:"Open systems/Shells" shell', "--count").stdout == "1\n"
    assert {line["facet"] for line in harvest.lines("search", "shell", "--facets", "all")[2:]} == {"type", "year", "gatherer"}
    (found,) = harvest.lines("search", "kernel", "--facets", "view", "--limit", 0)
    assert found == {"facet": "view", "value": "Open systems", "total": 1, "term": 'view:"Open systems"'}


def test_outline_is_imported(harvest: Any, shells: Path, tmp_path: Path) -> None:
    """An outline makes views below each other; imported again it changes nothing."""
    file = tmp_path / "outline.txt"
    file.write_text("# topics\nComputing: unix\n\tShells: shell\n\tKernel\nSea\n")
    assert "4 views of main changed" in harvest("view", "import", "main", file).stderr
    assert listed(harvest) == {"Computing": 2, "Computing/Kernel": 1, "Computing/Shells": 1, "Sea": 1}
    assert "nothing to change" in harvest("view", "import", "main", file).stderr


@pytest.mark.parametrize("partitions", [1, 3])
def test_exported_definitions_are_imported_into_every_partition(
    harvest: Any, shells: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, partitions: int
) -> None:
    """Definitions that are moved to a log with another number of partitions hold for all summaries there."""
    monkeypatch.setenv("HARVEST_PARTITIONS", str(partitions))
    harvest("gather", shells, "--quiet", "--data", "first")
    harvest("view", "create", "main", "Computing", "unix", "--data", "first")
    harvest("view", "create", "main", "Computing/Shells", "shell", "--data", "first")
    harvest("export", "views.main", tmp_path / "views", "--data", "first")
    monkeypatch.setenv("HARVEST_PARTITIONS", str(4 - partitions))
    harvest("gather", shells, "--quiet", "--data", "second")
    harvest("import", tmp_path / "views", "--data", "second")
    harvest("gather", "--quiet", "--data", "second")
    counted = {view["path"]: view["summaries"] for view in harvest.lines("view", "list", "main", "--data", "second")}
    assert counted == {"Computing": 2, "Computing/Shells": 1}


def test_skos_is_imported(harvest: Any, shells: Path, tmp_path: Path) -> None:
    """A taxonomy in SKOS makes views of its concepts; one with a mistake makes none, exit code 2."""
    names = 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:skos="http://www.w3.org/2004/02/skos/core#"'
    inner = '<skos:narrower><skos:Concept skos:prefLabel="shell"/></skos:narrower>'
    file = tmp_path / "taxonomy.rdf"
    file.write_text(f'<rdf:RDF {names}><skos:Concept skos:prefLabel="unix">{inner}</skos:Concept></rdf:RDF>')
    assert "2 views of main changed" in harvest("view", "import", "main", file).stderr
    assert listed(harvest) == {"unix": 2, "unix/shell": 1}
    file.write_text("<rdf:RDF/>")
    assert "cannot be read as XML" in harvest("view", "import", "main", file, code=2).stderr


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"a: x\na: y\n", "line 2: a is in line 1, too"),
        (b"a: (x\n", "line 1: this parenthesis is never closed"),
        (b"a: x\n b/c: x\n", "line 2: a title has no slash"),
        (b"\xff\xfe", "not UTF-8"),
        (b"a: x\n" * 1_001, "line 1001: a Broker has at most 1,000 views"),
        (b"x" * ((1 << 20) + 1), "at most 1,048,576 bytes"),
        (b"".join(b" " * n + b"n%d: x\n" % n for n in range(40)), "line 17: a path has at most 16 names"),
        (b": x\n", "line 1: a path is names"),
        (b"a\x1b[2J: x\n", "line 1: a"),
    ],
)
def test_wrong_outline_does_nothing(harvest: Any, shells: Path, tmp_path: Path, content: bytes, told: str) -> None:
    """An outline with a mistake is refused in one line, and makes no view."""
    file = tmp_path / "outline.txt"
    file.write_bytes(b"good: x\n"[: 8 * (content[:1] == b":")] + content)
    result = harvest("view", "import", "main", file, code=2)
    assert told.replace("line 1:", "line 2:" if content[:1] == b":" else "line 1:") in result.stderr
    assert result.stderr.count("\n") == 1
    assert listed(harvest) == {}


def test_mistakes_are_one_line(harvest: Any, shells: Path) -> None:
    """A wrong query has its caret; unknown parents, views and Brokers are named; a view with others below it stays."""
    harvest("view", "create", "main", "computing", "unix")
    harvest("view", "create", "main", "computing/shells", "shell")
    for arguments, told in (
        (("view", "create", "main", "a", "x ("), "^"),
        (("view", "create", "main", "computin/b", "x"), "did you mean computing?"),
        (("view", "create", "main", "a", "view:computing"), "cannot be used here"),
        (("view", "remove", "main", "computing"), "computing/shells"),
        (("view", "create", "mian", "a", "x"), "no such broker"),
        (("search", "view:computing/shels"), "did you mean view:computing/shells?"),
    ):
        result = harvest(*arguments, code=2)
        assert told in result.stderr.replace("Broker", "broker")
        assert result.stderr.count("\n") == 1
