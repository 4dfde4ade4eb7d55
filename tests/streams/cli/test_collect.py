"""`harvest collect`: two Gatherers on this machine, one of which serves its database and one that collects it."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from streams.cli.commands.collect import collected_url, seconds
from streams.cli.common import Failure

Found = dict[str, tuple[str, str, str]]


def summaries(harvest: Any, data: str) -> Found:
    """Return type, digest and size of the summaries that a Gatherer has, by the URL of what they describe."""
    live: dict[str, dict[str, Any]] = {}
    for line in harvest.lines("cat", "summaries", "--data", data):
        value = line["value"]
        live.pop(line["key"], None)
        if value is not None and not value.get("removed"):
            live[line["key"]] = value
    return {one.get("location") or one["url"]: (one["type"], one["md5"], str(one["size"])) for one in live.values()}


@contextmanager
def gateway(harvest: Any, data: str) -> Iterator[str]:
    """Serve a data folder, and return the URL of the gateway."""
    process = harvest.start("serve", "--data", data, "--port", "0")
    try:
        line = next(text for raw in process.stderr if (text := raw.decode()).startswith("harvest: search at"))
        yield line.split()[3].rstrip(";")
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def test_collector_equals_the_source(harvest: Any, tree: Path) -> None:
    """After additions, changes, removals, and a source that made its stream anew, the collector has what the source has."""
    harvest("gather", tree, "--data", "source", "--gatherer", "source", "--quiet")
    with gateway(harvest, "source") as url:
        asked = ("collect", url, "--data", "collector", "--gatherer", "us", "--allow", "127.0.0.0/8", "--pause", "0", "--quiet")
        harvest(*asked)
        assert summaries(harvest, "collector") == summaries(harvest, "source")
        (hit,) = harvest.lines("search", "title:Moby", "--data", "collector")
        assert hit["url"] == (tree / "page.html").as_uri()
        # Nothing of it is known here, or opened: only its summary was collected.
        shown = harvest("show", hit["oid"], "--data", "collector").output
        assert "foreign-gatherer{6}:\tsource" in shown
        assert harvest("show", tree / "page.html", "--data", "collector").output == shown
        (tree / "notes" / "copy.txt").unlink()
        (tree / "page.html").write_text("<html><title>Ahab</title><body>The captain.</body></html>")
        (tree / "new.txt").write_text("A new one.\n")
        harvest("gather", "--data", "source", "--quiet")
        harvest(*asked)
        assert summaries(harvest, "collector") == summaries(harvest, "source")
        assert not harvest.lines("search", "title:Moby", "--data", "collector")
        (tree / "new.txt").unlink()
        harvest("gather", "--data", "source", "--quiet")
        # As if the collector came back after the removal retention: its marks are unknown.
        shutil.rmtree(Path("source", "feed"))
        harvest(*asked)
        assert summaries(harvest, "collector") == summaries(harvest, "source")
        assert not harvest.lines("rejected", "list", "--data", "collector")


def streams(harvest: Any, data: str) -> list[tuple[int, int]]:
    """Return status and size of the streams that a Gatherer has collected, in their order."""
    found = [line["value"] for line in harvest.lines("cat", "objects", "--data", data)]
    return [(one["status"], one["size"]) for one in found if "/gatherer/soif/" in one["url"] and not one["url"].endswith("/")]


@pytest.mark.slow(12)
def test_one_change_costs_a_small_part(harvest: Any, tmp_path: Path) -> None:
    """A second pass after one change and one removal receives those alone, and the collector has what the source has."""
    root = tmp_path / "many"
    root.mkdir()
    for number in range(200):
        (root / f"{number}.txt").write_text(f"The text number {number}, about {number * number}.\n" * 20)
    harvest("gather", root, "--data", "source", "--gatherer", "source", "--quiet")
    with gateway(harvest, "source") as url:
        asked = ("collect", url, "--data", "collector", "--gatherer", "us", "--allow", "127.0.0.0/8", "--pause", "0", "--quiet")
        harvest(*asked)
        first = streams(harvest, "collector")
        assert {status for status, _ in first} == {200}
        (root / "7.txt").write_text("Another text.\n")
        (root / "8.txt").unlink()
        harvest("gather", "--data", "source", "--quiet")
        harvest(*asked)
        second = streams(harvest, "collector")[len(first) :]
        assert {status for status, _ in second} == {226}
        assert 0 < sum(size for _, size in second) < sum(size for _, size in first) / 20
        assert summaries(harvest, "collector") == summaries(harvest, "source")
        assert not harvest.lines("rejected", "list", "--data", "collector")
    (removed,) = [one["value"] for one in harvest.lines("cat", "summaries", "--data", "collector") if one["value"].get("removed")]
    printed = harvest("why", removed["url"], "--data", "collector").stdout
    assert "withdrawn: its Gatherer states that it is gone" in printed
    assert "a stream of changes: the rest is kept" in printed


@pytest.mark.parametrize("path", ["", "/", "/gatherer", "/gatherer/", "/gatherer/soif", "/gatherer/soif/"])
@pytest.mark.parametrize("gateway", ["http://host:8380", "https://gatherer", "http://host/search", "http://host/gatherer/search"])
def test_url_of_a_gateway(gateway: str, path: str) -> None:
    """A gateway is named by its own URL, or by that of its database, its stream or the listing of the parts."""
    assert collected_url(gateway + path) == f"{gateway}/gatherer/soif/"


@pytest.mark.parametrize("text", ["host", "ftp://host/", "http://", "http://host/?q=1", "http://user:word@host/", "file:///srv/"])
def test_what_is_no_gateway(text: str) -> None:
    """Anything but the URL of a web server is a usage error; so is one with a password, which would not be sent."""
    with pytest.raises(Failure, match="gateway"):
        collected_url(text)


def test_interval() -> None:
    """An interval is a number with a unit."""
    assert [seconds(text) for text in ("30m", "1h", "7d", "2w", "90", "5s")] == [1_800, 3_600, 604_800, 1_209_600, 90, 5]
    for text in ("", "h", "0h", "-1h", "1.5h", "1y"):
        with pytest.raises(Failure, match="--every"):
            seconds(text)


def test_gateway_is_named_as_it_was_given(harvest: Any) -> None:
    """`harvest roots` takes the URL that `harvest collect` was given, also where the gateway does not answer any more."""
    gone = "http://127.0.0.1:9/"
    asked = ("--allow", "127.0.0.0/8", "--pause", "0", "--quiet")
    harvest("collect", gone, *asked, code=1)
    assert f'url = "{gone}gatherer/soif/"' in harvest("roots", "show", gone).stdout
    harvest("roots", "remove", gone)
    assert harvest.lines("roots", "list") == []
