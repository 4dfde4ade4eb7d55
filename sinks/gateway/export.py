"""All matches of a query as one stream: JSON lines, CSV, or SOIF, as they are or compressed.

Matches come in order of OID, copies included, from one snapshot of the index; a summary that is removed meanwhile is left out.
The stream has no end of its own: an export that breaks off is seen by its missing last chunk, or by its compressed form.
"""

from __future__ import annotations

import csv
import io
import logging
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Literal, Protocol

from schemas.jsonform import line
from schemas.ports import BrokerIndex
from schemas.query import Query
from schemas.records import Summary
from schemas.soif import dumps
from schemas.soif_summary import to_template
from sinks.gateway.index_pool import IndexPool

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

LOG = logging.getLogger("harvest.gateway")
Format = Literal["jsonl", "csv", "soif"]
Compression = Literal["none", "gzip", "zstd"]

MEDIA: Mapping[Format, str] = {"jsonl": "application/jsonl", "csv": "text/csv; charset=utf-8", "soif": "text/plain; charset=utf-8"}
ENDING: Mapping[Compression, str] = {"none": "", "gzip": ".gz", "zstd": ".zst"}
STEP, MAX_STEP = 10, 200
"""Number of summaries of the first piece, and the maximum for a piece."""
PIECE = 256 << 10
"""Bytes of a piece above which the next one has fewer summaries."""
COLUMNS = ("oid", "url", "type", "content_type", "size", "md5", "title", "author", "date", "keywords", "description")
"""Columns of CSV: properties, then attributes, whose values are joined by " | "."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""Beginnings of values that a spreadsheet would compute."""


class UnwritableError(Exception):
    """A summary cannot be written in a format."""


class _Compressor(Protocol):
    def compress(self, data: bytes, /) -> bytes: ...

    def flush(self) -> bytes: ...


def export(indexes: IndexPool, tree: Query, form: Format, compression: Compression) -> Iterator[bytes]:
    """Iterate over the pieces of an export. The first one is asked for before anything is sent: it raises what the index raises."""
    index = indexes.take()
    try:
        pieces = _compressed(_pieces(index, tree, form), compression)
        yield from pieces
    finally:
        index.close()


def _pieces(index: BrokerIndex, tree: Query, form: Format) -> Iterator[bytes]:
    if form == "csv":
        yield _row(COLUMNS)
    write: Callable[[Summary], bytes] = {"jsonl": _json, "csv": _csv, "soif": _soif}[form]
    oids, count = index.scroll(tree), STEP
    while step := list(islice(oids, count)):
        found = index.records(step)
        piece = b"".join(write(found[oid]) for oid in step if oid in found)
        # Summaries may have some bytes or some MB.
        count = max(1, count // 2) if len(piece) > PIECE else min(2 * count, MAX_STEP)
        yield piece


def soif(summary: Summary) -> bytes:
    """Return a summary as SOIF. Raises UnwritableError if it cannot be written so."""
    try:
        return dumps([to_template(summary)])
    except ValueError as error:
        raise UnwritableError(f"this summary cannot be written as SOIF: {error}") from error


def _json(summary: Summary) -> bytes:
    return line(summary).encode() + b"\n"


def _soif(summary: Summary) -> bytes:
    try:
        return soif(summary)
    except UnwritableError as error:
        # One of them is no reason to keep the others back.
        LOG.warning("left out of an export: %s: %s", summary.oid, error)
        return b""


def _csv(summary: Summary) -> bytes:
    return _row([_cell(summary, name) for name in COLUMNS])


def _cell(summary: Summary, name: str) -> str:
    own = getattr(summary, name, None)
    if own is not None:
        return str(own)
    values = (value.decode("utf-8", "replace") if isinstance(value, bytes) else value for value in summary.attributes.get(name, ()))
    return " | ".join(map(_inert, values))


def _inert(cell: str) -> str:
    """Return a cell that no spreadsheet computes."""
    return f"'{cell}" if cell.startswith(_FORMULA) else cell


def _row(cells: Iterator[str] | list[str] | tuple[str, ...]) -> bytes:
    """Return a line of CSV (RFC 4180); a value that a spreadsheet would compute begins with an apostrophe."""
    out = io.StringIO()
    csv.writer(out).writerow(map(_inert, cells))
    return out.getvalue().encode("utf-8", "replace")


def _compressed(pieces: Iterator[bytes], compression: Compression) -> Iterator[bytes]:
    compressor: _Compressor
    match compression:
        case "none":
            yield from pieces
            return
        case "gzip":
            compressor = zlib.compressobj(wbits=31)
        case "zstd":
            compressor = zstd.ZstdCompressor()
    for piece in pieces:
        if packed := compressor.compress(piece):
            yield packed
    yield compressor.flush()
