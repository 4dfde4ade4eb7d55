"""YAML: top-level keys, values of the common ones, comments, the first text. No object is built: lines are read as text.

A key is at the top level if its line is not indented (in a list of mappings, if it follows an unindented dash). A block scalar
below a key is its value (YAML 1.2, 8.1).
"""

from __future__ import annotations

import re
from typing import BinaryIO

from processors.essence.formats.text import read_text, squeeze
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize._text import add_references
from processors.essence.summarize.data.json import USUAL
from processors.essence.summarize.source._source import MAX_SOURCE, add_all, add_comments, hash_comments
from processors.essence.summarize.text.rawtext import raw_text

KEY = re.compile(r"^(?:- )?[\"']?([A-Za-z_$@/.][^:\n#{}\[\]\"']{0,100})[\"']?[ \t]*:(?:[ \t]+([^\n]{0,1000}))?$", re.MULTILINE)
_INDENTED = re.compile(r"(?:\n(?:[ \t]+[^\n]{0,500}|- [^\n]{0,500}|[ \t]*(?=\n))){1,50}")
_PERSON = re.compile(r"(?:- )?(given-names|name-particle|family-names|name-suffix|name|alias)[ \t]*:[ \t]+([^\n]{1,200})")
"""Fields with the name of a person or an entity in a citation file (Citation File Format 1.2.0, definitions.person)."""
_COMMENTED = re.compile(r"[ \t]#.*")
_MAPPING = re.compile(r"- [\w-]{1,40}:(?:[ \t]|$)")
_KUBERNETES = re.compile(r"^metadata:\n(?:[ \t]++[^\n]*+\n){0,8}?[ \t]++name:[ \t]*+([\w.-]{1,200})", re.MULTILINE)


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add keys, attributes of common keys, comments, url-references and partial-text."""
    text = read_text(body, facts.charset, MAX_SOURCE)
    for match in KEY.finditer(text):
        key = match[1].strip()
        found.add("keys", key, 100)
        meant = USUAL.get(key.lower(), "")
        if meant and meant != "schema" and "keys" in found.attributes:
            for value in values(match[2] or "", text, match.end(), people=meant == "author"):
                (found.set if meant in ("title", "version", "language") else found.add)(meant, value, 1_000)
    if "kind" in found.attributes.get("keys", []):
        add_all(found, "title", _KUBERNETES.findall(text)[:1])
    add_comments(found, hash_comments(text))
    add_references(found, text)
    raw_text(text, found)


def values(inline: str, text: str, at: int, *, people: bool) -> list[str]:
    """Return the values of a key: on its line, or in the indented lines below it, as list or text; with `people`, their names."""
    value = _COMMENTED.sub("", inline).strip()
    if value.startswith("["):
        return [part.strip(" '\"") for part in value.strip("[]").split(",")]
    if value and value[0] not in "|>&":
        return [value.strip("'\"")]
    block = _INDENTED.match(text, at)
    indented = [line for line in block[0].split("\n") if line.strip()] if block else []
    lines = [line.strip() for line in indented]
    if people and any(map(_PERSON.match, lines)):
        return _people(indented)
    if lines and lines[0].startswith("- "):
        return [line[2:].strip(" '\"") for line in lines if line.startswith("- ")]
    return [squeeze(" ".join(lines))] if value else []


def _people(lines: list[str]) -> list[str]:
    """Return the names of people: each item of the list is a mapping, or a name itself. Lists inside an item are skipped."""
    found: list[dict[str, str]] = []
    least = min(len(line) - len(line.lstrip()) for line in lines)
    within = least
    for line in lines:
        bare, indent = line.strip(), len(line) - len(line.lstrip())
        begins = indent == least and bare.startswith("- ")
        if begins or not found:
            found.append({})
            within = indent + len(bare) - len(bare[1:].lstrip()) if begins else indent
        said = _PERSON.match(bare)
        if said and (begins or indent == within):
            found[-1][said[1]] = _COMMENTED.sub("", said[2]).strip(" '\"")
        elif begins and not _MAPPING.match(bare):
            found[-1]["name"] = _COMMENTED.sub("", bare[2:]).strip(" '\"")
    parts = ("given-names", "name-particle", "family-names", "name-suffix")
    called = (" ".join(one[part] for part in parts if part in one) or one.get("name") or one.get("alias", "") for one in found)
    return [name for name in called if name]


SUMMARIZER = Summarizer(types=("YAML",), run=run)
