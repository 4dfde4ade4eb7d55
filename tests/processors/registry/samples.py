"""Registrations of servers of our own making."""

from __future__ import annotations

from processors.registry.template import Registration, parse
from schemas import soif
from schemas.soif_syntax import Attribute, Template

SERVER = {
    "name": "cs",
    "kind": "broker",
    "title": "Computer science",
    "description": "Technical reports of the department.",
    "summaries": "1234",
    "time-to-live": "3600",
}


def template(url: str = "http://h.example/", **changed: str | bytes | None) -> bytes:
    """Return a registration as SOIF; `changed`: attributes with `_` for `-`, None: left out."""
    return soif.dumps([made(url, **changed)])


def made(url: str, **changed: str | bytes | None) -> Template:
    """Return a registration as a template."""
    given = SERVER | {name.replace("_", "-"): value for name, value in changed.items()}
    values = [(name, value if isinstance(value, bytes) else value.encode()) for name, value in given.items() if value is not None]
    return Template("SERVER", url, tuple(Attribute(name, value) for name, value in values))


def server(number: int, **changed: str | int) -> Registration:
    """Return the registration of one of many servers, for an hour."""
    own = {"name": f"server-{number}", "title": f"Server number{number}"} | {name: str(value) for name, value in changed.items()}
    return parse(template(f"http://h{number}.example/", **own))


def withdrawal(of: Registration) -> Registration:
    """Return the withdrawal of a registration."""
    return Registration(of.url, of.name)
