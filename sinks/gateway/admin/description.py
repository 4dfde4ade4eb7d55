"""What OpenAPI says of the actions of the administration page, for programs, which have its token as a bearer."""

from __future__ import annotations

from typing import Any

from fastapi.responses import PlainTextResponse

from sinks.gateway.admin.actions import MAX_NAME, Ask

FORM = "application/x-www-form-urlencoded"
ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"description": "It is done: one line that says what."},
    303: {"description": "It is done, for a browser: to the page that shows it."},
    401: {"description": "The token of the page is needed."},
    403: {"description": "The form is of another site, or of another session."},
    409: {"description": "It cannot be done now: one line that says why."},
    414: {"description": "The address is too long."},
    422: {"description": "It cannot be done so: one line that says why."},
    429: {"description": "Too many requests of this client."},
    431: {"description": "The head of the request is too long."},
    503: {"description": "Too many requests, or the log cannot be read now."},
}
"""Answers to an action. Those beside 200 have no type here: a browser gets a page where a program gets a line."""


def description(ask: Ask) -> dict[str, Any]:
    """Return what the route of an action says of it: its form and its answers, as arguments of `add_api_route`."""
    properties = {field: {"type": "string", "maxLength": MAX_NAME} for field in ask.fields}
    form = {"schema": {"type": "object", "properties": properties}}
    return {
        "summary": f"Administration: {ask.page} {ask.name}",
        "responses": ANSWERS,
        "response_class": PlainTextResponse,
        "openapi_extra": {"requestBody": {"content": {FORM: form}}},
    }
