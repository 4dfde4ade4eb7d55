"""The commands beside `gather`: what they print, on what they fail."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from schemas.records import FetchedObject, Root
from schemas.soif import parse
from schemas.soif_summary import to_record
from streams.cli.standalone_summarize import StandaloneSummarize
from streams.config.settings import Settings
from streams.topology import describe
from streams.topology.flow import TopologySettings, topology

if TYPE_CHECKING:
    from streams.sandbox.pool import Pool


@pytest.fixture
def gathered(harvest: Any, tree: Path) -> Path:
    """The small tree, gathered."""
    harvest("gather", tree, "--quiet")
    return tree


def test_search_for_people(harvest: Any, gathered: Path) -> None:
    """A hit shows its URL, title, type and snippet, and its copies; how many there are goes to standard error."""
    result = harvest("search", "Ishmael")
    first, copy = sorted([f"file://{gathered}/notes/a.txt", f"file://{gathered}/notes/copy.txt"], key=len)
    assert result.stdout.splitlines()[0] == first
    assert f"  copy: {copy}" in result.stdout.splitlines()
    assert result.stderr == "1 found\n"
    assert "\x02" not in result.stdout
    assert harvest("search", "*", "--limit", 1).stderr == "2 found, 1 shown\n"


def test_a_first_line_is_shown_once(harvest: Any, tree: Path) -> None:
    """A text whose first line is its title is not shown with that line again; what follows it is."""
    (tree / "notes" / "b.txt").write_text("The whale\n\nIt blows, the whale.\n")
    harvest("gather", tree / "notes", "--quiet")
    assert harvest("search", "Ishmael").stdout.count("Ishmael") == 1
    assert harvest("search", "whale").stdout.splitlines()[2] == "  It blows, the whale."


def test_search_as_json(harvest: Any, gathered: Path) -> None:
    """A hit is an object with oid, url, title, type, score and snippet; copies where it has any."""
    (hit,) = harvest.lines("search", "whale")
    assert set(hit) == {"oid", "url", "title", "type", "score", "snippet"}
    assert (hit["title"], hit["type"], hit["url"]) == ("Moby", "HTML", f"file://{gathered}/page.html")
    assert harvest("search", "*", "--limit", 1, "--json").stderr == "2 found, 1 shown\n"
    (hit,) = harvest.lines("search", "Ishmael")
    assert (len(hit["copies"]), hit["copies_count"]) == (1, 1)
    assert not harvest.lines("search", "nowhere")


def test_a_query_that_is_none(harvest: Any, gathered: Path) -> None:
    """A malformed query is one line and exit code 2."""
    result = harvest("search", "whale AND", code=2)
    assert (result.stdout, result.stderr.count("\n")) == ("", 1)


@pytest.mark.parametrize("command", [("search", "x"), ("show", "x"), ("why", "x"), ("roots", "list"), ("index", "rebuild")])
def test_no_data_folder(harvest: Any, command: tuple[str, ...], tmp_path: Path) -> None:
    """Asking where nothing was gathered is one line and exit code 1, and makes no folder."""
    result = harvest(*command, code=1)
    assert result.stderr.startswith("harvest: harvest-data: no ")
    assert not (tmp_path / "harvest-data").exists()


def test_show(harvest: Any, gathered: Path) -> None:
    """A summary is shown by URL, path or OID, as SOIF that can be read back, or as its record."""
    (hit,) = harvest.lines("search", "Ishmael")
    shown = {harvest("show", what).stdout for what in (hit["url"], hit["oid"], gathered / "notes" / "a.txt", "tree/notes/a.txt")}
    (text,) = shown
    record = to_record(parse(text.encode())[0])
    assert (record.oid, record.url) == (hit["oid"], hit["url"])
    (as_json,) = harvest.lines("show", hit["oid"])
    assert as_json["copies"] == hit["copies"]
    assert as_json["attributes"]["partial-text"] == ["Call me Ishmael."]
    assert harvest("show", "http://example.org/", code=1).stderr == "harvest: http://example.org/: no summary of it\n"
    assert "tree: no summary of it: folders have no summary" in harvest("show", "tree", code=1).stderr
    assert "tree/nothing: no summary of it, and no such file" in harvest("show", "tree/nothing", code=1).stderr
    (gathered / "page.html").unlink()
    harvest("gather", gathered)
    assert "was removed" in harvest("show", f"file://{gathered}/page.html", code=1).stderr


def test_why(harvest: Any, tmp_path: Path, nested: Callable[[Mapping[str, bytes]], bytes]) -> None:
    """The history of a member tells what became of its object and of itself, in order, up to its removal."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "a.zip").write_bytes(nested({"x.txt": b"one\n"}))
    harvest("gather", folder)
    (folder / "a.zip").unlink()
    harvest("gather", folder)
    events = harvest.lines("why", f"{folder}/a.zip#inner.tar.gz#x.txt")
    assert [(e["topic"], e["event"].split(",")[0]) for e in events if e["topic"] in ("objects", "summaries")] == [
        ("objects", "fetched"),
        ("summaries", "summary of type RawText"),
        ("objects", "gone"),
        ("summaries", "removed"),
    ]
    assert events[-1]["time"] >= events[0]["time"]
    assert "not in the listing any more" in harvest("why", f"{folder}/a.zip").stdout
    assert "nothing is known" in harvest("why", "http://example.org/", code=1).stderr


