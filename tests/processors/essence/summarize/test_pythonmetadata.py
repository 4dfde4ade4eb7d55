"""Metadata of Python packages as older tools wrote it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from processors.essence.summarize import Found

OLD = (
    "Metadata-Version: 1.0\nName: boats\nVersion: 1\nSummary: UNKNOWN\nDescription: Of boats.\n"
    "        \n        They float.\nKeywords: river lake\nPlatform: any\n"
)
NEWER = (
    "Metadata-Version: 1.2\nName: boats\nVersion: 1\nDescription: Of boats.\n       |\n       |They float.\nKeywords: river lake\n"
)


@pytest.mark.parametrize("text", [OLD, NEWER, OLD.replace("\n", "\r\n")])
def test_description_in_header_is_text(summary: Callable[..., Found], text: str) -> None:
    """A description in a header field is the text, without its margin; values of UNKNOWN are left out."""
    found = summary(b"PKG-INFO", text.encode()).attributes
    assert found["partial-text"] == ["Of boats.\n\nThey float."]
    assert (found["title"], found["keywords"]) == (["boats"], ["river", "lake"])
    assert "summary" not in found
