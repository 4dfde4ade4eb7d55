"""`harvest summarize`: summaries without a data folder."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from schemas.records import FetchedObject, Root
from schemas.soif import parse
from schemas.soif_summary import to_record
from streams.cli.standalone_summarize import StandaloneSummarize
from streams.config.settings import Settings

if TYPE_CHECKING:
    from streams.sandbox.pool import Pool


def test_summarize_gives_the_summaries_of_gather(
    harvest: Any, tree: Path, tmp_path: Path, nested: Callable[[Mapping[str, bytes]], bytes]
) -> None:
    """`summarize` gives the same summaries as `gather`, for files, folders and nested archives, and creates no data folder."""
    (tree / "big.zip").write_bytes(nested({"x.txt": b"one\n", "noise": bytes(range(256)) * 400}))
    (tree / ".DS_Store").write_text("not selected")
    lines = harvest.lines("summarize", tree)
    assert all(set(line) == {"url", "type", "content-type", "attributes"} for line in lines)
    assert not (tmp_path / "harvest-data").exists()
    records = [to_record(template) for template in parse(harvest("summarize", tree, "--jobs", 2).stdout.encode())]
    assert [record.url for record in records] == [line["url"] for line in lines]
    harvest("gather", tree)
    assert {line["url"]: line["attributes"] for line in lines} == {
        line["value"]["url"]: line["value"]["attributes"] for line in harvest.lines("cat", "summaries")
    }
    assert harvest.lines("summarize", tree / ".DS_Store")


def test_summarize_reports_missing_and_damaged_files(harvest: Any, tree: Path) -> None:
    """A missing path is an error of one line, exit code 1, and the others are summarized; a damaged file gives a note."""
    result = harvest("summarize", "missing", tree / "page.html", "--json", code=1)
    assert json.loads(result.stdout)["type"] == "HTML"
    assert result.stderr == "harvest: missing: No such file or directory\n"
    (tree / "bad.gz").write_bytes(b"\x1f\x8b\x08\x00 this is no gzip")
    result = harvest("summarize", tree / "bad.gz", "--json")
    found = json.loads(result.stdout)
    assert (found["type"], found["content-type"]) == ("GNUCompressed", "application/gzip")
    assert f"harvest: file://{tree}/bad.gz: " in result.stderr


def test_summarize_reports_a_file_deleted_meanwhile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is deleted while it waits to be summarized is an error of one line."""
    url = f"file://{tmp_path}/gone.bin"
    seen = FetchedObject(url=url, version=1, time=1, outcome="fetched", blob="00", root=Root(url=url, run=""))
    alone = StandaloneSummarize(Settings(), json=False)
    asyncio.run(alone._one(cast("Pool", None), seen)).tell()
    assert capsys.readouterr() == ("", f"harvest: {url}: No such file or directory\n")


def test_summarize_reports_files_refused_by_rules(harvest: Any, tree: Path) -> None:
    """A file refused by the rules of selection gives no summary but a line with the rule; for a folder one line counts them."""
    core = tree / "old" / "crashed"
    core.parent.mkdir()
    core.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x04\x00" + bytes(40))
    result = harvest("summarize", core)
    assert (result.stdout, result.stderr) == ("", f"harvest: file://{core}: refused: stop-type\n")
    for name in ("a.c", "a.o", "b.txt", "b.txt~", "c.txt", "c.txt~"):
        (core.parent / name).write_text("int x;\n")
    result = harvest("summarize", core.parent)
    rules = "editor-backup 2, object-beside-source 1, stop-type 1"
    assert result.stderr == f"harvest: 4 entries left out by the rules of selection ({rules})\n"
    assert result.stdout.count("@FILE") == 3
