"""Special cases of the formats read through libarchive."""

from __future__ import annotations

import locale
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.samples.written import archive, encoded

SAMPLES = Path(__file__).resolve().parents[3] / "samples" / "unnest"

Read = Callable[..., tuple[list[dict[str, Any]], str]]


@pytest.fixture
def plain_locale() -> Iterator[None]:
    """The locale of a process started with LC_ALL=C."""
    before = locale.setlocale(locale.LC_CTYPE)
    locale.setlocale(locale.LC_CTYPE, "C")
    yield
    locale.setlocale(locale.LC_CTYPE, before)


@pytest.mark.parametrize("sample", ["sevenzip/solid.7z", "iso9660/joliet.iso", "rar/stored5.rar", "cabinet/mszip.cab"])
def test_names_do_not_depend_on_the_locale(sample: str, read: Read, plain_locale: None) -> None:
    """A name that is not ASCII is UTF-8, whatever the locale is."""
    found, problem = read(sample.partition("/")[0], (SAMPLES / sample).read_bytes())
    assert not problem
    assert "doc/T\u00fcrme.txt" in {f["name"] for f in found}


@pytest.mark.parametrize(("plugin", "packed"), [("compress", "compress"), ("lz4", "lz4"), ("lzip", "lzip")])
def test_only_outer_compression_is_decoded(plugin: str, packed: str, read: Read) -> None:
    """Only the outer compression is decoded: libarchive alone would decode both, and the bytes between would escape the budget."""
    data = encoded(packed, encoded(packed, b"Some words.\n" * 1_000))
    assert read(plugin, data)[1] == "compressed more than once"


def test_codes_of_nine_bits_are_refused(read: Read) -> None:
    """A compress file with 9-bit codes, which libarchive cannot read, is refused for that reason, not as damaged."""
    assert read("compress", b"\x1f\x9d\x89abcdef")[1] == "codes of 9 bits"


def test_a_7z_is_read_from_a_stream_as_from_a_file(read: Read) -> None:
    """A format that needs seeking is buffered when read from a stream; its damage is reported either way."""
    data = archive("7zip", [(f"{n}.txt", b"words %d\n" % n) for n in range(20)])
    assert read("sevenzip", data, forward=True) == read("sevenzip", data)
    for cut in (10, 40, len(data) // 2, len(data) - 1):
        assert read("sevenzip", data[:cut], forward=True)[1]
        assert read("sevenzip", data[:cut])[1]
