from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.unnest.conftest import Read

SAMPLES = Path(__file__).resolve().parents[1] / "samples" / "unnest"


@pytest.mark.parametrize("cut", [1, 5, 60])
def test_truncated_arj_gives_the_files_before(cut: int, read: Read) -> None:
    """An ARJ archive that ends early gives what is whole in it, and says that it is damaged."""
    data = (SAMPLES / "arj" / "methods.arj").read_bytes()
    found, problem = read("arj", data[:-cut], forward=True)
    assert [member["name"] for member in found][:2] == ["notes.txt", "words.txt"]
    assert not any("error" in member for member in found[:2])
    assert problem.startswith("truncated")


def test_arj_header_with_a_wrong_checksum_is_damaged(read: Read) -> None:
    """A header of ARJ whose checksum fails ends the archive."""
    data = (SAMPLES / "arj" / "methods.arj").read_bytes()
    found, problem = read("arj", data.replace(b"words.txt", b"wirds.txt", 1))
    assert [member["name"] for member in found] == ["notes.txt"]
    assert problem == "damaged header: its checksum fails"


def test_truncated_tnef_gives_what_it_has(read: Read) -> None:
    """A winmail.dat that ends in its second attachment gives the first one and the text, and says that it is damaged."""
    data = (SAMPLES / "tnef" / "chart.tnef").read_bytes()
    found, problem = read("tnef", data[:-120])
    assert [member["name"] for member in found] == ["chart%20of%20Ærø.txt", "message.html"]
    assert problem.startswith("truncated")


def test_tnef_attachment_with_a_wrong_checksum_is_damaged(read: Read) -> None:
    """An attachment whose checksum fails says so; the others are given."""
    data = (SAMPLES / "tnef" / "chart.tnef").read_bytes()
    found, problem = read("tnef", data.replace(b"north", b"south"))
    assert [member.get("error", "") for member in found] == ["its checksum fails", "", ""]
    assert not problem
