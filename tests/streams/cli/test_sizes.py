"""What `harvest doctor` says about the bytes of a data folder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from streams.operations.folder_sizes import folder_sizes
from streams.store import Store
from streams.topology.flow import TopologySettings, topology

NAMES = ("sizes", "sizes in the store", "kept for harvest why")


def said(harvest: Any, *arguments: str) -> dict[str, str]:
    """The lines of doctor about sizes, by name."""
    found: Sequence[dict[str, Any]] = [json.loads(line) for line in harvest("doctor", "--json", *arguments).stdout.splitlines()]
    return {line["check"]: line["detail"] for line in found if line["check"] in NAMES}


def test_doctor_says_what_takes_the_bytes(harvest: Any, tree: Path) -> None:
    """Doctor names the large parts of the folder and of its store, and what the retention keeps; without a store it names none."""
    assert said(harvest) == {}
    (tree / "large.txt").write_text("".join(f"The whale number {number:x} is large.\n" for number in range(30_000)))
    harvest("gather", tree, "--quiet")
    found = said(harvest)
    assert set(found) == set(NAMES)
    assert "store.sqlite 0." in found["sizes"]
    assert "blobs 1.0 MB" in found["sizes"]
    assert found["sizes in the store"] == "all small"
    assert found["kept for harvest why"].endswith("MB, bodies 1.0 MB, for 7 days (setting retention)")


def test_sizes_add_up(harvest: Any, tree: Path) -> None:
    """Parts of the store add up to the size of its file, but for pages that describe it; history is part of it."""
    harvest("gather", tree, "--quiet")
    data = harvest.folder / "harvest-data"
    with Store(data, readonly=True) as store:
        sizes = folder_sizes(data, store, topology(TopologySettings()))
    whole, parts = dict(sizes.entries), dict(sizes.store)
    assert whole["index"] == sum(path.stat().st_size for path in (data / "index").rglob("*") if path.is_file())
    assert 0 <= whole["store.sqlite"] - sum(parts.values()) <= 2 * 8_192
    assert {"topic objects", "rows frontier", "summaries"} < set(parts)
    assert 0 < sizes.history < sum(parts.values())
    assert [size for _, size in sizes.store] == sorted(parts.values(), reverse=True)
