"""The commands other than `gather`: their output and their errors."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from schemas.soif import parse
from schemas.soif_summary import to_record
from streams.cli.app import PANELS
from streams.topology import describe
from streams.topology.flow import TopologySettings, topology


@pytest.fixture
def gathered(harvest: Any, tree: Path) -> Path:
    """The sample tree, after `harvest gather`."""
    harvest("gather", tree, "--quiet")
    return tree


def test_search_prints_hits_with_copies_and_count(harvest: Any, gathered: Path) -> None:
    """A hit shows its URL, title, type and snippet, and its copies; the number of hits goes to standard error."""
    result = harvest("search", "Ishmael")
    first, copy = sorted([f"file://{gathered}/notes/a.txt", f"file://{gathered}/notes/copy.txt"], key=len)
    assert result.stdout.splitlines()[0] == first
    assert f"  copy: {copy}" in result.stdout.splitlines()
    assert result.stderr == "1 found\n"
    assert "\x02" not in result.stdout
    assert harvest("search", "*", "--limit", 1).stderr == "2 found, 1 shown\n"


def test_title_is_not_repeated_in_the_snippet(harvest: Any, tree: Path) -> None:
    """A text whose first line is its title is shown with that line once; the snippet is the text that follows."""
    (tree / "notes" / "b.txt").write_text("The whale\n\nIt blows, the whale.\n")
    harvest("gather", tree / "notes", "--quiet")
    assert harvest("search", "Ishmael").stdout.count("Ishmael") == 1
    assert harvest("search", "whale").stdout.splitlines()[2] == "  It blows, the whale."


def test_search_prints_json_objects(harvest: Any, gathered: Path) -> None:
    """A hit is an object with oid, url, title, type, score and snippet, and with copies if it has any."""
    (hit,) = harvest.lines("search", "whale")
    assert set(hit) == {"oid", "url", "title", "type", "score", "snippet"}
    assert (hit["title"], hit["type"], hit["url"]) == ("Moby", "HTML", f"file://{gathered}/page.html")
    assert harvest("search", "*", "--limit", 1, "--json").stderr == "2 found, 1 shown\n"
    (hit,) = harvest.lines("search", "Ishmael")
    assert (len(hit["copies"]), hit["copies_count"]) == (1, 1)
    assert not harvest.lines("search", "nowhere")


def test_malformed_query_is_an_error_of_one_line(harvest: Any, gathered: Path) -> None:
    """A malformed query is an error of one line, exit code 2."""
    result = harvest("search", "whale AND", code=2)
    assert (result.stdout, result.stderr.count("\n")) == ("", 1)


@pytest.mark.parametrize("command", [("search", "x"), ("show", "x"), ("why", "x"), ("roots", "list"), ("index", "rebuild")])
def test_missing_data_folder_is_an_error_and_not_created(harvest: Any, command: tuple[str, ...], tmp_path: Path) -> None:
    """A command that reads a missing data folder ends with an error of one line and exit code 1, and creates no folder."""
    result = harvest(*command, code=1)
    assert result.stderr.startswith("harvest: harvest-data: no ")
    assert not (tmp_path / "harvest-data").exists()


def test_show_accepts_url_path_or_oid(harvest: Any, gathered: Path) -> None:
    """A summary is shown by URL, path or OID, as SOIF that can be parsed again, or as its record."""
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


def test_why_lists_events_of_object_and_member(
    harvest: Any, tmp_path: Path, nested: Callable[[Mapping[str, bytes]], bytes]
) -> None:
    """The history of an archive member lists the events of its object and its own, in order, up to its removal."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "a.zip").write_bytes(nested({"x.txt": b"one\n"}))
    harvest("gather", folder)
    (folder / "a.zip").unlink()
    assert f"{folder}/a.zip for one" in harvest("gather", folder, code=1).stderr
    assert "its removal is in doubt" in harvest("why", f"{folder}/a.zip").stderr
    harvest("gather", "--accept-removals", folder)
    events = harvest.lines("why", f"{folder}/a.zip#inner.tar.gz#x.txt")
    assert [(e["topic"], e["event"].split(",")[0]) for e in events if e["topic"] in ("objects", "summaries")] == [
        ("objects", "fetched"),
        ("summaries", "summary of type RawText"),
        ("objects", "gone"),
        ("summaries", "removed"),
    ]
    assert events[-1]["time"] >= events[0]["time"]
    assert "no such file or folder" in harvest("why", f"{folder}/a.zip").stdout
    assert "nothing is known" in harvest("why", "http://example.org/", code=1).stderr


