"""The target of a declarative refresh, from a meta element or a Refresh header (HTML, 4.2.5.3 and 7.4.5)."""

from __future__ import annotations

import re

_REFRESH = re.compile(
    r"[\t\n\f\r ]*+(?=[0-9.])[0-9.]*+(?=[;,\t\n\f\r ])[\t\n\f\r ]*+[;,]?+[\t\n\f\r ]*+"
    r"(?:url[\t\n\f\r ]*+=[\t\n\f\r ]*+)?",
    re.IGNORECASE | re.ASCII,
)
"""The delay, and what separates it from the target."""
MAX_VALUE = 8_192
"""Characters of a value that are read."""


def refresh_target(value: str) -> str:
    """Return the reference that a refresh leads to; "" if it is malformed, or reloads the document itself."""
    value = value[:MAX_VALUE]
    begin = _REFRESH.match(value)
    target = value[begin.end() :] if begin else ""
    # A quote ends at the next one of its kind; one that is never closed is left out (shared declarative refresh steps, 8 to 10).
    return (target[1:].partition(target[0])[0] if target[:1] in ('"', "'") and target else target).strip("\t\n\f\r ")
