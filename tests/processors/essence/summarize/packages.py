"""Builders of documents that are zips."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

CONTAINER = '<container><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'
OPF = (
    '<package><manifest><item id="n" href="nav.xhtml" properties="nav"/><item id="x" href="toc.ncx" '
    'media-type="application/x-dtbncx+xml"/><item id="c" href="one.xhtml"/></manifest><spine><itemref idref="c"/></spine></package>'
)
MAIN = {"OfficeDocument": "word/document.xml", "OpenDocument": "content.xml", "EPUB": "OEBPS/one.xhtml"}
"""The part that contains the text."""
AROUND: Mapping[str, Mapping[str, str]] = {
    "EPUB": {"META-INF/container.xml": CONTAINER, "OEBPS/book.opf": OPF, "OEBPS/nav.xhtml": "", "OEBPS/toc.ncx": ""}
}
"""Further parts that must exist."""


class Forward(io.RawIOBase):
    """An unseekable file, so that zipfile writes sizes after the data."""

    def __init__(self, out: io.BytesIO) -> None:
        self.out = out

    def write(self, data: object) -> int:
        return self.out.write(bytes(data))  # type: ignore[call-overload]

    def writable(self) -> bool:
        return True


def packed(parts: Mapping[str, str | bytes]) -> bytes:
    """Return a zip of the parts, byte-identical each time."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            how = zipfile.ZIP_STORED if name == "mimetype" else zipfile.ZIP_DEFLATED
            archive.writestr(zipfile.ZipInfo(name), text, how)
    return out.getvalue()


def document(kind: str, text: str) -> bytes:
    """Return a document of a type with the given main part; for a type that is not a zip, the text itself."""
    if kind not in MAIN:
        return text.encode()
    parts = dict(AROUND.get(kind, {}))
    return packed({name: part or text for name, part in parts.items()} | {MAIN[kind]: text})
