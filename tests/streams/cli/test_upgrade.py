"""Data folders of earlier versions are opened, searched, gathered again and upgraded: of 0.1.0, and of the last with one Broker."""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sinks.feed.reader import FeedReader
from streams.operations.feed import feed_file
from tests.streams.cli.definitions import define

MADE_IN = Path("/var/tmp/harvest-sample-0.1")
"""The folder of the documents when the earlier version gathered them: URLs of files are absolute."""
VERSIONS = ("0.1.0", "one-broker")
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("upgrade")]


@pytest.fixture(params=VERSIONS)
def old(samples: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """The data folder of an earlier version, with its documents at their original path."""
    with tarfile.open(samples / "upgrade" / f"{request.param}.tar.xz") as archive:
        archive.extractall(tmp_path / "old")  # noqa: S202 - a sample of our own
    shutil.rmtree(MADE_IN, ignore_errors=True)
    shutil.copytree(tmp_path / "old" / "docs", MADE_IN / "docs")
    yield tmp_path / "old" / "harvest-data"
    shutil.rmtree(MADE_IN)


def hits(harvest: Any, old: Path, query: str, *options: str) -> dict[str, dict[str, Any]]:
    """Search, and return the hits by the relative part of their URLs."""
    lines = harvest("search", query, "--data", str(old), "--json", "--limit", "50", "--copies", *options).stdout.splitlines()
    return {hit["url"].removeprefix(f"file://{MADE_IN}/docs/"): hit for hit in map(json.loads, lines)}


def test_old_data_folder_is_searched_as_it_is(old: Path, harvest: Any) -> None:
    """Searches, summaries, histories and checks work on an old data folder before anything is written to it."""
    assert set(hits(harvest, old, "whale")) == {"whale.md", "bundle.tar.gz#whale.md", "bundle.tar.gz"}
    assert set(hits(harvest, old, "reviewed:yes")) == {"whale.md"}
    assert "The thistle grows." in harvest("show", f"file://{MADE_IN}/docs/thistle.txt", "--data", str(old)).stdout
    assert "removed: gone" in harvest("why", f"file://{MADE_IN}/docs/quagga.txt", "--data", str(old)).stdout
    assert harvest("doctor", "--data", str(old)).exit_code == 0


def test_old_data_folder_is_gathered_again(old: Path, harvest: Any) -> None:
    """A run over an old data folder keeps OIDs, copies and annotations, and finds what is new."""
    before = hits(harvest, old, "*")
    (MADE_IN / "docs" / "manatee.txt").write_text("The manatee grazes.\n")
    assert harvest("gather", "--data", str(old), "--quiet").exit_code == 0
    after = hits(harvest, old, "*")
    assert set(after) == {*before, "manatee.txt"}
    assert {name: hit["oid"] for name, hit in after.items() if name in before} == {name: hit["oid"] for name, hit in before.items()}
    assert hits(harvest, old, "grows")["copy.txt"]["type"] == "RawText"
    assert set(hits(harvest, old, "reviewed:yes")) == {"whale.md"}


def test_old_data_folder_gains_a_broker(old: Path, harvest: Any) -> None:
    """A Broker that is added to an old data folder gets all summaries of the Gatherer that its query accepts."""
    define("pages", "query = 'type:HTML'", old)
    assert harvest("gather", "--data", str(old), "--quiet").exit_code == 0
    assert set(hits(harvest, old, "*", "--broker", "pages")) == {"squid.html"}
    assert harvest("index", "rebuild", "--broker", "pages", "--data", str(old)).exit_code == 0
    assert set(hits(harvest, old, "*", "--broker", "pages")) == {"squid.html"}


def test_old_data_folder_gains_brokers_with_views_and_a_stream(old: Path, harvest: Any) -> None:
    """Brokers over others get their summaries and copies; views of `main` tag old summaries; what stays is not published again."""
    before = published(harvest, old, "main")
    define("whales", "query = 'whale'", old)
    define("grown", "query = 'grows'\nttl = '520w'", old)
    define("both", "from = ['broker:whales', 'broker:grown']\nstream = true", old)
    assert harvest("view", "create", "main", "sea", "whale", "--data", str(old)).exit_code == 0
    whales = {"whale.md", "bundle.tar.gz#whale.md", "bundle.tar.gz"}
    grown = {"thistle.txt", "copy.txt", "bundle.tar.gz#thistle.txt"}
    for broker, wanted in (("whales", whales), ("grown", grown), ("both", whales | grown)):
        assert set(hits(harvest, old, "*", "--broker", broker)) == wanted
        assert len(published(harvest, old, broker)) >= len(wanted)
    assert set(hits(harvest, old, "view:sea")) == whales
    again = published(harvest, old, "main")[len(before) :]
    assert sorted((one["url"].rpartition("/docs/")[2], *one["views"]) for one in again) == sorted((name, "sea") for name in whales)
    with closing(FeedReader(feed_file(old, "both"))) as reader:
        reader.require_whole()
        assert reader.state().summaries == len(whales | grown)


def published(harvest: Any, old: Path, broker: str) -> list[dict[str, Any]]:
    """The records of a Broker's archive, in order."""
    lines = harvest("cat", f"broker.{broker}", "--data", str(old), "--json").stdout.splitlines()
    return [json.loads(line)["value"] for line in lines]
