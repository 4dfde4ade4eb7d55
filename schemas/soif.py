"""SOIF, the Summary Object Interchange Format: incremental parser and writer of byte-counted templates.

    @FILE { http://example.org/       a template: its type, and the URL that it is about (it may have none)
    title{5}:<tab>Whale               an attribute: its name, the bytes of its value, a colon, one tab, the value, a newline
    }

Sources: the Harvest report (section 3, and its figure "Example SOIF Template"), the grammar in the appendix of the Harvest
manual, RFC 2655. A name may be repeated, and a value is any bytes. Detail nests in two ways: a value may be SOIF itself
(`nest`, `nested`), and a template with neither URL nor attributes may hold templates, as a Gatherer's answer did
(`@UPDATE {` ... `}`). Such a collection is never held in memory: its templates are yielded one by one, with its type in `within`.

Strategy: `Parser` does no I/O. It is fed bytes as they arrive and yields the templates that they complete; the heads of templates
and attributes are the tables in `soif_syntax`. Laws:

- parse(dumps(x)) == x, and dumps(parse(b)) == b if b is canonical, that is, as `dumps` writes.
- The way the bytes are cut into pieces changes neither the templates nor the error.
- Malformed input raises SoifError with the offset of the first wrong byte, and what was expected.
  Nothing is skipped to resynchronize: a size that does not lead to a newline is an error, not the end of the data.
- Memory is bounded by `TemplateLimits`, whatever the sizes say.

Reading allows more than writing: white space between templates, more or fewer blanks around the URL, `@DELETE { }` on
one line. Within a template nothing is allowed that could hide a wrong size.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, NoReturn

from schemas.soif_syntax import BLANK, DEFAULT_LIMITS, Attribute, SoifError, Template, TemplateLimits, grammar, shown
from schemas.soif_writer import Writer, dumps, nest

__all__ = [
    "DEFAULT_LIMITS",
    "Attribute",
    "Parser",
    "SoifError",
    "Template",
    "TemplateLimits",
    "Writer",
    "dumps",
    "nest",
    "nested",
    "parse",
    "read",
]

CHUNK = 1 << 16
"""Bytes that `read` requests at a time."""

END = "the end of the data"


class Parser:
    """Parser from bytes to templates, without I/O: feed it pieces of any size, then close it."""

    def __init__(self, limits: TemplateLimits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._grammar = grammar(limits)
        self._buffer = bytearray()
        self._base = 0  # offset in the stream of the buffer's first byte
        self._at = 0  # position in the buffer of the next byte to read
        self._within: list[str] = []  # types of the collections that are open
        self._open: tuple[str, str] | None = None  # type and URL of the template that is open
        self._size = 0  # bytes of its names and values
        self._attributes: list[Attribute] = []
        self._pending: tuple[str, int] | None = None  # name and size of the value that comes next
        self._patience = 0  # size in bytes that an incomplete first line must reach before it is examined again
        self._error: SoifError | None = None

    def feed(self, data: bytes) -> Iterator[Template]:
        """Add bytes and return an iterator over the templates that they complete.

        The bytes are added at once, the templates made on demand; those not consumed come with the next call.
        Raises SoifError after the templates before the fault, and again on any later use.
        """
        self._buffer += data
        return self._drain()

    def close(self) -> None:
        """End the data. Raises SoifError if it ends within a template or a collection.

        Raises ValueError if templates of an earlier `feed` were not consumed.
        """
        self._patience = 0
        for _ in self._drain():
            raise ValueError("closed before all templates were consumed")
        if self._pending or self._open or self._within or self._buffer:
            self._fail(len(self._buffer), self._missing(), END)

    def _drain(self) -> Iterator[Template]:
        if self._error:
            raise self._error
        while (step := self._step()) is not False:
            if isinstance(step, Template):
                yield step
        self._base += self._at
        del self._buffer[: self._at]
        self._at = 0

    def _step(self) -> Template | bool:
        """Read one element: return a completed template, or whether the buffer may hold more to read."""
        if self._pending:
            return self._value(*self._pending)
        if self._open:
            return self._item(*self._open)
        return self._between()

    def _between(self) -> Template | bool:
        """Read white space, the start of a template, or the end of a collection."""
        buffer = self._buffer
        while self._at < len(buffer) and buffer[self._at] in b" \t\r\n":
            self._at += 1
        if self._at == len(buffer):
            return False
        if buffer[self._at] == ord("}") and self._within:
            self._within.pop()
            self._at += 1
            return True
        if buffer[self._at] != ord("@"):
            self._fail(self._at, self._missing(), shown(buffer[self._at]))
        return self._header()

    def _header(self) -> Template | bool:
        """Read the first line of a template.

        It may be long and arrive in many pieces: while incomplete, it is examined only when the buffer has doubled.
        """
        if len(self._buffer) - self._at < self._patience and self._buffer.find(b"\n", self._at) < 0:
            return False
        found = self._grammar.header.match(self._buffer, self._at)
        self._patience = 0 if found else 2 * (len(self._buffer) - self._at)
        if not found:
            return self._stopped(*self._grammar.header.stop(self._buffer, self._at))
        line = found[5]
        at = found.start(5) + len(line) - len(line.lstrip(BLANK))
        text = line.strip(BLANK)
        if len(text) > self._limits.url:
            self._fail(at, f"a URL of at most {self._limits.url} bytes", f"{len(text)}")
        closed = text == b"}"
        self._open = found[2].decode(), "" if closed else self._text(text, at, "a URL in UTF-8")
        self._size, self._at = 0, found.end()
        return self._close(*self._open) if closed else True

    def _item(self, kind: str, url: str) -> Template | bool:
        """Read the head of an attribute, the end of the template, or the first template of a collection."""
        at = self._at
        if at == len(self._buffer):
            return False
        if self._buffer[at] == ord("}"):
            self._at += 1
            return self._close(kind, url)
        if self._buffer[at] == ord("@"):
            return self._collection(kind, url)
        found = self._grammar.attribute.match(self._buffer, at)
        if not found:
            stop, expected = self._grammar.attribute.stop(self._buffer, at)
            return self._stopped(stop, self._missing() if stop == at else expected)
        self._pending = self._bounded(found[1], int(found[3]), found.start(3)), int(found[3])
        self._at = found.end()
        return True

    def _bounded(self, name: bytes, size: int, at: int) -> str:
        """Return the name of an attribute after checking the limits; its size is written at `at`."""
        limits = self._limits
        if len(self._attributes) >= limits.attributes:
            self._fail(self._at, f"at most {limits.attributes} attributes", "one more")
        if size > limits.value:
            self._fail(at, f"a value of at most {limits.value} bytes", str(size))
        self._size += len(name) + size
        if self._size > limits.template:
            self._fail(at, f"a template of at most {limits.template} bytes", str(self._size))
        return self._text(name, self._at, "a name in UTF-8")

    def _value(self, name: str, size: int) -> bool:
        end = self._at + size
        if len(self._buffer) <= end:
            return False
        if self._buffer[end] != ord("\n"):
            self._fail(end, f"a newline after the {size} bytes of {shown(name)}", shown(self._buffer[end]))
        self._attributes.append(Attribute(name, bytes(self._buffer[self._at : end])))
        self._pending, self._at = None, end + 1
        return True

    def _collection(self, kind: str, url: str) -> bool:
        """Turn the open template into a collection; the `@` of its first template is left in the buffer."""
        if url or self._attributes:
            self._fail(self._at, f"{self._missing()} (only a collection, without URL and attributes, holds templates)", "'@'")
        if len(self._within) >= self._limits.depth:
            self._fail(self._at, f"collections at most {self._limits.depth} deep", "one more")
        self._within.append(kind)
        self._open = None
        return True

    def _close(self, kind: str, url: str) -> Template:
        template = Template(kind, url, tuple(self._attributes), tuple(self._within))
        self._open, self._attributes = None, []
        return template

    def _missing(self) -> str:
        """Return what is expected next at the end of the buffer."""
        if self._pending:
            name, size = self._pending
            more = self._at + size - len(self._buffer)
            return f"{more} more bytes of {shown(name)}" if more > 0 else f"a newline after the {size} bytes of {shown(name)}"
        if self._open:
            begun = self._at < len(self._buffer) and self._grammar.attribute.stop(self._buffer, self._at)
            return begun[1] if begun and begun[0] > self._at else f"an attribute or the '}}' of {shown(self._open[0])}"
        if self._at < len(self._buffer) and self._buffer[self._at] == ord("@"):
            return self._grammar.header.stop(self._buffer, self._at)[1]
        return f"'@' or the '}}' of {shown(self._within[-1])}" if self._within else "'@'"

    def _text(self, raw: bytes, at: int, expected: str) -> str:
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            self._fail(at + error.start, expected, shown(raw[error.start]))

    def _stopped(self, at: int, expected: str) -> bool:
        """Return False if an incomplete head may still become valid; raise if it cannot."""
        if at < len(self._buffer):
            self._fail(at, expected, shown(self._buffer[at]))
        return False

    def _fail(self, at: int, expected: str, found: str) -> NoReturn:
        self._error = SoifError(self._base + at, expected, found)
        self._buffer.clear()
        raise self._error


def read(stream: BinaryIO, limits: TemplateLimits = DEFAULT_LIMITS) -> Iterator[Template]:
    """Iterate over the templates of an open binary file, to its end. Raises SoifError, and OSError from reading."""
    parser = Parser(limits)
    while data := stream.read(CHUNK):
        yield from parser.feed(data)
    parser.close()


def parse(data: bytes, limits: TemplateLimits = DEFAULT_LIMITS) -> tuple[Template, ...]:
    """Return the templates in some bytes. Raises SoifError."""
    parser = Parser(limits)
    templates = tuple(parser.feed(data))
    parser.close()
    return templates


def nested(template: Template, name: str, limits: TemplateLimits = DEFAULT_LIMITS) -> tuple[Template, ...]:
    """Return the templates in the values of an attribute. Raises SoifError, with its offset from the start of the value."""
    return tuple(inner for value in template.values(name) for inner in parse(value, limits))
