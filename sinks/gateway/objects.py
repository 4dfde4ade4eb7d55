"""Bytes of objects, to be saved as files: a browser shows none of them, whatever their type says."""

from __future__ import annotations

import re
from urllib.parse import quote

from fastapi import Request
from fastapi.responses import Response

from processors.identity import file_name
from sinks.gateway.gateway import Gateway
from sinks.gateway.ports import ObjectError
from sinks.gateway.streams import LongAnswer, file_pieces
from sinks.gateway.texts import clean


def disposition(name: str) -> str:
    """Return the header that names an attachment (RFC 6266), with a name in ASCII for clients that know no other."""
    name = re.sub(r"[\x00-\x1f\ufffd]", "_", clean(name))
    plain = re.sub(r"[^A-Za-z0-9._ -]", "_", name)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='', errors='replace')}"


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
        "Content-Disposition": disposition(name),
        "Content-Length": str(length),
        "Content-Security-Policy": "sandbox",
        "Cache-Control": "private, no-cache",
    }

    def end() -> None:
        body.close()
        stream.end()

    return LongAnswer(file_pieces(body), end, "application/octet-stream", headers)
