"""Scope of a root: which of the links found for it are admitted, by scheme, host and regular expression.

Strategy: a link has to pass every rule; the first that it fails is the reason of its refusal, and is named in it. Expressions are
those of RE2, which match in linear time whatever is written, and are applied to the canonical URL.

Laws:
- Without hosts and schemes of its own, a root with a host stays on its server: scheme, name and port, and those that it moved to.
- With either, the other one defaults to that of the server. A host without a port has the default port of the scheme.
- `*.NAME` matches every host below NAME, and not NAME itself.
- `deny` wins over `allow`. A root itself (depth 0, and where it moved to) is never refused by them.
"""

from __future__ import annotations

from collections.abc import Sequence

import re2

from processors.identity import frontier_key
from processors.schemes import scheme_of
from schemas.records import MAX_REASON, Plan, Root

OTHER_SERVER = "not on the server of the root"
MAX_PATTERNS = 1_000
"""Maximum number of expressions, and of hosts, of one root."""
MAX_PATTERN = 1_000
"""Maximum characters of one expression."""
MAX_MEMORY = 1 << 20
"""Maximum bytes that one compiled expression takes."""


class Scope:
    """The rules of one root, compiled. Raises ValueError for an expression that cannot be."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._allow = _compiled("allow", plan.allow)
        self._deny = _compiled("deny", plan.deny)
        self._hosts = frozenset(host for host in plan.hosts if not host.startswith("*."))
        self._below = tuple(host[1:] for host in plan.hosts if host.startswith("*."))
        if len(plan.hosts) > MAX_PATTERNS:
            raise ValueError(f"hosts: more than {MAX_PATTERNS:,}")

    def refusal(self, url: str, host: str, depth: int, root: Root) -> str:
        """Return why a link is not in the scope, naming the rule; "" if it is. `host`: its frontier key."""
        reason = self._wrong_server(host, depth, root)
        if reason or not depth:
            return reason
        for pattern, written in self._deny:
            if pattern.search(url):
                return _reason("deny", written)
        if self._allow and not any(pattern.search(url) for pattern, _ in self._allow):
            return "matches no allow of the root"
        return ""

    def _wrong_server(self, host: str, depth: int, root: Root) -> str:
        own = (root.host, frontier_key(root.url))
        if not (self._plan.hosts or self._plan.schemes) or scheme_of(host).realm != "network":
            return OTHER_SERVER if root.host and host not in own else ""
        if host in own and (not depth or not self._plan.hosts):
            return ""
        scheme, _, name = host.partition("://")
        if scheme not in (self._plan.schemes or {key.partition("://")[0] for key in own}):
            return f"not of the schemes of the root: {scheme}"[:MAX_REASON]
        if self._plan.hosts:
            below = any(name.endswith(end) and len(name) > len(end) for end in self._below)
            return "" if below or name in self._hosts else "not of the hosts of the root"
        return "" if name in {key.partition("://")[2] for key in own} else OTHER_SERVER


def _reason(rule: str, written: str) -> str:
    return f"{rule} of the root: {written}"[:MAX_REASON]


def _compiled(rule: str, patterns: Sequence[str]) -> list[tuple[re2._Regexp, str]]:
    """Return the compiled expressions of a rule with their text. Raises ValueError with one line that names the rule."""
    if len(patterns) > MAX_PATTERNS:
        raise ValueError(f"{rule}: more than {MAX_PATTERNS:,} expressions")
    options = re2.Options()
    options.max_mem = MAX_MEMORY
    options.log_errors = False
    options.never_capture = True
    found = []
    for written in patterns:
        if len(written) > MAX_PATTERN:
            raise ValueError(f"{rule}: an expression of more than {MAX_PATTERN:,} characters")
        try:
            found.append((re2.compile(written, options=options), written))
        except re2.error as error:
            text = error.args[0] if error.args else ""
            raise ValueError(f"{rule}: {written[:60]!r} is no expression of RE2: {_text(text)[:80]}") from None
    return found


def _text(message: object) -> str:
    return message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)
