"""Office documents (ECMA-376, OpenDocument): the files that are embedded in them. Their own parts are no members."""

from __future__ import annotations

import re
from collections.abc import Iterator

from processors.essence.formats.container import Budget, Member, Reader
from processors.essence.formats.streams import CHUNK, Counted
from processors.essence.formats.zip import open_zip
from processors.essence.unnest import Container

_EMBEDDED = re.compile(rb"(?:word|xl|ppt)/embeddings/[^/]+|Object[^/]*(?:/content\.xml)?")
"""Of OpenDocument, the objects that are one file (OLE), and of those that are documents themselves (charts, formulas, tables) what
they show: their other parts are styles and settings."""


def open_office(body: Reader, budget: Budget) -> Iterator[Member]:
    """The embedded files. Raises Damaged, Refused, Exhausted."""
    for member in open_zip(body, budget):
        if _EMBEDDED.fullmatch(member.name) and member.kind == "file":
            yield member
        elif member.size < 0 and member.body is not None:
            # Without a directory, a part must be unpacked to find the next.
            passed = Counted(member.body, budget)
            while passed.read(CHUNK):
                pass
        else:
            budget.enter(member.name)


UNNESTER = Container(("OfficeDocument", "OpenDocument"), open_office, summarized=True)
