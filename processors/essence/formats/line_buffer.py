"""A bounded buffer for the lines of a document's text."""

from __future__ import annotations

from processors.essence.formats.text import squeeze


class Text:
    """Collects lines of text up to a limit."""

    def __init__(self, limit: int) -> None:
        self._room = limit
        self._parts: list[str] = []
        self.lines: list[str] = []

    @property
    def full(self) -> bool:
        """Whether the limit is reached."""
        return self._room <= 0

    def add(self, text: str) -> None:
        """Append to the current line."""
        if self._room > 0:
            self._parts.append(text[: self._room])
            self._room -= len(text)

    def end(self) -> str:
        """End the current line, and return it."""
        line = squeeze("".join(self._parts))
        self._parts.clear()
        if line:
            self.lines.append(line)
        return line
