"""Bytes of objects, to be saved as files: a browser shows none of them, whatever their type says."""

from __future__ import annotations

from urllib.parse import quote

from fastapi import Request
from fastapi.responses import Response

from processors.identity import file_name
from sinks.gateway.gateway import Gateway
from sinks.gateway.ports import ObjectError
from sinks.gateway.streams import LongAnswer, file_pieces


async def object_body(gateway: Gateway, request: Request, oid: str) -> Response:
    """Return the bytes of a local object or of a member as an attachment. Raises ObjectError, NotFoundError, BusyError."""
    if not gateway.options.objects:
        raise ObjectError("objects are not served here (serve.objects)", 403)
    summary = await gateway.search(request, lambda searcher: searcher.summary(oid))
    stream = gateway.stream(request)
    try:
        body, length = await gateway.slow(request, lambda: gateway.collection.body(summary))
    except BaseException:
        stream.end()
        raise
    name = file_name(summary.url) or oid
    headers = {
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}",
        "Content-Length": str(length),
        "Content-Security-Policy": "sandbox",
        "Cache-Control": "private, no-cache",
    }

    def end() -> None:
        body.close()
        stream.end()

    return LongAnswer(file_pieces(body), end, "application/octet-stream", headers)
