"""The facts of a file that a program gets, limited to one packet to its runner."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import BinaryIO

import msgspec
import pytest

from processors.essence.summarize import Facts
from streams.edges.parse_job import _by_program
from streams.sandbox.programs import PACKET, Programs


@pytest.mark.parametrize("name", [b"n" * 70_000, b"\x01" * 70_000, "ä".encode() * 70_000, b"\xff" * 70_000])
def test_program_runs_for_names_of_any_length(name: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program of a member runs however long its name is."""
    sent: list[int] = []

    def run(self: Programs, kind: str, about: Mapping[str, str], body: BinaryIO) -> bytes:
        sent.append(len(msgspec.json.encode((kind, about))))
        return b""

    monkeypatch.setattr(Programs, "run", run)
    facts = Facts(name, "http://example.org/" + "\x01" * 20_000, "Recipe", "text/plain", 1, 0, "")
    assert _by_program(Programs(), "Recipe", facts, io.BytesIO(b"x")) == b""
    assert 0 < sent[0] <= PACKET
