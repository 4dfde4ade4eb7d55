"""Bytes of objects, to be saved as files: a browser shows none of them, whatever their type says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO
from urllib.parse import quote

from fastapi import Request
from fastapi.responses import Response, StreamingResponse

from processors.identity import file_name
from sinks.gateway.gateway import Gateway
from sinks.gateway.ports import ObjectError

PIECE = 65_536


async def object_body(gateway: Gateway, request: Request, oid: str) -> Response:
    """Return the bytes of a local object or of a member as an attachment. Raises ObjectError, NotFoundError, BusyError."""
    if not gateway.options.objects:
        raise ObjectError("objects are not served here (serve.objects)", 403)
    summary = await gateway.search(request, lambda searcher: searcher.summary(oid))
    body, length = await gateway.slow(request, lambda: gateway.collection.body(summary))
    name = file_name(summary.url) or oid
    headers = {
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}",
        "Content-Length": str(length),
        "Content-Security-Policy": "sandbox",
        "Cache-Control": "private, no-cache",
    }
    if request.method == "HEAD":
        body.close()
        return Response(media_type="application/octet-stream", headers=headers)
    return StreamingResponse(_pieces(body), media_type="application/octet-stream", headers=headers)


def _pieces(body: BinaryIO) -> Iterator[bytes]:
    with body:
        while piece := body.read(PIECE):
            yield piece
