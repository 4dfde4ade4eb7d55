"""Writer of SOIF in canonical form: `@TYPE { URL` on one line; each attribute with its size; `}` on a line of its own.

Laws: `Parser` under the same limits reads the output as exactly the templates given; a template that SOIF
cannot express, or that is beyond the limits, raises ValueError before any of its bytes is returned. Neighbours in the same
collection share it: a collection is opened before the first of them and closed after the last.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from schemas.soif_syntax import BLANK, DEFAULT_LIMITS, Attribute, Template, TemplateLimits, grammar, shown


class Writer:
    """Writer of templates, one after another; it keeps the stack of open collections."""

    def __init__(self, limits: TemplateLimits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._within: tuple[str, ...] = ()

    def write(self, template: Template) -> bytes:
        """Return a template's bytes, preceded by the ends and starts of collections that it requires. Raises ValueError."""
        body = _body(template, self._limits)
        if len(template.within) > self._limits.depth:
            raise ValueError(f"SOIF: collections more than {self._limits.depth} deep")
        shared = 0
        for old, new in zip(self._within, template.within, strict=False):
            if old != new:
                break
            shared += 1
        opened = b"".join(_header(kind, "", self._limits) for kind in template.within[shared:])
        closed = b"}\n" * (len(self._within) - shared)
        self._within = template.within
        return closed + opened + body

    def close(self) -> bytes:
        """Return the ends of the open collections."""
        closed = b"}\n" * len(self._within)
        self._within = ()
        return closed


def dumps(templates: Iterable[Template], limits: TemplateLimits = DEFAULT_LIMITS) -> bytes:
    """Return templates as SOIF. Raises ValueError for templates that SOIF cannot express or that exceed the limits."""
    writer = Writer(limits)
    return b"".join([*map(writer.write, templates), writer.close()])


def nest(name: str, templates: Iterable[Template]) -> Attribute:
    """Return an attribute whose value is SOIF itself, to be read by `nested`. Raises ValueError."""
    return Attribute(name, dumps(templates))


def _body(template: Template, limits: TemplateLimits) -> bytes:
    if len(template.attributes) > limits.attributes:
        raise ValueError(f"SOIF: more than {limits.attributes} attributes")
    parts = [_header(template.type, template.url, limits)]
    for name, value in template.attributes:
        if len(value) > limits.value:
            raise ValueError(f"SOIF: {shown(name)} has more than {limits.value} bytes")
        parts += (_attribute(name, len(value), limits), value, b"\n")
    parts.append(b"}\n")
    if sum(len(name.encode()) + len(value) for name, value in template.attributes) > limits.template:
        raise ValueError(f"SOIF: a template of more than {limits.template} bytes")
    return b"".join(parts)


def _header(kind: str, url: str, limits: TemplateLimits) -> bytes:
    raw = url.encode()
    line = b"@%b {%b\n" % (kind.encode(), b" " + raw if raw else b"")
    found = grammar(limits).header.match(bytearray(line), 0)
    # A lone brace would be read as the end of the template, and blanks at the ends of a URL would be lost.
    if not found or found.end() != len(line) or raw.strip(BLANK) != raw or raw == b"}":
        raise ValueError(f"this type or URL cannot be written in SOIF: {shown(kind)}, {shown(url)}")
    return line


def _attribute(name: str, size: int, limits: TemplateLimits) -> bytes:
    return b"%b{%d}:\t" % (_name(name, limits), size)


@lru_cache(maxsize=4_096)
def _name(name: str, limits: TemplateLimits) -> bytes:
    """Return the bytes of an attribute's name. Raises ValueError. Cached: a few names are most of all attributes."""
    line = b"%b{0}:\t" % name.encode()
    found = grammar(limits).attribute.match(bytearray(line), 0)
    if not found or found.end() != len(line):
        raise ValueError(f"this name cannot be written in SOIF: {shown(name)}")
    return line[: -len(b"{0}:\t")]
