"""Answers to errors: a status, and one line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from processors.query import QueryError
from sinks.gateway.admin.ports import AdministrationError
from sinks.gateway.answers import NotFoundError
from sinks.gateway.export import UnwritableError
from sinks.gateway.ports import CollectionError, ObjectError
from sinks.gateway.slots import BusyError, GoneError
from sinks.index.errors import IndexDamaged, IndexMissing, IndexUnreachable

HANDLED = (
    *(QueryError, NotFoundError, ObjectError, CollectionError, BusyError, GoneError, IndexDamaged, OSError),
    *(HTTPException, RequestValidationError, ClientDisconnect, UnwritableError, Exception),
)
"""Errors that become answers; of one that is a bug the server also logs a traceback."""
LATER = {"Retry-After": "5"}


class Explanation(NamedTuple):
    """Answer to an error."""

    status: int
    message: str
    headers: Mapping[str, str] = {}
    position: int | None = None
    """Position of a mistake in the query."""


def explained(error: Exception) -> Explanation:
    """Return the answer to an error."""
    match error:
        case QueryError():
            return Explanation(400, error.message, {}, error.position)
        case NotFoundError():
            return Explanation(404, str(error))
        case ObjectError() | AdministrationError():
            return Explanation(error.status, str(error))
        case GoneError() | ClientDisconnect():
            return Explanation(499, "the client has gone")
        case UnwritableError():
            return Explanation(409, str(error))
        case HTTPException():
            return Explanation(error.status_code, error.detail, dict(error.headers or {}))
        case RequestValidationError():
            fault = error.errors()[0]
            return Explanation(422, f"{'.'.join(str(part) for part in fault['loc'][1:])}: {fault['msg']}")
    return _later(error)


def _later(error: Exception) -> Explanation:
    """Return the answer to an error after which a request may be repeated."""
    match error:
        case BusyError():
            return Explanation(503, f"{error}: try again in a moment", {"Retry-After": str(error.wait)})
        case CollectionError():
            return Explanation(503, str(error), LATER)
        case IndexMissing():
            # Its message has the path of the data folder, which is nothing for strangers.
            return Explanation(503, "there is no index yet: gather something first", LATER)
        case IndexUnreachable():
            return Explanation(503, "the index cannot be read now: its server does not answer", LATER)
        case IndexDamaged() | OSError():
            return Explanation(503, "the index cannot be read now; harvest doctor says more", LATER)
    return Explanation(500, "this request failed; the log of the gateway says why")
