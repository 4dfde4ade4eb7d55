"""Fixtures shared by the unnesting tests: the members of any file as plain data."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from processors.essence.formats.container import Budget, Member, Reader, UnnestError, UnnestLimits
from processors.essence.unnest import Container, plugins
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
    # Values that most formats lack are left out, to keep the expected files short.
    plain = {name: value for name, value in plain.items() if value or name not in ("stated", "url")}
    return {**plain, **(_content(body) if body else {})}


@pytest.fixture(scope="session")
def read() -> Read:
    """Function from plug-in name and bytes to (members or content as plain data, reason of the damage or "")."""

    def read_all(
        plugin: str, data: bytes, limits: UnnestLimits | None = None, *, forward: bool = False
    ) -> tuple[list[dict[str, Any]], str]:
        unnester, budget = plugins()[plugin], Budget(limits or UnnestLimits(), len(data))
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
    """An unseekable stream that returns a few bytes per read."""

    def __init__(self, file: io.BytesIO) -> None:
        self._file = file

    def read(self, size: int, /) -> bytes:
        return self._file.read(min(size, 1_000))
