"""A bounded buffer for the lines of a document's text."""

from __future__ import annotations

from processors.essence.formats.text import squeeze


class Text:
    """Lines that a text grows by, up to a limit."""

    def __init__(self, limit: int) -> None:
        self._room = limit
        self._parts: list[str] = []
        self.lines: list[str] = []

    @property
    def full(self) -> bool:
        """No more is taken."""
        return self._room <= 0

    def add(self, text: str) -> None:
        """Go on with the line."""
        if self._room > 0:
            self._parts.append(text[: self._room])
            self._room -= len(text)

    def end(self) -> str:
        """End the line, and give it."""
        line = squeeze("".join(self._parts))
        self._parts.clear()
        if line:
            self.lines.append(line)
        return line
