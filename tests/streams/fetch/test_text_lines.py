from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.fetch.adapters.text_lines import MAX_HELD, DotBlock, GopherText

LINES = st.lists(st.sampled_from([b"", b".", b"..", b"...x", b"text", b"a.b", b"\r", b"x\r"]), max_size=8)
CUTS = st.lists(st.integers(0, 60), max_size=6)


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    """Cut data at offsets."""
    at = sorted({0, *(cut for cut in cuts if cut < len(data)), len(data)})
    return [data[start:end] for start, end in pairwise(at)]


def decoded(parts: list[bytes]) -> tuple[bytes, bytes, bool]:
    """Return both forms of a text, and whether the line `.` ended it."""
    decoder = GopherText()
    found = [decoder.feed(part) for part in parts]
    terminated = decoder.terminated
    found.append(decoder.end())
    return b"".join(plain for plain, _ in found), b"".join(undoubled for _, undoubled in found), terminated


@given(LINES, CUTS)
def test_text_by_rfc_1436_survives_its_transfer(lines: list[bytes], cuts: list[int]) -> None:
    """What is sent with CR LF, doubled dots and a last line is received as it was, however it is cut."""
    clean = [line.replace(b"\r", b"") for line in lines]
    sent = b"".join((b"." + line if line.startswith(b".") else line) + b"\r\n" for line in clean) + b".\r\n"
    _, undoubled, terminated = decoded(pieces(sent, cuts))
    assert terminated
    assert undoubled == b"".join(line + b"\n" for line in clean)


@given(LINES, CUTS, st.booleans())
def test_text_sent_as_it_is_keeps_its_bytes(lines: list[bytes], cuts: list[int], ended: bool) -> None:
    """A file that a server sends as it is keeps its bytes, without the CR of CR LF."""
    sent = b"\n".join(lines) + (b"\n" if ended else b"")
    plain, _, terminated = decoded(pieces(sent, cuts))
    expected = re.sub(rb"(\A|\n)\.\r?\n\Z", rb"\1", sent)
    assert terminated == (expected != sent)
    assert plain == expected.replace(b"\r\n", b"\n")


@pytest.mark.parametrize("step", [1, 1_000, 70_000, 1_000_000])
def test_long_line_is_not_held_back(step: int) -> None:
    """A line of any length passes through bounded memory, and dots in it are no beginning of a line."""
    line = b"x" * MAX_HELD + b"..\r" + b"y" * 10 + b"." * (MAX_HELD if step > 1 else 10)
    sent = line + b"\r\n.\r\n"
    parts = (
        [sent[at : at + step] for at in range(0, len(sent), step)]
        if step > 1
        else [sent[:MAX_HELD], *pieces(sent[MAX_HELD:], list(range(30)))]
    )
    plain, undoubled, terminated = decoded(parts)
    assert plain == undoubled == line + b"\n"
    assert terminated


@given(LINES, CUTS, st.binary(max_size=10))
def test_block_survives_its_transfer(lines: list[bytes], cuts: list[int], behind: bytes) -> None:
    """A multi-line block gives its lines with their CR LF, and nothing of what follows it."""
    clean = [line.replace(b"\r", b"") for line in lines]
    sent = b"".join((b"." + line if line.startswith(b".") else line) + b"\r\n" for line in clean) + b".\r\n"
    block = DotBlock()
    found = b"".join(block.feed(part) for part in [*pieces(sent, cuts), behind])
    assert block.ended
    assert found == b"".join(line + b"\r\n" for line in clean)


def test_block_without_end_has_not_ended() -> None:
    """A dot within a line ends nothing, however long the line is."""
    block = DotBlock()
    sent = b"x" * (MAX_HELD + 1)
    assert b"".join(block.feed(part) for part in (sent, b".\r", b"\n", b"a.\r\n")) == sent + b".\r\na.\r\n"
    assert not block.ended
