"""What a client is told about an error: a status, and one line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from processors.query import QueryError
from sinks.gateway.answers import NotFoundError
from sinks.gateway.ports import CollectionError, ObjectError
from sinks.gateway.slots import BusyError
from sinks.index.errors import IndexDamaged, IndexMissing

HANDLED = (
    *(QueryError, NotFoundError, ObjectError, CollectionError, BusyError, IndexDamaged, OSError),
    *(HTTPException, RequestValidationError, Exception),
)
"""Errors that become answers; of one that is a bug the server also logs a traceback."""
LATER = {"Retry-After": "5"}


class Explanation(NamedTuple):
    """What a client is told."""

    status: int
    message: str
    headers: Mapping[str, str] = {}
    position: int | None = None
    """Position of a mistake in the query."""


def explained(error: Exception) -> Explanation:
    """Return what a client is told about an error."""
    match error:
        case QueryError():
            return Explanation(400, error.message, {}, error.position)
        case NotFoundError():
            return Explanation(404, str(error))
        case ObjectError():
            return Explanation(error.status, str(error))
        case CollectionError():
            return Explanation(503, str(error), LATER)
        case BusyError():
            return Explanation(503, f"{error}: try again in a moment", {"Retry-After": str(error.wait)})
        case IndexMissing():
            return Explanation(503, f"there is no index yet: gather something first ({error})", LATER)
        case IndexDamaged() | OSError():
            return Explanation(503, f"the index cannot be read now: {error}", LATER)
        case HTTPException():
            return Explanation(error.status_code, error.detail, dict(error.headers or {}))
        case RequestValidationError():
            fault = error.errors()[0]
            return Explanation(422, f"{'.'.join(str(part) for part in fault['loc'][1:])}: {fault['msg']}")
    return Explanation(500, "this request failed; the log of the gateway says why")
