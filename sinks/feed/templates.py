"""The bytes of a stream: a head, the summaries, the removals, and an end that states what the stream contains.

    @GATHERER {                 coverage: `complete` or `changes`; the Gatherer's name; the mark, and with `changes` the one before
    @UPDATE { ... }             summaries; of several with the same OID the last one counts
    @DELETE { ... }             removals; those of a complete stream are of summaries that it contains
    @END {                      the number of templates in both collections, and the mark

UPDATE and DELETE are the collections of the Gatherer's protocol of 1995. A stream without END was cut short.
"""

from __future__ import annotations

from collections.abc import Iterable

from schemas.soif import Attribute, Template, dumps
from sinks.feed.mark import Mark

GATHERER, UPDATE, DELETE, END = "GATHERER", "UPDATE", "DELETE", "END"
MEDIA = "application/x-harvest-soif"
"""Media type of a stream."""
LISTING = "application/x-harvest-soif-parts"
"""Media type of the listing of the parts."""


def template(kind: str, url: str = "", **attributes: object) -> bytes:
    """Return a template as SOIF; an attribute with the value None is left out, and `_` in a name is written as a hyphen."""
    found = ((name.replace("_", "-"), value) for name, value in attributes.items() if value is not None)
    return dumps([Template(kind, url, tuple(Attribute(name, str(value).encode()) for name, value in found))])


def opened(kind: str) -> bytes:
    """Return the beginning of a collection."""
    return b"@%b {\n" % kind.encode()


CLOSED = b"}\n"
"""End of a collection."""


def inner(removal: bytes) -> bytes:
    """Return the template of a removal without the collection that it was written in."""
    return removal[len(opened(DELETE)) : -len(CLOSED)]


def end(count: int, mark: Mark) -> bytes:
    """Return the last template of a stream."""
    return template(END, count=count, mark=mark)


def collection(kind: str, templates: Iterable[bytes]) -> bytes:
    """Return a collection; nothing if it is empty."""
    content = b"".join(templates)
    return opened(kind) + content + CLOSED if content else b""
