"""Message catalogs of any translation format: header fields, number of messages and translations, text."""

from __future__ import annotations

import re

from processors.essence.formats.text import squeeze
from processors.essence.summarize._base import Facts, Found

MAX_TEXT = 8_192
"""Bytes of message text that are kept."""
MESSAGE = 2_000
"""Characters of one message that are kept."""
_FIELDS = {
    "project-id-version": "project", "last-translator": "author", "language-team": "organization", "language": "language",
    "po-revision-date": "date", "pot-creation-date": "creation-date", "x-generator": "generator",
    "report-msgid-bugs-to": "contact",
}  # fmt: skip
"""Header fields (GNU gettext 0.21, 6.2), and the attribute of each."""
_UNSAID = frozenset(
    (
        "PACKAGE VERSION",
        "PACKAGE",
        "FULL NAME <EMAIL@ADDRESS>",
        "LANGUAGE <LL@li.org>",
        "YEAR-MO-DA HO:MI+ZONE",
        "LANGUAGE",
        "VERSION",
    )
)
"""Placeholder values of a template."""
_LANGUAGE = r"[a-z]{2,3}(?:[_-][A-Za-z]{2,8}|[_-]\d{3}|(?!)){0,2}+(?:@[a-z]{2,12})?"
_NAMED = re.compile(rf"(?:.*[._-])?({_LANGUAGE})\.(?:po|mo|ts|xlf|xliff|gmo)")
_PLACED = re.compile(rf".*/({_LANGUAGE})/LC_(?:MESSAGES|TIME|COLLATE|MONETARY)/[^/]*+")


class Catalog:
    """Collects header fields, counts and text of a catalog while it is read."""

    def __init__(self, found: Found) -> None:
        self._found = found
        self._lines: list[str] = []
        self._room = found.most(MAX_TEXT)
        self.messages = self.translated = self.fuzzy = 0

    def header(self, text: str) -> None:
        """Add the fields of a header, one per line."""
        for line in text[:8_192].split("\n"):
            name, _, value = line.partition(":")
            meant, value = _FIELDS.get(name.strip().lower(), ""), squeeze(value)
            if meant and value and value not in _UNSAID and not value.startswith("PACKAGE "):
                self._found.set(meant, value, 300)

    def add(self, source: str, target: str, *, fuzzy: bool = False) -> None:
        """Count a message, and keep its text and translation; `target` is "" if it has no translation."""
        self.messages += 1
        self.fuzzy += fuzzy
        self.translated += bool(target) and not fuzzy
        self.say(source, target)

    def say(self, *texts: str) -> None:
        """Keep the text of a message and of its translation."""
        for text in texts if self._room > 0 else ():
            line = squeeze(text[:MESSAGE])
            if line:
                self._lines.append(line)
                self._room -= len(line) + 1

    def tell(self, facts: Facts) -> None:
        """Add counts, title and text, and the language from the path or file name if the header has none."""
        found = self._found
        name = facts.name.decode("utf-8", "replace")
        found.set("language", _language(facts.url, name), 40)
        project, language = found.text("project"), found.text("language")
        found.set("title", ": ".join(part for part in (project, language) if part) if project else name, 300)
        for key, number in (("messages", self.messages), ("translated", self.translated), ("fuzzy", self.fuzzy)):
            found.add(key, str(number))
        found.body("\n".join(self._lines), MAX_TEXT)


def _language(url: str, name: str) -> str:
    """Return the language in the path of a catalog or in its file name; "" if neither has one."""
    if placed := _PLACED.fullmatch(url[-500:]):
        return placed[1]
    stem = name[-200:]
    named = _NAMED.fullmatch(stem)
    return named[1] if named else ""
