"""Route of a registry, to which servers send their registrations (`processors/registry/template.py`).

Laws:
- It is there with `serve.registry` and a token alone. The token is sent with each request: the cookie of /login does not register.
- A registration is checked as a whole before it is handed on; a mistake is 400 and one line, too long a body 413.
- Nothing is sent to the URL of a registration.
"""

from __future__ import annotations

from typing import Protocol

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse, Response
from starlette.exceptions import HTTPException

from processors.registry.template import MAX_BODY, Registration, RegistrationError, parse
from sinks.gateway.api import ANY, Responses, error_described
from sinks.gateway.gateway import Gateway
from sinks.gateway.guard import REGISTRY, is_token, presented

BAD: Responses = {400: error_described("The registration is none, or lacks something.")}
LONG: Responses = {413: error_described(f"The registration is longer than {MAX_BODY:,} bytes.")}


class Registry(Protocol):
    """Where registrations go; it may block, in any thread."""

    def take(self, registration: Registration) -> None:
        """Append a checked registration, or a withdrawal, to the log durably. Raises CollectionError."""
        ...


class RegistryRoutes:
    """Answers the requests of servers that register. The gateway has a token."""

    def __init__(self, gateway: Gateway, registry: Registry) -> None:
        self._gateway, self._registry = gateway, registry

    def router(self) -> APIRouter:
        """Return the route."""
        router = APIRouter(responses=ANY | BAD)
        body = {"requestBody": {"required": True, "content": {"text/plain": {"schema": {"type": "string", "maxLength": MAX_BODY}}}}}
        router.add_api_route(
            REGISTRY, self.register, methods=["POST"], response_class=PlainTextResponse, responses=LONG, openapi_extra=body
        )
        return router

    async def register(self, request: Request) -> Response:
        """Take a registration, renew it, or withdraw it."""
        if not is_token(self._gateway.options, presented(request.headers.get("authorization", ""))):
            raise HTTPException(401, "the token is sent with each registration", {"WWW-Authenticate": "Bearer"})
        try:
            registration = parse(await _body(request))
        except RegistrationError as error:
            raise HTTPException(400, str(error)) from None
        await self._gateway.slow(request, lambda: self._registry.take(registration))
        done = f"registered for {registration.ttl:,} s" if registration.ttl else "withdrawn"
        return PlainTextResponse(f"{registration.name} {registration.url} is {done}\n")


async def _body(request: Request) -> bytes:
    """Return the body of a request. Raises HTTPException (413) as soon as it is longer than a registration."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > MAX_BODY:
            raise HTTPException(413, f"a registration has at most {MAX_BODY:,} bytes", {"Connection": "close"})
    return bytes(body)
