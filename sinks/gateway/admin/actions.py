"""The actions of the administration page: their paths, the fields of their forms, and what each asks of the port."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from sinks.gateway.admin.ports import Administration, AdministrationError

MAX_NAME = 8_000
"""Maximum characters of a field."""
_NUMBER = re.compile(r"-?[0-9]{1,16}")


class Ask(NamedTuple):
    """An action: `POST /admin/PAGE/NAME` with these fields."""

    page: str
    """Page that its form is on, and that shows what it has done."""
    name: str
    fields: tuple[str, ...]
    do: Callable[[Administration, Mapping[str, str]], str]
    """Carries it out, given a value for each field; returns one line. Raises AdministrationError."""


def _add(port: Administration, form: Mapping[str, str]) -> str:
    depth, most = (_number(form, field, least) for field, least in (("depth", -1), ("max-urls", 0)))
    return port.add_root(_name(form, "root"), depth, most)


def _retry(port: Administration, form: Mapping[str, str]) -> str:
    return port.retry(_name(form, "name")) if form["name"] else port.retry_reason(_name(form, "reason"))


def _save(port: Administration, form: Mapping[str, str]) -> str:
    title = _name(form, "title")
    if "/" in title:
        raise AdministrationError("title: has a slash; the views above it are written into the field below which it is to be")
    path = f"{_name(form, 'path').strip('/')}/{title}" if form["path"] else title
    return port.save_view(_name(form, "broker"), path, _name(form, "query"))


ACTIONS = (
    Ask("roots", "add", ("root", "depth", "max-urls"), _add),
    Ask("roots", "pause", ("root",), lambda port, form: port.pause_root(_name(form, "root"))),
    Ask("roots", "resume", ("root",), lambda port, form: port.resume_root(_name(form, "root"))),
    Ask("roots", "remove", ("root",), lambda port, form: port.remove_root(_name(form, "root"))),
    Ask("brokers", "rebuild", ("broker",), lambda port, form: port.rebuild(_name(form, "broker"))),
    Ask("views", "save", ("broker", "path", "title", "query"), _save),
    Ask("rejected", "retry", ("name", "reason"), _retry),
)


def _name(form: Mapping[str, str], field: str) -> str:
    """Return the value of a field that names something. Raises AdministrationError."""
    value = form[field]
    if not value:
        raise AdministrationError(f"{field}: is empty")
    if len(value) > MAX_NAME or not value.isprintable():
        raise AdministrationError(f"{field}: has control characters, or is longer than {MAX_NAME:,} characters")
    return value


def _number(form: Mapping[str, str], field: str, least: int) -> int | None:
    """Return the number in a field; None if it is empty. Raises AdministrationError."""
    value = form[field]
    if not value:
        return None
    if not _NUMBER.fullmatch(value) or int(value) < least:
        raise AdministrationError(f"{field}: a whole number from {least} on is needed")
    return int(value)
