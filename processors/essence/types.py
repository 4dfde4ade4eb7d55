"""File types: their names, media types and how they extend each other, as `recognize/types.toml` declares them.

Recognition finds the type of a file by these rules; summarizing chooses a summarizer by them. Neither imports the other.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources

import msgspec

UNRECOGNIZED = "Unrecognized"
PLAIN = frozenset({"RawText", "Markdown", "ReStructuredText", "AsciiDoc", "Configuration"})
"""Types whose suffix means less than a whole name: README.md is a README."""
MARKUP = PLAIN - {"RawText", "Configuration"}
"""Markup languages among them."""

MEDIA = re.compile(r"[a-z]+/[a-z0-9.+-]+")
"""A media type, without parameters."""


class TypeRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One type as `types.toml` declares it; the fields are explained there."""

    media: str
    extends: str = UNRECOGNIZED
    text: bool = False
    stated: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()
    claims: dict[str, tuple[str, ...]] = {}
    names: tuple[str, ...] = ()
    starts: tuple[str, ...] = ()
    inside: str = ""
    sure: bool = False
    program: str = ""
    patterns: tuple[str, ...] = ()
    plain: bool = False


_own: list[Mapping[str, TypeRule]] = []
"""Rules in force if an operator has added some, else empty."""


@cache
def shipped() -> Mapping[str, TypeRule]:
    """Return the rules of `types.toml` by type, in its order."""
    text = resources.files("processors.essence.recognize").joinpath("types.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), dict[str, TypeRule])


def rules() -> Mapping[str, TypeRule]:
    """Return the rules in force in this process."""
    return _own[0] if _own else shipped()


def use(own: Mapping[str, TypeRule] | None) -> None:
    """Replace the rules in force in this process; None: those of `types.toml` alone."""
    _own[:] = [own] if own is not None else []
    _markup_suffixes.cache_clear()


def cut_media(rule: str, default: str) -> tuple[str, str]:
    """Split a rule like "png=image/png" into (png, image/png); without a media type, return the default."""
    head, equals, media = rule.rpartition("=")
    return (head, media) if equals and MEDIA.fullmatch(media) else (rule, default)


@cache
def _markup_suffixes() -> Mapping[str, str]:
    """Return the markup language of each suffix that has one."""
    found: dict[str, str] = {}
    for name, rule in rules().items():
        if name in MARKUP:
            for suffix in rule.suffixes:
                found.setdefault(cut_media(suffix, "")[0], name)
    return found


def markup_of(kind: str, name: bytes) -> str:
    """Return the markup language of a file typed by its whole name (README.md: a README in Markdown), or ""."""
    rule = rules().get(kind)
    if rule is None or not rule.names or kind in MARKUP:
        return ""
    return _markup_suffixes().get(name.decode("latin-1").lower().rpartition(".")[2], "")
