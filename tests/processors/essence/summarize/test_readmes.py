"""Texts recognized by their whole name: their markup language is honoured, and front matter for programs is left out."""

from collections.abc import Callable

import pytest

from processors.essence.summarize import Found

Make = Callable[..., Found]
FRONT = b"---\ntitle: Of boats\nauthor: [Ann Sea, 'Bob Lake']\ntags:\n  - oar\n  - sail\n---\n# Boats\n\nAll that floats.\n"


@pytest.mark.parametrize("name", [b"README.md", b"HACKING.md", b"boats.md", b"CONTRIBUTING.md", b"CHANGES.md"])
def test_front_matter_is_not_text(summary: Make, name: bytes) -> None:
    """Front matter is not part of the text; its lists give several values."""
    found = summary(name, FRONT)
    assert found.text("title") == "Of boats"
    assert found.attributes["author"] == ["Ann Sea", "Bob Lake"]
    assert found.attributes["keywords"] == ["oar", "sail"]
    assert found.text("partial-text").strip() == "# Boats\n\nAll that floats."


def test_rule_does_not_start_front_matter(summary: Make) -> None:
    """A rule above a text does not start front matter."""
    assert summary(b"README", b"---\nBoats\n---\nAll that floats.\n").text("partial-text").startswith("---\nBoats")


@pytest.mark.parametrize("name", [b"README.rst", b"install.rst", b"NEWS.rst", b"boats.rst"])
def test_markup_gives_title_and_headings(summary: Make, name: bytes) -> None:
    """Title and headings are those that the markup marks, whatever the name is."""
    found = summary(name, b"=====\nBoats\n=====\n\nOars\n----\n\nAll that floats.\n")
    assert found.text("title") == "Boats"
    assert found.attributes["headings"] == ["Boats", "Oars"]


def test_unsigned_news_are_kept(summary: Make) -> None:
    """Unsigned news are kept like a text, far beyond what is kept of a log."""
    text = "Version 1.2\n\n" + "".join(f"Number {n} of what is new. It is told here at length.\n\n" for n in range(300))
    found = summary(b"NEWS", text.encode())
    assert found.attributes["version"] == ["1.2"]
    assert "Number 200" in found.text("partial-text")
