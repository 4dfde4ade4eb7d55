"""Bibliographies without an entry, which were once rejected."""

from __future__ import annotations

import io

import pytest

from processors.essence.summarize import Facts, Found, summarize


@pytest.mark.parametrize("text", ["", "% by a@b.example\n", "%A Mann, Ann\n%T A title\n%U http://a.example/@b\n"])
def test_file_without_entries_has_title(text: str) -> None:
    """A file with an @ that begins no entry has at least a title."""
    body, found = text.encode(), Found()
    facts = Facts(b"x.enw", "file:///x.enw", "Bibliographic", "application/x-endnote-refer", len(body), 0, "")
    summarize(facts, io.BytesIO(body), found)
    assert found.attributes["title"]
    assert "entries" not in found.attributes
