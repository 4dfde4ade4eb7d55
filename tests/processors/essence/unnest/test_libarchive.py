"""Special cases of the formats read through libarchive."""

from __future__ import annotations

import locale
import os
import struct
import subprocess
import sys
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


@pytest.mark.parametrize("locale_", ["C", "C.UTF-8"])
def test_names_in_lha_are_decoded_in_a_sealed_process(locale_: str) -> None:
    """A process that can open no file any more decodes the names of LHA, whatever its locale is."""
    name = "会議.txt".encode("cp932")
    head = b"-lh0-" + struct.pack("<IIIBBB", 0, 0, 0x21, 0x20, 0, len(name)) + name + b"\0\0"
    code = f"""
import io, resource
from processors.essence.formats import text
from processors.essence.formats.container import Budget, UnnestLimits
from processors.essence.unnest.containers.lha import open_lha
text.preload()
resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
data = {bytes([len(head), sum(head) & 0xFF]) + head + bytes(1)!r}
print(*(ascii(member.name.decode()) for member in open_lha(io.BytesIO(data), Budget(UnnestLimits(), 1 << 20))))
"""
    environment = os.environ | {"LC_ALL": locale_}
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, env=environment)
    assert (done.stdout, done.stderr) == (ascii("会議.txt") + "\n", "")


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