def test_annotate(harvest: Any, gathered: Path) -> None:
    """What is said by hand is found at once, stays when the file is summarized anew, and can be taken back."""
    page = gathered / "page.html"
    harvest("annotate", page, "keywords=leviathan", "rating=5", "rating=6")
    (hit,) = harvest.lines("search", "leviathan")
    assert hit["url"] == f"file://{page}"
    page.write_text("<title>Moby</title>Rewritten.")
    harvest("gather", gathered)
    (summary,) = harvest.lines("show", page)
    assert summary["annotations"] == {"keywords": ["leviathan"], "rating": ["5", "6"]}
    harvest("annotate", page, "keywords=")
    assert not harvest.lines("search", "leviathan")
    assert "is not NAME=VALUE" in harvest("annotate", page, "nothing", code=2).stderr


@pytest.mark.parametrize("name", ["type", "MD5 ", "url", "oid"])
def test_annotate_what_a_summary_is(harvest: Any, gathered: Path, name: str) -> None:
    """What no description can change is refused as a mistake of usage, and nothing is written."""
    said = " ".join(harvest("annotate", gathered, f"{name}=x", "rating=5", code=2).stderr.split())
    assert "no description changes what a summary is" in said
    assert not harvest.lines("cat", "annotations")


def test_annotate_gathers_nothing(harvest: Any, gathered: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A root that was added, and what is due, are left to the next run: who says something of a page waits for no gathering."""
    monkeypatch.setenv("HARVEST_ROOTS_REFRESH", "1")
    harvest("gather", gathered)
    other, page = tmp_path / "other", gathered / "page.html"
    other.mkdir()
    (other / "b.txt").write_text("Queequeg\n")
    page.write_text("<title>Moby</title>Rewritten.")
    harvest("roots", "add", other)
    time.sleep(1.1)  # until the refresh is due
    harvest("annotate", page, "keywords=leviathan")
    assert len(harvest.lines("search", "leviathan")) == 1
    assert not harvest.lines("search", "Queequeg OR rewritten")
    (table,) = harvest.lines("gather")
    assert (table["added"], table["changed"]) == (1, 1)
    assert len(harvest.lines("search", "Queequeg OR (rewritten leviathan)")) == 2


def test_no_roots(harvest: Any, gathered: Path) -> None:
    """A data folder without roots says so, on standard error."""
    harvest("roots", "remove", gathered)
    result = harvest("roots", "list")
    assert (result.stdout, result.stderr) == ("", "harvest: no roots in harvest-data (harvest roots add ROOT)\n")


def test_a_root_that_does_not_answer(harvest: Any, gathered: Path) -> None:
    """A root of an earlier run that cannot be gathered is told with what would end that; one that is named just now is not."""
    gathered.rename(gathered.with_name("elsewhere"))
    assert "(harvest roots remove, if it is not coming back)\n" in harvest("gather", code=1).stderr
    assert "roots remove" not in harvest("gather", gathered, code=1).stderr


def test_roots(harvest: Any, gathered: Path, tmp_path: Path) -> None:
    """Roots accumulate; one that is added is gathered by the next run, one that is removed takes along what it alone asked for."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "b.txt").write_text("Queequeg\n")
    harvest("roots", "add", other, "--depth", "5")
    assert [r["url"] for r in harvest.lines("roots", "list")] == [f"file://{other}/", f"file://{gathered}/"]
    changed = f"harvest: file://{other}/: its limits were depth 5, and are none now (--depth, --max-urls)\n"
    assert [harvest("roots", "add", other).stderr for _ in range(2)] == [changed, ""]
    harvest("gather")
    assert len(harvest.lines("search", "Queequeg")) == 1
    harvest("roots", "remove", gathered)
    assert [r["url"] for r in harvest.lines("roots", "list")] == [f"file://{other}/"]
    assert not harvest.lines("search", "Ishmael")
    assert len(harvest.lines("search", "Queequeg")) == 1
    assert "not a root" in harvest("roots", "remove", gathered, code=1).stderr


def test_paused_roots(harvest: Any, gathered: Path) -> None:
    """A paused root keeps what it has, and is left out until it is resumed."""
    harvest("roots", "pause", gathered)
    assert [r["state"] for r in harvest.lines("roots", "list")] == ["paused"]
    assert "no ROOT given, and all of harvest-data are paused (harvest roots resume)" in harvest("gather", code=2).stderr
    assert len(harvest.lines("search", "Ishmael")) == 1
    said = harvest("roots", "add", gathered).stderr
    assert said == f"harvest: file://{gathered}/: is paused still (harvest roots resume ROOT)\n"
    harvest("roots", "resume", gathered)
    assert harvest("roots", "add", gathered).stderr == ""
    harvest("gather")


def test_rejected(harvest: Any, tmp_path: Path) -> None:
    """What is damaged is listed with stage, reason and origin, until a later attempt succeeds or the file is gone."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    for name in ("a.tar.gz", "b.tar.gz"):
        (folder / name).write_bytes(b"\x1f\x8b\x08\x00 this is no gzip")
    harvest("gather", folder)
    listed = harvest.lines("rejected", "list")
    assert [set(line) for line in listed] == [{"stage", "reason", "url", "path", "time"}] * 2
    assert [(line["stage"], line["url"]) for line in listed] == [("essence", f"file://{folder}/{n}.tar.gz") for n in "ab"]
    assert listed[0]["reason"] in harvest("rejected", "list").stdout
    assert listed[0]["reason"] in harvest("rejected", "show", folder / "a.tar.gz").stdout
    assert [h["type"] for h in harvest.lines("search", f"url:file://{folder}/a.tar.gz")] == ["Unrecognized"]
    harvest("gather", folder)
    assert len(harvest.lines("rejected", "list")) == 2
    said = harvest("rejected", "retry", "--all").stderr
    assert "2 records put back" in said
    assert "2 of them rejected again" in said
    assert listed[0]["reason"] in said
    assert len(harvest.lines("rejected", "list")) == 2
    (folder / "a.tar.gz").write_text("now a text\n")
    (folder / "b.tar.gz").unlink()
    harvest("gather", folder)
    assert not harvest.lines("rejected", "list")
    assert "not rejected" in harvest("rejected", "show", folder / "a.tar.gz", code=1).stderr


def test_index_rebuild(harvest: Any, gathered: Path, tmp_path: Path) -> None:
    """The index made anew answers as the old one did, also where the old one was damaged or lost."""
    queries = ("whale", "Ishmael", "*")

    def found() -> list[list[dict[str, Any]]]:
        # Without the scores: they count what was replaced, until it is merged away.
        return [[{k: v for k, v in hit.items() if k != "score"} for hit in harvest.lines("search", q, "--copies")] for q in queries]

    before = found()
    assert "3 summaries indexed" in harvest("index", "rebuild").stderr
    assert found() == before
    index = tmp_path / "harvest-data" / "index" / "main"
    (index / "meta.json").write_text("nonsense")
    assert "index cannot be read" in harvest("search", "whale", code=1).stderr
    harvest("index", "rebuild")
    assert found() == before
    assert [path.name for path in index.parent.iterdir()] == ["main"]
    (table,) = harvest.lines("gather", gathered)
    assert table["nothing_changed"]


def test_topics_and_cat(harvest: Any, gathered: Path) -> None:
    """Topics are listed with their offsets; a record is printed with its place and its fields under their Avro names."""
    topics = {line["topic"]: line for line in harvest.lines("topics", "list")}
    assert (topics["summaries"]["ends"], topics["summaries"]["keep"]) == ([3], "compact")
    assert {name for name, topic in topics.items() if topic["keep"] == "always"} == {"annotations", "rejected"}
    lines = harvest.lines("cat", "summaries")
    assert set(lines[0]) == {"topic", "partition", "offset", "key", "time", "type", "value"}
    assert {line["type"] for line in lines} == {"Summary"}
    assert {"oid", "url", "path", "type", "md5", "size", "version", "attributes"} <= set(lines[0]["value"])
    assert [line["offset"] for line in lines] == [0, 1, 2]
    assert [line["offset"] for line in harvest.lines("cat", "summaries", "--from", 1, "--limit", 1, "--partition", 0)] == [1]
    (gathered / "page.html").unlink()
    harvest("gather", gathered)
    assert harvest.lines("cat", "summaries")[-1]["value"]["removed"] is True
    assert harvest("cat", "crawl").stdout.startswith("crawl/0@0 CrawlEvent {")
    assert " 1 partition  " in harvest("topics", "list").stdout
    assert "no such topic" in harvest("cat", "nothing", code=1).stderr
    assert "it has 1 partition, counted from 0" in harvest("cat", "crawl", "--partition", 1, code=1).stderr


def test_lag(harvest: Any, gathered: Path) -> None:
    """A stage is behind by what it has not read; after a run none is, the index included, until something is appended."""

    def behind() -> dict[tuple[str, str], int]:
        lines = harvest.lines("topics", "lag")
        return {(line["group"], line["topic"]): line["lag"] for line in lines if line["lag"]}

    assert not behind()
    assert ("index.main", "broker.main") in {(line["group"], line["topic"]) for line in harvest.lines("topics", "lag")}
    harvest("roots", "add", gathered / "notes")
    assert behind() == {("frontier", "crawl"): 1}
    assert f"{'frontier':<18} {'crawl':<18}            1 to read\n" in harvest("topics", "lag").stdout


def test_summarize(harvest: Any, tree: Path, tmp_path: Path, nested: Callable[[Mapping[str, bytes]], bytes]) -> None:
    """Essence alone gives what `gather` gives, for files, folders and what is nested, and leaves nothing behind."""
    (tree / "big.zip").write_bytes(nested({"x.txt": b"one\n", "noise": bytes(range(256)) * 400}))
    (tree / ".DS_Store").write_text("not selected")
    lines = harvest.lines("summarize", tree)
    assert all(set(line) == {"url", "type", "attributes"} for line in lines)
    assert not (tmp_path / "harvest-data").exists()
    records = [to_record(template) for template in parse(harvest("summarize", tree, "--jobs", 2).stdout.encode())]
    assert [record.url for record in records] == [line["url"] for line in lines]
    harvest("gather", tree)
    assert {line["url"]: line["attributes"] for line in lines} == {
        line["value"]["url"]: line["value"]["attributes"] for line in harvest.lines("cat", "summaries")
    }
    assert harvest.lines("summarize", tree / ".DS_Store")


def test_summarize_what_cannot_be(harvest: Any, tree: Path) -> None:
    """A path that is not there is one line and exit code 1, the others are summarized; so is a damaged file, with a note."""
    result = harvest("summarize", "missing", tree / "page.html", "--json", code=1)
    assert json.loads(result.stdout)["type"] == "HTML"
    assert result.stderr == "harvest: missing: No such file or directory\n"
    (tree / "bad.gz").write_bytes(b"\x1f\x8b\x08\x00 this is no gzip")
    result = harvest("summarize", tree / "bad.gz", "--json")
    assert json.loads(result.stdout)["type"] == "Unrecognized"
    assert f"harvest: file://{tree}/bad.gz: " in result.stderr


def test_summarize_what_goes_away(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that goes away while it waits for its turn is one line, and ends nothing."""
    url = f"file://{tmp_path}/gone.bin"
    seen = FetchedObject(url=url, version=1, time=1, outcome="fetched", blob="00", root=Root(url=url, run=""))
    alone = StandaloneSummarize(Settings(), json=False)
    asyncio.run(alone._one(cast("Pool", None), seen)).tell()
    assert capsys.readouterr() == ("", f"harvest: {url}: No such file or directory\n")


def test_summarize_what_is_refused(harvest: Any, tree: Path) -> None:
    """A file that is named and not selected by its type gives no summary, and the rule is told; of a folder it is told how many."""
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


def test_doctor(harvest: Any, gathered: Path) -> None:
    """Each check is an object with check, ok and detail; the safety layers and the data folder are among them."""
    process = harvest.start("doctor", "--json")
    out, _ = process.communicate()
    checks = {line["check"]: line for line in map(json.loads, out.splitlines())}
    assert all(set(line) == {"check", "ok", "detail"} for line in checks.values())
    assert {"python", "libmagic", "sqlite", "data folder", "disk space", "sandbox: limits"} <= set(checks)
    assert process.returncode == (0 if all(line["ok"] for line in checks.values()) else 1)


def test_doctor_tells_the_limits_in_force(harvest: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said of the limits is what the settings, from wherever they come, give to the processes that parse."""
    monkeypatch.setenv("HARVEST_SANDBOX_CPU", "5")
    (harvest.folder / "harvest.toml").write_text("[sandbox]\nmemory = 419430400\nfiles = 33\n")
    out, _ = harvest.start("doctor", "--json").communicate()
    (limits,) = (line["detail"] for line in map(json.loads, out.splitlines()) if line["check"] == "sandbox: limits")
    assert limits.startswith("memory 400 MiB beyond the ")
    assert "33 open files" in limits
    assert "an object 5 s of CPU time" in limits


def test_describe(harvest: Any) -> None:
    """The topology is drawn from the value that the runners execute: each stage and topic of it."""
    drawn = topology(TopologySettings())
    text, drawing = harvest("describe").stdout, harvest("describe", "--mermaid").stdout
    assert (text, drawing) == (describe.plain(drawn).rstrip("\n") + "\n", describe.mermaid(drawn))
    for stage in topology(TopologySettings()).stages:
        assert stage.name in text
        assert stage.name in drawing
    for topic in topology(TopologySettings()).topics:
        assert topic.name in text
    assert drawing.startswith("flowchart LR\n")


def test_version(harvest: Any) -> None:
    """The program tells its version."""
    assert re.fullmatch(r"harvest \d+\.\d+\.\d+\S*\n", harvest("--version").stdout)


@pytest.mark.parametrize("command", [("gather",), ("search",), ("roots", "add")])
def test_help_tells_defaults(harvest: Any, command: tuple[str, ...]) -> None:
    """The help tells where the data folder and the settings are, and which limits a root has, unless it is told."""
    shown = " ".join(harvest(*command, "--help").stdout.replace("│", "").split())
    assert "(default: harvest-data)" in shown
    assert "(default: harvest.toml, if it is there)" in shown
    if command != ("search",):
        assert "10,000 for http and https, none for files" in shown
        assert "A lower limit than before removes nothing" in shown


def test_used_wrongly(harvest: Any) -> None:
    """An unknown command, option or value is told with the usage, exit code 2."""
    for arguments in (("nothing",), ("search",), ("search", "x", "--nothing"), ("search", "x", "--limit", "many"), ("gather",)):
        assert harvest(*arguments, code=2).stderr


@pytest.mark.parametrize("command", ["gather", "show", "why", "summarize"])
def test_names_that_are_too_long(harvest: Any, gathered: Path, command: str) -> None:
    """A URL or a path that is longer than any is one line."""
    for name in ("http://a.example/" + "a" * 5_000, "a" * 5_000):
        assert harvest(command, name, code=1).stderr.count("\n") == 1


def test_limits_that_no_root_has(harvest: Any, gathered: Path) -> None:
    """A limit that no record could hold is a mistake in one line."""
    for option in ("--depth", "--max-urls"):
        assert "a limit is at most" in harvest("gather", gathered, option, 10**30, code=2).stderr
        assert "a limit is at most" in harvest("gather", option, 10**30, code=2).stderr
        assert "a limit is at most" in harvest("roots", "add", gathered, option, 10**30, code=2).stderr
