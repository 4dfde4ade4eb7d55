"""What a source says it is for: the comment at its head, without what is drawn around it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from processors.summarize import Found

SOURCES = [
    (
        "a.conf",
        "# -------------------\n# The rules of the lake\n# -----------\nx = 1\n",
        "The rules of the lake",
    ),
    ("a.conf", "# =====\n#\n# The rules of the lake\n", "The rules of the lake"),
    (
        "a.c",
        "/**********\n * Counts the ferns of a lake *\n **********/\nint x;\n",
        "Counts the ferns of a lake",
    ),
    ("Fern.hs", "-- | Counts the ferns of a lake\nmodule Fern where\n", "Counts the ferns of a lake"),
    ("fern.bat", "@echo off\r\nrem Counts the ferns\r\nREM of a lake\r\ncopy a b\r\n", "Counts the ferns of a lake"),
    ("fern.cmd", "@REM Counts the ferns of a lake\n@rem\n", "Counts the ferns of a lake"),
]


@pytest.mark.parametrize(("name", "text", "purpose"), SOURCES)
def test_purpose(summary: Callable[..., Found], name: str, text: str, purpose: str) -> None:
    """Lines that are drawn, and the marks of a documentation, are no part of what a source is for."""
    assert summary(name.encode(), text.encode()).text("description") == purpose


@pytest.mark.parametrize(
    ("name", "text", "title"),
    [
        ("fern.c", "/* fern.c: count the ferns of a lake */\nint x;\n", "fern.c: count the ferns of a lake"),
        ("fern.sh", "#!/bin/sh\n# fern.sh -- count the ferns of a lake\n", "fern.sh: count the ferns of a lake"),
        ("fern.sh", "#!/bin/sh\n# fern.shell is counted here\n", "fern.sh: fern.shell is counted here"),
        ("config.sh", "#!/bin/sh\n# config.sh --\n#\n# x\n", "config.sh"),
    ],
)
def test_a_title_has_the_name_once(summary: Callable[..., Found], name: str, text: str, title: str) -> None:
    """A comment that begins with the name of its file does not have the title say it twice."""
    assert summary(name.encode(), text.encode()).text("title") == title


@pytest.mark.parametrize("tail", ["", "print 'Python 2'\n"])
def test_who_wrote_a_module(summary: Callable[..., Found], tail: str) -> None:
    """A Python module says who wrote it, and which version it is, in names of its own; what is computed says nothing."""
    text = "__author__ = 'Jane Fern'\n__version__: str = \"1.2\"\n__date__ = now()\nauthor = 'nobody'\n"
    found = summary(b"fern.py", (text + tail).encode())
    assert (found.text("author"), found.text("version")) == ("Jane Fern", "1.2")
    assert not summary(b"fern.py", f"__author__ = who()\n{tail}".encode()).text("author")
