"""Office documents (ECMA-376, OpenDocument): the files embedded in them. The parts of the document itself are not members.

Embedded files are found by relationships (ECMA-376-1, 15.2.10 and 15.2.11) or the manifest (OASIS ODF 1.3, part 2, 3.2), and in the
folders where Office and LibreOffice put them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from processors.essence.formats.container import Budget, Member, Reader, Refused
from processors.essence.formats.package_parts import Parts, manifest_entries, part_key, read_relations
from processors.essence.formats.streams import CHUNK, Counted, seekable
from processors.essence.formats.zip import open_zip
from processors.essence.unnest import Container

KINDS = ("package", "oleObject")
"""Kinds of relationships that lead to embedded files."""
MANIFEST, MAX_MANIFEST = "meta-inf/manifest.xml", 1 << 20
DOCUMENTS = "application/vnd.oasis.opendocument."
OBJECT = "application/vnd.sun.star.oleobject"
"""Start of the media types of documents, and the media type of objects that are one file."""

_EMBEDDED = re.compile(r"(?:.*/)?embeddings/[^/]+|object[^/]*(?:/content\.xml)?")
"""In OpenDocument: objects that are one file (OLE), and the content of objects that are documents themselves (charts, formulas,
tables); the other parts of those are styles and settings.
"""


def open_office(body: Reader, budget: Budget) -> Iterator[Member]:
    """Yield the embedded files. Raises Damaged, Refused, Exhausted."""
    with seekable(body, budget.limits, damaged=True) as file:
        parts = Parts(file, file.seek(0, 2))
        try:
            embedded = _embedded(parts)
        except Refused:
            # An encrypted part does not prevent the others from being read.
            embedded = frozenset()
        budget.spend(parts.given)
        file.seek(0)
        for member in open_zip(file, budget):
            key = part_key(member.name.decode("utf-8", "replace"))
            if (key in embedded or _EMBEDDED.fullmatch(key)) and member.kind == "file":
                yield member._replace(name=member.name.replace(b"\\", b"/"))
            elif member.size < 0 and member.body is not None:
                # Without a directory, a part must be unpacked to find the next one.
                passed = Counted(member.body, budget)
                while passed.read(CHUNK):
                    pass
            else:
                budget.enter(member.name)


def _embedded(parts: Parts) -> frozenset[str]:
    """Return the keys of the embedded files that relationships or the manifest name. Raises Refused."""
    relations = read_relations(parts)
    found = {key for source in relations.sources() for key in relations.targets(source, *KINDS)}
    for path, media in manifest_entries(parts.pick({MANIFEST: MAX_MANIFEST}).get(MANIFEST, b"")):
        key = part_key(path)
        if key and media.startswith(DOCUMENTS):
            found.add(f"{key}/content.xml")
        elif media == OBJECT:
            found.add(key)
    return frozenset(found)


UNNESTER = Container(("OfficeDocument", "OpenDocument"), open_office, summarized=True)