def test_annotation_is_found_and_survives_a_new_summary(harvest: Any, gathered: Path) -> None:
    """An annotation is found at once, survives a change of the file, and can be removed."""
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
def test_annotation_of_reserved_attribute_is_refused(harvest: Any, gathered: Path, name: str) -> None:
    """An annotation of a reserved attribute is refused as a usage error, and nothing is written."""
    said = " ".join(harvest("annotate", gathered, f"{name}=x", "rating=5", code=2).stderr.split())
    assert "no description changes what a summary is" in said
    assert not harvest.lines("cat", "annotations")


def test_annotate_leaves_gathering_to_the_next_run(
    harvest: Any, gathered: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`annotate` does not gather: an added root and a due refresh are left to the next run."""
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


def test_roots_list_reports_an_empty_list(harvest: Any, gathered: Path) -> None:
    """For a data folder without roots `roots list` prints a note to standard error."""
    harvest("roots", "remove", gathered)
    result = harvest("roots", "list")
    assert (result.stdout, result.stderr) == ("", "harvest: no roots in harvest-data (harvest roots add ROOT)\n")


def test_missing_earlier_root_advises_removal(harvest: Any, gathered: Path) -> None:
    """The error about a missing root of an earlier run advises `roots remove`; that about a root of this command line does not."""
    gathered.rename(gathered.with_name("elsewhere"))
    assert "(harvest roots remove, if it is not coming back)\n" in harvest("gather", code=1).stderr
    assert "roots remove" not in harvest("gather", gathered, code=1).stderr


def test_roots_accumulate_and_are_removed_with_their_objects(harvest: Any, gathered: Path, tmp_path: Path) -> None:
    """Roots accumulate; the next run gathers an added one, and a removed one takes the objects that only it reached with it."""
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


def test_paused_root_keeps_summaries_until_resumed(harvest: Any, gathered: Path) -> None:
    """A paused root keeps its summaries and is not gathered until it is resumed."""
    harvest("roots", "pause", gathered)
    assert [r["state"] for r in harvest.lines("roots", "list")] == ["paused"]
    assert "no ROOT given, and all of harvest-data are paused (harvest roots resume)" in harvest("gather", code=2).stderr
    assert len(harvest.lines("search", "Ishmael")) == 1
    said = harvest("roots", "add", gathered).stderr
    assert said == f"harvest: file://{gathered}/: is paused still (harvest roots resume ROOT)\n"
    harvest("roots", "resume", gathered)
    assert harvest("roots", "add", gathered).stderr == ""
    harvest("gather")


def test_rejection_is_listed_until_success_or_deletion(harvest: Any, tmp_path: Path) -> None:
    """A damaged file is listed with stage, reason and origin until a later attempt succeeds or the file is deleted."""
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
    assert [h["type"] for h in harvest.lines("search", f"url:file://{folder}/a.tar.gz")] == ["GNUCompressed"]
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


def test_rebuilt_index_gives_the_same_answers(harvest: Any, gathered: Path, tmp_path: Path) -> None:
    """A rebuilt index gives the same answers as the old one, also if the old one was damaged."""
    queries = ("whale", "Ishmael", "*")

    def found() -> list[list[dict[str, Any]]]:
        # Scores are left out: they count replaced documents until these are merged away.
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


def test_topics_list_offsets_and_cat_prints_records(harvest: Any, gathered: Path) -> None:
    """Topics are listed with their offsets; a record is printed with its position and its fields under their Avro names."""
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


def test_lag_counts_unread_records(harvest: Any, gathered: Path) -> None:
    """The lag of a stage is the number of unread records: 0 for every stage after a run, the index included, until an append."""

    def behind() -> dict[tuple[str, str], int]:
        lines = harvest.lines("topics", "lag")
        return {(line["group"], line["topic"]): line["lag"] for line in lines if line["lag"]}

    assert not behind()
    assert ("index.main", "broker.main") in {(line["group"], line["topic"]) for line in harvest.lines("topics", "lag")}
    harvest("roots", "add", gathered / "notes")
    assert behind() == {("frontier", "crawl"): 1}
    assert f"{'frontier':<18} {'crawl':<18}            1 to read\n" in harvest("topics", "lag").stdout


def test_doctor_prints_checks_as_json(harvest: Any, gathered: Path) -> None:
    """Each check is an object with check, ok and detail; the sandbox layers and the data folder are checked."""
    process = harvest.start("doctor", "--json")
    out, _ = process.communicate()
    checks = {line["check"]: line for line in map(json.loads, out.splitlines())}
    assert all(set(line) == {"check", "ok", "detail"} for line in checks.values())
    assert {"python", "libmagic", "sqlite", "data folder", "disk space", "sandbox: limits"} <= set(checks)
    assert process.returncode == (0 if all(line["ok"] for line in checks.values()) else 1)


def test_doctor_reports_the_limits_in_force(harvest: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """`doctor` reports the limits that the settings, from file and environment, give to the parser processes."""
    monkeypatch.setenv("HARVEST_SANDBOX_CPU", "5")
    (harvest.folder / "harvest.toml").write_text("[sandbox]\nmemory = 419430400\nfiles = 33\n")
    out, _ = harvest.start("doctor", "--json").communicate()
    (limits,) = (line["detail"] for line in map(json.loads, out.splitlines()) if line["check"] == "sandbox: limits")
    assert limits.startswith("memory 400 MiB beyond the ")
    assert "33 open files" in limits
    assert "an object 5 s of CPU time" in limits


def test_describe_draws_the_executed_topology(harvest: Any) -> None:
    """`describe` draws the topology that the runners execute, with each of its stages and topics."""
    drawn = topology(TopologySettings())
    text, drawing = harvest("describe").stdout, harvest("describe", "--mermaid").stdout
    assert (text, drawing) == (describe.plain(drawn).rstrip("\n") + "\n", describe.mermaid(drawn))
    for stage in topology(TopologySettings()).stages:
        assert stage.name in text
        assert stage.name in drawing
    for topic in topology(TopologySettings()).topics:
        assert topic.name in text
    assert drawing.startswith("flowchart LR\n")


def test_version_is_printed(harvest: Any) -> None:
    """`--version` prints the version."""
    assert re.fullmatch(r"harvest \d+\.\d+\.\d+\S*\n", harvest("--version").stdout)


@pytest.mark.parametrize("command", [("gather",), ("search",), ("roots", "add")])
def test_help_states_defaults(harvest: Any, command: tuple[str, ...]) -> None:
    """The help states the default data folder and settings file, and the default limits of a root."""
    shown = " ".join(harvest(*command, "--help").stdout.replace("│", "").split())
    assert "(default: harvest-data)" in shown
    assert "(default: harvest.toml, if it is there)" in shown
    if command != ("search",):
        assert "10,000 for http and https, none for files" in shown
        assert "A lower limit than before removes nothing" in shown


def test_help_groups_the_commands(harvest: Any) -> None:
    """`--help` shows each command once, in one of five groups: search, gather, look, operate, Kafka."""
    groups = re.split(r"─ (\w+) ─", harvest("--help").stdout)
    shown = {head: re.findall(r"(?m)^│ ([a-z]+) ", body) for head, body in zip(groups[1::2], groups[2::2], strict=True)}
    assert list(shown) == ["Options", *PANELS]
    assert {head: tuple(names) for head, names in shown.items() if head in PANELS} == {n: (*each,) for n, each in PANELS.items()}
    assert {"Search", "Gather", "Look", "Operate", "Kafka"} == PANELS.keys()


def test_usage_errors_exit_with_2(harvest: Any) -> None:
    """An unknown command, option or value is a usage error, exit code 2."""
    for arguments in (("nothing",), ("search",), ("search", "x", "--nothing"), ("search", "x", "--limit", "many"), ("gather",)):
        assert harvest(*arguments, code=2).stderr


@pytest.mark.parametrize("command", ["gather", "show", "why", "summarize"])
def test_too_long_name_is_an_error_of_one_line(harvest: Any, gathered: Path, command: str) -> None:
    """A URL or a path that is too long is an error of one line, exit code 1."""
    for name in ("http://a.example/" + "a" * 5_000, "a" * 5_000):
        assert harvest(command, name, code=1).stderr.count("\n") == 1


def test_too_large_limit_is_a_usage_error(harvest: Any, gathered: Path) -> None:
    """A limit too large for a record is a usage error."""
    for option in ("--depth", "--max-urls"):
        assert "a limit is at most" in harvest("gather", gathered, option, 10**30, code=2).stderr
        assert "a limit is at most" in harvest("gather", option, 10**30, code=2).stderr
        assert "a limit is at most" in harvest("roots", "add", gathered, option, 10**30, code=2).stderr


def test_import_without_roots_is_read_by_gather(harvest: Any, gathered: Path, tmp_path: Path) -> None:
    """`gather` without roots reads what was imported into a new data folder."""
    harvest("export", "summaries", "s.avro")
    harvest("import", "s.avro", "--data", "fresh")
    assert "what was imported has been read" in harvest("gather", "--data", "fresh").stderr
    assert len(harvest.lines("search", "*", "--copies", "--data", "fresh")) == len(harvest.lines("search", "*", "--copies"))


def test_index_folder_survives_a_refused_command(harvest: Any, gathered: Path) -> None:
    """A folder that holds an index alone can be made again after a command that needs a data folder was refused there."""
    harvest("replay", "--to", "out", "--quiet")
    harvest("gather", gathered, "--data", "out", code=1)
    assert [path.name for path in Path("out").iterdir()] == ["index"]
    harvest("replay", "--to", "out", "--quiet")
