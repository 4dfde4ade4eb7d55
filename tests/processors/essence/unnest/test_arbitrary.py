"""Arbitrary bytes: every unnester gives members or raises its own error, and gives the members before a cut."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from processors.essence.formats.container import UnnestLimits
from processors.essence.unnest import Container, plugins

SAMPLES = Path(__file__).resolve().parents[3] / "samples" / "unnest"
FILES = sorted(f for f in SAMPLES.glob("*/*") if f.suffix != ".json")
FIRST = {name: next(f for f in FILES if f.parent.name == name).read_bytes() for name in plugins()}
LIMITS = UnnestLimits(bytes=1 << 22, entries=1_000, member=1 << 22)
FORWARD = ("ar", "cabinet", "cpio", "lha", "macbinary", "rar", "rpm", "tar", "uuencode")
"""Containers that are read from the front, member by member."""

Read = Callable[..., tuple[list[dict[str, Any]], str]]


@pytest.mark.parametrize("name", sorted(FIRST))
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_arbitrary_bytes_raise_only_own_errors(name: str, data: st.DataObject, read: Read) -> None:
    """Any bytes after any start of a sample are read, or are damage with a bounded reason."""
    start = data.draw(st.integers(0, min(len(FIRST[name]), 300)))
    content = FIRST[name][:start] + data.draw(st.binary(max_size=600))
    _, problem = read(name, content, LIMITS, forward=data.draw(st.booleans()))
    assert len(problem) <= 200


@pytest.mark.parametrize("name", sorted(FIRST))
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_flipped_bits_raise_only_own_errors(name: str, data: st.DataObject, read: Read) -> None:
    """Samples with flipped bits are read, or are damage with a bounded reason."""
    content = bytearray(FIRST[name])
    for at in data.draw(st.lists(st.integers(0, len(content) * 8 - 1), min_size=1, max_size=8)):
        content[at // 8] ^= 1 << at % 8
    _, problem = read(name, bytes(content), LIMITS, forward=data.draw(st.booleans()))
    assert len(problem) <= 200


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(sorted(FIRST)), st.integers(0, 8_000), st.binary(max_size=300))
def test_attributes_of_first_bytes_raise_nothing(name: str, start: int, rest: bytes) -> None:
    """The attributes read from the first bytes are text or absent, whatever the bytes are."""
    plugin = plugins()[name]
    about = plugin.about if isinstance(plugin, Container) else None
    assert about is None or all(key and isinstance(value, str) for key, value in about(FIRST[name][:start] + rest))


def _whole(members: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [m for m in members if "error" not in m and m["kind"] == "file"]


@pytest.mark.parametrize("file", [f for f in FILES if f.parent.name in FORWARD], ids=lambda f: f"{f.parent.name}/{f.name}")
def test_truncated_archive_gives_members_before_cut(file: Path, read: Read) -> None:
    """Of a truncated archive, each member without an error is one of the whole archive, and none before the cut is missing."""
    data = file.read_bytes()
    assert isinstance(plugins()[file.parent.name], Container)
    whole = _whole(read(file.parent.name, data)[0])
    counts = []
    for cut in range(1, len(data), max(1, len(data) // 60)):
        found = _whole(read(file.parent.name, data[:cut])[0])
        assert all(m in whole for m in found if m["size"] >= 0)
        counts.append(len(found))
    # A block of compressed data is read whole, or not at all.
    assert max(counts) >= len(whole) - 1 or file.parent.name in ("cabinet", "rpm")
