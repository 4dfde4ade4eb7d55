"""Office documents (ECMA-376, OpenDocument): the files embedded in them. The parts of the document itself are not members."""

from __future__ import annotations

import re
from collections.abc import Iterator

from processors.essence.formats.container import Budget, Member, Reader
from processors.essence.formats.streams import CHUNK, Counted
from processors.essence.formats.zip import open_zip
from processors.essence.unnest import Container

_EMBEDDED = re.compile(rb"(?:word|xl|ppt)/embeddings/[^/]+|Object[^/]*(?:/content\.xml)?")
"""In OpenDocument: objects that are one file (OLE), and the content of objects that are documents themselves (charts, formulas,
tables); the other parts of those are styles and settings.
"""


def open_office(body: Reader, budget: Budget) -> Iterator[Member]:
    """Yield the embedded files. Raises Damaged, Refused, Exhausted."""
    for member in open_zip(body, budget):
        if _EMBEDDED.fullmatch(member.name) and member.kind == "file":
            yield member
        elif member.size < 0 and member.body is not None:
            # Without a directory, a part must be unpacked to find the next one.
            passed = Counted(member.body, budget)
            while passed.read(CHUNK):
                pass
        else:
            budget.enter(member.name)


UNNESTER = Container(("OfficeDocument", "OpenDocument"), open_office, summarized=True)
