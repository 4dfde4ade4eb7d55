"""Front matter in YAML, TOML and JSON gives attributes and is no part of the text; what is malformed stays text."""

from collections.abc import Callable

import pytest

from processors.essence.summarize import Found

Make = Callable[..., Found]
YAML = """---
# for the site
title: "Of oars"
authors:
  - Ann Sea
  - name: Bob Lake
    url: https://example.org/bob
date: 2024-03-05
lastmod: 2024-04-01 10:00:00 +0200
description: >
  What moves
  a boat.
tags: [oar, sail]
lang: en-GB
layout: page
---
"""
TOML = """+++
title = "Of oars"
authors = ["Ann Sea", {name = "Bob Lake", email = "bob@example.org"}]
date = 2024-03-05
lastmod = 2024-04-01T10:00:00+02:00
description = '''What moves
a boat.'''
draft = false
weight = 3
[taxonomies]
tags = ["oar", "sail"]
[params]
title = "not this"
language = "en"
+++
"""
JSON = """{
  "Title": "Of oars", "author": [{"name": "Ann Sea"}, "Bob Lake"], "date": "2024-03-05", "lastmod": "2024-04-01T08:00:00Z",
  "summary": "What moves a boat.", "keywords": "oar, sail", "language": "en_US", "params": {"x": [{}]}
}
"""
TEXTS = {
    b"oars.md": "# First\n\nOars are long.\n",
    b"oars.Rmd": "# First\n\nOars are long.\n",
    b"README.md": "# First\n\nOars are long.\n",
    b"README": "First\n\nOars are long.\n",
    b"oars.rst": "First\n=====\n\nOars are long.\n",
    b"oars.adoc": "= First\n\nOars are long.\n",
    b"oars.org": "* First\n\nOars are long.\n",
    b"oars.wiki": "= First =\n\nOars are long.\n",
    b"oars.html": "<title>First</title><h1>First</h1><p>Oars are long.</p>\n",
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("front", [YAML, TOML, JSON, YAML.replace("\n", "\r\n"), "\ufeff" + TOML])
def test_front_matter_gives_attributes_and_no_text(front: str, name: bytes, summary: Make) -> None:
    """Title, authors, dates, description, keywords and language of front matter are attributes; the text begins behind it."""
    found = summary(name, (front + TEXTS[name]).encode())
    assert "error" not in found.attributes
    assert found.attributes["title"] == ["Of oars"]
    assert found.attributes["author"] == ["Ann Sea", "Bob Lake"]
    assert found.attributes["date"] == ["2024-03-05"]
    assert found.attributes["modification-date"] == ["2024-04-01T08:00:00Z"]
    assert found.attributes["description"] == ["What moves a boat."]
    assert found.attributes["keywords"][:2] == ["oar", "sail"]
    assert found.attributes["language"] == ["en"]
    assert found.text("partial-text").lstrip("#=* ").startswith("First")
    assert "Bob" not in found.text("partial-text")


@pytest.mark.parametrize(
    "front",
    [
        "---\nlayout: page\n---\n",
        "---\n---\n",
        "---\n\n# nothing yet\n---\n",
        "---\ntags:\n- a\n- b\n...\n",
        "--- \n'quoted key': x\nfoo: [\n  a\n]\n--- \n",
        "---\nschlüssel: x\n日付: y\n---\n",
        "+++\n+++\n",
        "+++\n[extra]\nx = {a.b = 1}\n+++\n",
        "{}\n",
        '{ "draft": true }\n',
    ],
)
@pytest.mark.parametrize("name", [b"oars.md", b"oars.html"])
def test_front_matter_without_known_fields_is_no_text(front: str, name: bytes, summary: Make) -> None:
    """Front matter that is empty, or has no field that is an attribute, is left out too."""
    found = summary(name, (front + TEXTS[name]).encode())
    assert found.text("title") == "First"
    assert found.text("partial-text").lstrip("# ").startswith("First")


@pytest.mark.parametrize(
    "front",
    [
        "---\nOars\n---\n",
        "---\ntitle: Of oars\nand what moves a boat\n---\n",
        "---\ntitle: Of oars\n",
        "---\nIt was said so: nobody rows\n---\n",
        "----\ntitle: Of oars\n----\n",
        "+++\ntitle = Of oars\n+++\n",
        "+++\ntitle = 'Of oars'\n",
        "+++\nn = " + "9" * 5_000 + "\n+++\n",
        "+++\nn = " + "[" * 5_000 + "\n+++\n",
        "+++\n" + "a." * 30_000 + "a = 1\n+++\n",
        "+++\n" + "a = 'b'\n" * 2 + "+++\n",
        '{"title": "Of oars"\n',
        '{"title": "Of oars"} and more\n',
        "{{ title }}\n",
        '{"a":' * 9_000 + "\n",
        '{"a": ' + "9" * 5_000 + "}\n",
    ],
)
@pytest.mark.parametrize("name", [b"oars.md", b"oars.html"])
def test_malformed_front_matter_is_text(front: str, name: bytes, summary: Make) -> None:
    """What begins like front matter but is not well-formed, or not closed, stays text, and gives no attribute."""
    found = summary(name, (front + TEXTS[name]).encode())
    assert not {"author", "error"}.intersection(found.attributes)
    assert found.text("title") != "Of oars" or name == b"oars.md"
    assert found.text("partial-text").startswith(front[:3])


def test_item_of_list_is_no_field(summary: Make) -> None:
    """A field of an item of a list, or of an inner mapping, is none of the document."""
    front = "---\nresources:\n- title: A picture\n  src: x.png\nseo:\n  title: Rowing\n---\n"
    assert summary(b"x.md", (front + TEXTS[b"oars.md"]).encode()).attributes["title"] == ["First"]
