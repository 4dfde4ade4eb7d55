"""The demonstration Brokers of `sinks/examples` are created, filled and searched, as their README says."""

from __future__ import annotations

import re
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest

import sinks
from streams.cli.registering import LogRegistry
from streams.config.settings import load
from tests.processors.registry.samples import server

EXAMPLES = Path(sinks.__file__).parent / "examples"
SAMPLES = Path(__file__).resolve().parents[2] / "samples" / "summarize"
ROW = re.compile(r"^\| `([a-z-]+)` \| [^|]+ \| `([^`]+)` \|$", re.MULTILINE)
MOST_LINES = 15

RETRIEVAL = "Information retrieval on networks: what Archie, Gopher and WAIS have in common.\n"
CLIENT = '"""A gopher client: it shows menus and fetches documents."""\n\n\ndef fetch(selector: str) -> bytes:\n    """Fetch."""\n'


@pytest.mark.slow(20)
def test_every_example_answers_the_query_of_the_readme(harvest: Any, tmp_path: Path) -> None:
    """Each example that the README lists is created in one data folder, and finds something after one run, each its own."""
    rows = ROW.findall((EXAMPLES / "README.md").read_text("utf-8"))
    assert sorted(name for name, _ in rows) == sorted(path.stem for path in EXAMPLES.glob("*.toml"))
    root = tmp_path / "root"
    shutil.copytree(SAMPLES, root, ignore=shutil.ignore_patterns("*.json"))
    (root / "FILES.BBS").write_bytes((SAMPLES / "fileindex.bbs").read_bytes())
    (root / "retrieval.txt").write_text(RETRIEVAL)
    (root / "client.py").write_text(CLIENT)
    for name, _ in rows:
        harvest("broker", "create", name, "--example", name)
    assert "no mistakes" in harvest("broker", "check").stderr
    LogRegistry(load({"data": Path("harvest-data")}, None, {})).take(server(1))
    harvest("gather", root, "--quiet")
    found = {name: {hit["url"] for hit in harvest.lines("search", "--broker", name, query)} for name, query in rows}
    assert all(found.values()), [name for name, urls in found.items() if not urls]
    software, documents, both = (
        {hit["url"] for hit in harvest.lines("search", "--broker", name, "*")} for name in ("nidr-sw", "nidr-doc", "nidr")
    )
    assert software
    assert documents
    assert both == software | documents


def test_only_definitions_are_examples(harvest: Any) -> None:
    """Another file of the folder is no example, and is not proposed as one."""
    said = harvest("broker", "create", "one", "--example", "README.md", code=2).stderr
    assert "no such example (there are abstracts, " in said


def test_examples_are_short_and_explained() -> None:
    """An example has at most 15 lines, begins with what it is, and has a title."""
    for path in EXAMPLES.glob("*.toml"):
        text = path.read_text("utf-8")
        assert text.startswith("# "), path.name
        assert len(text.splitlines()) <= MOST_LINES, path.name
        assert tomllib.loads(text)["title"], path.name
