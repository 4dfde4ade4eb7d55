"""Encodings: name, mapping of suffixes, content, and bombs."""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
import sys
from collections.abc import Callable, Mapping, Sequence

import pytest

from processors.essence.formats.container import UnnestLimits
from processors.essence.stage import Output
from processors.essence.unnest import Encoding, plugins, stripped
from schemas.records import Partial, Rejected, Summary
from tests.samples.written import encoded

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Run = Callable[..., list[Output]]
Pack = Callable[[Sequence[tuple[str, bytes]]], bytes]

ENCODE: Mapping[str, Callable[[bytes], bytes]] = {
    "bzip2": bz2.compress,
    "compress": lambda data: encoded("compress", data),
    "gzip": gzip.compress,
    "lz4": lambda data: encoded("lz4", data),
    "lzip": lambda data: encoded("lzip", data),
    "xz": lzma.compress,
    "zstandard": zstd.compress,
}
SUFFIX = {"bzip2": ".bz2", "compress": ".Z", "gzip": ".gz", "lz4": ".lz4", "lzip": ".lz", "xz": ".xz", "zstandard": ".zst"}
NAMES = [
    ("a.tar.zst", "zstandard", "a.tar"),
    ("a.tzst", "zstandard", "a.tar"),
    ("a.cpio.zst", "zstandard", "a.cpio"),
    ("a.tar.lz4", "lz4", "a.tar"),
    ("a.tar.Z", "compress", "a.tar"),
    ("a.taz", "compress", "a.tar"),
    ("a.1.Z", "compress", "a.1"),
    ("a.cpio.gz", "gzip", "a.cpio"),
    ("a.cpio.xz", "xz", "a.cpio"),
    ("a.tlz", "xz", "a.tar"),
    ("a.tlz", "lzip", "a.tar"),
    ("a.tar.lz", "lzip", "a.tar"),
    ("a.lzma", "xz", "a"),
    ("A.TAR.BZ2", "bzip2", "A.TAR"),
    (".zst", "zstandard", ".zst"),
]
LIMITS = UnnestLimits(ratio=20, ratio_from=1 << 20)


def test_every_encoding_is_covered() -> None:
    """Every encoding, including a new one, is covered by these tests."""
    assert set(ENCODE) == set(SUFFIX) == {n for n, p in plugins().items() if isinstance(p, Encoding)}


@pytest.mark.parametrize(("name", "plugin", "inner"), NAMES)
def test_encoding_suffix_is_removed(name: str, plugin: str, inner: str) -> None:
    """The suffix of an encoding is removed, and that of a compressed tar becomes `.tar`."""
    encoding = plugins()[plugin]
    assert isinstance(encoding, Encoding)
    assert stripped(name.encode(), encoding) == inner.encode()


@pytest.mark.parametrize("plugin", sorted(ENCODE))
def test_compressed_file_is_summarized_as_its_content(plugin: str, run: Run) -> None:
    """A compressed manual page is a manual page under its name without the suffix."""
    page = b".TH X 1\n.SH NAME\nx \\- a page\n" + b".SH TEXT\nSome words that come again, and again.\n" * 20
    summary = run(ENCODE[plugin](page), "file:///d/x.1" + SUFFIX[plugin])[0]
    assert isinstance(summary, Summary)
    assert (summary.type, summary.attributes["encoding"]) == ("ManPage", (plugins()[plugin].name,))  # type: ignore[union-attr]


@pytest.mark.parametrize("plugin", sorted(ENCODE.keys() - {"compress"}))
def test_truncated_compressed_text_keeps_readable_words(plugin: str, run: Run) -> None:
    """The summary of a truncated text gives the reason, and has the words that could be read.

    The compress format does not mark its end.
    """
    source = random.Random(5)
    lines = 500_000 if plugin == "lz4" else 100_000
    text = b"The first quillwort.\n" + b"".join(b"%d\n" % source.getrandbits(64) for _ in range(lines))
    whole = ENCODE[plugin](text)
    rejected, summary, end = run(whole[: len(whole) * 3 // 4], "file:///d/x.txt" + SUFFIX[plugin])
    assert isinstance(summary, Summary)
    assert str(summary.attributes["partial-text"][0]).startswith("The first quillwort.")
    assert isinstance(rejected, Rejected)
    assert (summary.type, summary.content_type) == ("RawText", "text/plain")
    assert summary.attributes["reason"] == (rejected.reason,)
    assert rejected.reason
    assert isinstance(end, Partial)


@pytest.mark.parametrize("plugin", sorted(ENCODE))
def test_compressed_tar_gives_its_members(plugin: str, run: Run, tar: Pack) -> None:
    """The members of a compressed tar are members of the object, whatever the compression."""
    data = ENCODE[plugin](tar([("doc/a.txt", b"Some words.\n"), ("b.txt", b"Others.\n")]))
    for name in ("x.tar" + SUFFIX[plugin], "x"):
        assert [r.path for r in run(data, "file:///d/" + name) if isinstance(r, Summary)] == ["doc/a.txt", "b.txt", ""]


@pytest.mark.parametrize("plugin", sorted(ENCODE))
def test_bomb_stops_at_its_budget(plugin: str, run: Run) -> None:
    """Compressed zeros spend the budget of their object by ratio, and no more."""
    records = run(ENCODE[plugin](bytes(16 << 20)), "file:///d/x" + SUFFIX[plugin], settings={"limits": LIMITS})
    assert {r.reason for r in records if isinstance(r, Rejected)} == {"gives more than 20 times its own size"}
    assert isinstance(records[-1], Partial)


@pytest.mark.parametrize("plugin", sorted(ENCODE))
def test_nested_bomb_stops_at_its_budget(plugin: str, run: Run) -> None:
    """In data compressed twice, each level counts."""
    records = run(ENCODE[plugin](ENCODE[plugin](bytes(32 << 20))), "file:///d/x", settings={"limits": LIMITS})
    assert {r.reason for r in records if isinstance(r, Rejected)} <= {
        "gives more than 20 times its own size",
        "compressed more than once",
    }
    assert isinstance(records[-1], Partial) or any(isinstance(r, Rejected) for r in records)
