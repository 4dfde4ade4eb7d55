"""Extraction of a member by its path, compared with what Essence summarized."""

from __future__ import annotations

import gzip
import hashlib
import io
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from processors.essence.extract import MemberMissingError, Source, extract
from processors.essence.formats.container import Damaged, Exhausted, UnnestLimits
from processors.essence.stage import Output
from processors.identity import split_url
from schemas.records import Summary
from tests.samples.make_corpus import FIELD_NOTES, NESTED_PATH, bundle

Run = Callable[..., list[Output]]
Pack = Callable[[Sequence[tuple[str, bytes]]], bytes]

SAMPLES = Path(__file__).parents[2] / "samples" / "unnest"
URL = "file:///d/x"


def taken(data: bytes, path: str, url: str = URL, limits: UnnestLimits | None = None, at: list[str] | None = None) -> bytes:
    """Return the bytes of a member."""
    report = at.append if at is not None else lambda _: None
    return b"".join(extract(Source(url, len(data)), io.BytesIO(data), path, limits or UnnestLimits(), report))


@pytest.mark.parametrize("folder", sorted(path.name for path in SAMPLES.iterdir() if path.is_dir()))
def test_members_of_every_format_have_the_bytes_that_were_summarized(folder: str, run: Run) -> None:
    """Every readable member of the sample archives of a format is found under its path, with the digest of its summary."""
    for sample in sorted(path for path in (SAMPLES / folder).iterdir() if path.suffix != ".json"):
        data, url = sample.read_bytes(), f"file:///d/{sample.name}"
        for summary in run(data, url):
            if not isinstance(summary, Summary) or not summary.path or "reason" in summary.attributes or not summary.md5:
                continue
            if summary.content_type == "inode/symlink":
                with pytest.raises(MemberMissingError, match="link in an archive has no bytes"):
                    taken(data, summary.path, url)
            else:
                assert hashlib.md5(taken(data, summary.path, url)).hexdigest() == summary.md5, summary.url


def test_only_the_way_to_a_member_is_opened() -> None:
    """A member three archives deep is found, and of the others only the names before it are read."""
    at: list[str] = []
    _, path = split_url(NESTED_PATH)
    assert taken(bundle(), path, "file:///d/bundle.zip", at=at) == FIELD_NOTES.encode()
    outer, middle, _ = path.split("#")
    assert at == ["CONTENTS.txt", outer, f"{outer}#abstracts.txt", f"{outer}#{middle}", path]


def test_second_member_of_a_name_has_its_own_bytes(tar: Pack) -> None:
    """The suffix ;2 names the second member of a name, as in its summary."""
    data = tar([("a", b"one"), ("b", b"other"), ("a", b"two")])
    assert (taken(data, "a"), taken(data, "a;2")) == (b"one", b"two")


@pytest.mark.parametrize("path", ["c", "a#b", "a/../b", "", "d#e", "b;2"])
def test_path_that_leads_nowhere_is_missing(path: str, tar: Pack) -> None:
    """A path that no member has is reported as missing, also below a file that is no archive."""
    with pytest.raises(MemberMissingError):
        taken(tar([("a", b"one"), ("b", b"two")]), path)


def test_damage_behind_a_member_does_not_affect_it(tar: Pack) -> None:
    """A truncated archive yields the members before the end, and reports the truncation for the others."""
    torn = tar([("a", b"one"), ("b", b"x" * 9_000)])[:4_000]
    assert taken(torn, "a") == b"one"
    with pytest.raises(Damaged, match="truncated"):
        taken(torn, "b")


def test_bomb_on_the_way_exhausts_the_budget(tar: Pack) -> None:
    """A member behind more data than the budget allows is not reached."""
    data = gzip.compress(tar([("zeros", bytes(300_000)), ("a", b"one")]))
    with pytest.raises(Exhausted, match="200 times its own size"):
        taken(data, "a", limits=UnnestLimits(ratio_from=1 << 12))


def test_depth_is_limited() -> None:
    """More nested encodings than the limit are not opened."""
    data = b"words"
    for _ in range(4):
        data = gzip.compress(data)
    with pytest.raises(Damaged, match="deep"):
        taken(data, "a", limits=UnnestLimits(depth=3))
