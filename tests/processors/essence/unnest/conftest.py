"""What the tests of unnesting share: the members of any file, as plain data."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from processors.essence.unnest import Budget, Container, Limits, Member, Reader, UnnestError, plugins
from processors.identity import member_path

SHORT = 100

Outcome = tuple[list[dict[str, Any]], str]
Read = Callable[..., Outcome]


def _content(body: Reader) -> Mapping[str, Any]:
    data, error = b"", ""
    try:
        while part := body.read(7_001):
            data += part
    except UnnestError as problem:
        error = problem.reason
    text = data.decode("utf-8", "replace")
    shown: dict[str, Any] = (
        {"text": text} if len(data) <= SHORT else {"length": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    )
    return {**shown, "error": error} if error else shown


def _described(member: Member) -> dict[str, Any]:
    plain = member._asdict()
    body = plain.pop("body")
    plain |= {"name": member_path(member.name), "target": member.target.decode("utf-8", "replace")}
    # What most formats do not tell is left out, so that their samples do not say so each time.
    plain = {name: value for name, value in plain.items() if value or name not in ("stated", "url")}
    return {**plain, **(_content(body) if body else {})}


@pytest.fixture(scope="session")
def read() -> Read:
    """A function from a plug-in's name and bytes to (the members or the content as plain data, the reason of the damage or "")."""

    def read_all(
        plugin: str, data: bytes, limits: Limits | None = None, *, forward: bool = False
    ) -> tuple[list[dict[str, Any]], str]:
        unnester, budget = plugins()[plugin], Budget(limits or Limits(), len(data))
        file = io.BytesIO(data)
        source: Reader = Forward(file) if forward else file
        found: list[dict[str, Any]] = []
        try:
            if isinstance(unnester, Container):
                found.extend(_described(member) for member in unnester.open(source, budget))
            else:
                found.append(dict(_content(unnester.open(source, budget))))
        except UnnestError as error:
            return found, error.reason
        return found, found[-1].get("error", "") if found and not isinstance(unnester, Container) else ""

    return read_all


class Forward:
    """A stream that cannot be sought in, and gives a few bytes at a time."""

    def __init__(self, file: io.BytesIO) -> None:
        self._file = file

    def read(self, size: int, /) -> bytes:
        return self._file.read(min(size, 1_000))
