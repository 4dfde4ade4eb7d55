"""`harvest export summaries FILE.soif.gz`: the stream as a file, from a feed that is filled for it or during gathering."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streams.operations.feed import feed_file, feed_offsets
from tests.sinks.feed.conftest import Stream


def test_stream_is_written_to_a_file(harvest: Any, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All summaries are in the file, or what has changed since a mark; without the setting, gathering makes no feed."""
    harvest("gather", tree, "--quiet")
    assert not feed_file(Path("harvest-data")).exists()
    assert "all summaries written; mark" in harvest("export", "summaries", "all.soif.gz").stderr
    whole = Stream([Path("all.soif.gz").read_bytes()])
    assert {one.url for one in whole.live.values()} == {
        (tree / name).as_uri() for name in ("page.html", "notes/a.txt", "notes/copy.txt")
    }
    (tree / "page.html").unlink()
    (tree / "new.txt").write_text("new\n")
    monkeypatch.setenv("HARVEST_FEED_ENABLED", "true")
    harvest("gather", "--quiet")
    # Applied by the run itself, before it ends.
    assert sum(feed_offsets(Path("harvest-data")).values()) == 5
    harvest("export", "summaries", "since.soif.gz", "--since", whole.end["mark"])
    changes = Stream([Path("since.soif.gz").read_bytes()])
    assert [one.url for one in changes.live.values()] == [(tree / "new.txt").as_uri()]
    assert len(changes.removed) == 1
    harvest("export", "summaries", "age.soif.gz", "--since", "2h")
    assert Stream([Path("age.soif.gz").read_bytes()]).live.keys() >= changes.live.keys()


def test_mistakes_in_since(harvest: Any, tmp_path: Path) -> None:
    """What is neither a mark nor a time is a usage error; so is a mark for a file of another kind."""
    assert "neither a mark nor a time" in harvest("export", "summaries", "x.soif.gz", "--since", "soon", code=2).stderr
    assert "--since: only summaries" in harvest("export", "summaries", "x.avro", "--since", "1", code=2).stderr
    assert "no data" in harvest("export", "summaries", "x.soif.gz", "--data", tmp_path / "none", code=1).stderr
    assert not list(tmp_path.glob("*.soif.gz*"))
