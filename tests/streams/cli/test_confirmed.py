"""`harvest gather` with a Broker that has a time-to-live: what is unchanged is confirmed to it."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest

from processors.broker.definition import Broker
from streams.config.topology import confirmed_every

pytestmark = pytest.mark.slow

SHORT = "[brokers.short]\nttl = 1\n"


def summaries(harvest: Any, topic: str) -> dict[str, dict[str, Any]]:
    """The last summary of each URL in a topic."""
    return {each["value"]["url"]: each["value"] for each in harvest.lines("cat", topic) if each["value"]}


def gathered_twice(harvest: Any, folder: Path) -> tuple[dict[str, dict[str, Any]], str]:
    """Gather a folder, and again half a second later; return the summaries after the first run, and the report of the second."""
    (folder / "below").mkdir(parents=True)
    (folder / "a.txt").write_text("whales\n")
    (folder / "below" / "b.txt").write_text("more whales\n")
    harvest("gather", folder)
    first = summaries(harvest, "summaries")
    time.sleep(0.6)
    return first, harvest("gather", folder).stderr


def test_unchanged_files_are_confirmed(harvest: Any, tmp_path: Path) -> None:
    """The second run publishes unchanged files with a new time under their version, also to the Broker, and counts as before."""
    Path("harvest.toml").write_text(SHORT)
    first, said = gathered_twice(harvest, tmp_path / "corpus")
    for topic in ("summaries", "broker.short"):
        then = summaries(harvest, topic)
        assert len(then) == len(first) == 2
        assert all(then[url]["version"] == each["version"] and then[url]["time"] > each["time"] for url, each in first.items())
    assert "nothing changed" in said
    assert re.search(r"objects unchanged +2\n", said)


def test_nothing_is_confirmed_without_a_time_to_live(harvest: Any, tmp_path: Path) -> None:
    """Without a Broker's time-to-live, the second run writes nothing about unchanged files."""
    first, _ = gathered_twice(harvest, tmp_path / "corpus")
    assert summaries(harvest, "summaries") == first


def test_half_of_the_shortest_time_to_live_counts() -> None:
    """Confirmations go on after half of the shortest time-to-live; without one, never."""
    assert confirmed_every((Broker(),)) is None
    assert confirmed_every((Broker(), Broker("a", ttl=7), Broker("b", ttl=3_600))) == 3_500
