from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from processors.essence.unnest import Container, plugins, unnesters

SAMPLES = Path(__file__).resolve().parents[3] / "samples" / "unnest"
FILES = sorted(f for f in SAMPLES.glob("*/*") if f.suffix != ".json")


@pytest.mark.parametrize("file", FILES, ids=lambda f: f"{f.parent.name}/{f.name}")
@pytest.mark.parametrize("forward", [False, True], ids=["sought", "streamed"])
def test_sample_gives_its_golden_members(file: Path, forward: bool, read: Callable[..., tuple[list[dict[str, Any]], str]]) -> None:
    """Every sample gives exactly the expected members beside it, read from a file and from a stream."""
    found, problem = read(file.parent.name, file.read_bytes(), forward=forward)
    assert not problem
    assert found == json.loads(file.with_name(file.name + ".json").read_text("utf-8"))


@pytest.mark.parametrize("name", plugins())
def test_every_unnester_has_a_golden_sample(name: str) -> None:
    """An unnester without a sample and its golden members fails the build."""
    samples = [f for f in FILES if f.parent.name == name]
    assert samples
    assert all(f.with_name(f.name + ".json").is_file() for f in samples)


def test_every_sample_has_an_unnester() -> None:
    """Every sample belongs to an existing plug-in."""
    assert {f.parent.name for f in FILES} == set(plugins())


def test_plugins_are_found_by_type() -> None:
    """Each format of Essence and of the issue has an unnester, and no type has two."""
    found = unnesters()
    assert {"Tar", "Zip", "Archive", "GNUCompressed", "Bzip2", "XZ"} <= set(found)
    assert all(isinstance(found[t], Container) for t in ("Tar", "Zip", "Archive"))
