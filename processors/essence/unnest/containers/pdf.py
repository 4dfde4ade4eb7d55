"""PDF: the files attached to the document (ISO 32000-1, 7.11.4, the name tree EmbeddedFiles), by pdfium.

The text is summarized by type; there, an invalid or encrypted PDF is reported. It has no members here.
"""

from __future__ import annotations

import ctypes
import io
from collections.abc import Iterator

import pypdfium2 as pdfium  # type: ignore[import-untyped]
from pypdfium2 import raw

from processors.essence.formats.container import Budget, Damaged, Member, Reader, Refused
from processors.essence.formats.dates import pdf_date as moment
from processors.essence.formats.streams import exact
from processors.essence.unnest import Container

MAX_PDF = 64_000_000
"""Maximum bytes of a document that are read into memory, as for its summary."""
MAX_TEXT = 4_096


class _Attached:
    """An attachment as a stream, unpacked at the first read. Raises Refused and Damaged."""

    def __init__(self, attachment: pdfium.PdfAttachment, most: int) -> None:
        self._attachment = attachment
        self._most = most
        self._data: io.BytesIO | None = None

    def read(self, size: int, /) -> bytes:
        if self._data is None:
            self._data = io.BytesIO(self._unpacked())
        return self._data.read(size)

    def _unpacked(self) -> bytes:
        length = ctypes.c_ulong()
        if not raw.FPDFAttachment_GetFile(self._attachment, None, 0, length):
            raise Damaged("damaged: an attachment without its file")
        if length.value > self._most:
            raise Refused(f"larger than {self._most} bytes")
        data = ctypes.create_string_buffer(length.value)
        if not raw.FPDFAttachment_GetFile(self._attachment, data, length.value, length):
            raise Damaged("damaged: an attachment that cannot be read")
        return data.raw


def _text(ask: object, *given: object) -> str:
    """Return the UTF-16 text written by a function of pdfium."""
    room = (ctypes.c_ushort * (MAX_TEXT // 2))()
    size = ask(*given, room, MAX_TEXT)  # type: ignore[operator]
    return bytes(room)[: max(size - 2, 0)].decode("utf-16-le", "replace") if size <= MAX_TEXT else ""


def _mtime(attachment: pdfium.PdfAttachment) -> int:
    """Return the time of the last change in nanoseconds since the epoch; 0: unknown."""
    when = moment(_text(raw.FPDFAttachment_GetStringValue, attachment, b"ModDate"))
    return int(when.timestamp()) * 1_000_000_000 if when else 0


def open_pdf(body: Reader, budget: Budget) -> Iterator[Member]:
    """Yield the attachments. Raises Damaged, Refused."""
    data = exact(body, MAX_PDF + 1)
    try:
        document = pdfium.PdfDocument(data) if len(data) <= MAX_PDF else None
    except pdfium.PdfiumError:
        document = None
    if document is None:
        return
    damage: Damaged | None = None
    try:
        for number in range(document.count_attachments()):
            try:
                attachment = document.get_attachment(number)
            except pdfium.PdfiumError as error:
                damage = damage or Damaged(f"damaged: {error}")
                continue
            name = _text(raw.FPDFAttachment_GetName, attachment)
            yield Member(
                name=name.encode("utf-8", "replace") or b"attachment",
                mtime=_mtime(attachment),
                stated=_text(raw.FPDFAttachment_GetSubtype, attachment),
                body=_Attached(attachment, budget.limits.member),
            )
    finally:
        document.close()
    if damage:
        raise damage


UNNESTER = Container(("PDF",), open_pdf, summarized=True)
