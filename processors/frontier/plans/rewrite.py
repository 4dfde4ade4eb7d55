"""Rewriting of links: different URLs of one page become one, by rules that a root names.

Strategy: a rule takes something out of the path or the query, or orders it, and never touches scheme and host, so a rewritten link
stays in its partition. Each rule has versions, and a root keeps the version that it was given: a rule that changed would give every
object of the root another URL.

Laws:
- rewritten(rewritten(u)) == rewritten(u), and the result is canonical if u is.
- No rule applies unless the root names it, and none to the root itself.
- The order in which rules are named does not matter.

| rule | takes out |
| --- | --- |
| `session.1` | ids of sessions: `;jsessionid=` and `/(S(...))/` in the path, and parameters with such a name and value |
| `tracking.1` | parameters by which campaigns count visitors: `utm_...`, `gclid`, `fbclid` and others |
| `query-order.1` | nothing: sorts the parameters by name; those of one name keep their order |
| `default-document.1` | `index.html` and others of its kind at the end of a path, if there is no query |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from processors.schemes import scheme_of

WEB = ("http", "https")
"""Schemes whose URLs have the conventions that the rules know."""
Rule = Callable[[str, str], tuple[str, str]]
"""From path and query (without the question mark) to both, rewritten."""

_PATH_SESSION = re.compile(
    r";(?:jsessionid|sid|phpsessid)=[^/;?]*|/\((?:[A-Z]\([0-9a-z]{20,40}\))+\)(?=/)", re.ASCII | re.IGNORECASE
)
_SESSION = re.compile(
    r"(?:jsessionid|phpsessid|aspsessionid[a-z]{8}|cfid|cftoken|zenid|oscsid|session_?id)=[^&]*"
    # Names that also mean other things: only with a value of the length of an id.
    r"|(?:sid|s|sess|session)=[0-9a-z]{26,64}",
    re.ASCII | re.IGNORECASE,
)
_TRACKING = re.compile(
    r"(?:utm_\w+|gclid|gclsrc|dclid|gbraid|wbraid|fbclid|msclkid|yclid|twclid|ttclid|igshid|li_fat_id|mc_cid|mc_eid|mkt_tok"
    r"|_ga|_gl|_hsenc|_hsmi|__hs(?:tc|sc|fp)|vero_id|oly_anon_id|oly_enc_id|s_cid|icid|wickedid)(?:=[^&]*)?",
    re.ASCII | re.IGNORECASE,
)
_DOCUMENT = re.compile(
    r"(?<=/)(?:index\.(?:html?|shtml|xhtml|php|aspx?|jsp|cgi)|default\.(?:html?|aspx?))\Z", re.ASCII | re.IGNORECASE
)


def _session(path: str, query: str) -> tuple[str, str]:
    if ";" in path or "/(" in path:
        path = _without_sessions(path)
    return path, _without(_SESSION, query)


def _without_sessions(path: str) -> str:
    """Return a path without ids of sessions; unchanged if that makes a segment `.` or `..`, which leads elsewhere."""
    rest = path
    while (shorter := _PATH_SESSION.sub("", rest)) != rest:
        rest = shorter
    return path if {".", ".."}.intersection(rest.split("/")) else rest or "/"


def _tracking(path: str, query: str) -> tuple[str, str]:
    return path, _without(_TRACKING, query)


def _query_order(path: str, query: str) -> tuple[str, str]:
    return path, "&".join(sorted(filter(None, query.split("&")), key=lambda each: each.partition("=")[0]))


def _default_document(path: str, query: str) -> tuple[str, str]:
    return path if query else _DOCUMENT.sub("", path), query


def _without(pattern: re.Pattern[str], query: str) -> str:
    """Return a query without the parameters that match; unchanged if none does."""
    parts = query.split("&")
    kept = [part for part in parts if not pattern.fullmatch(part)]
    return query if len(kept) == len(parts) else "&".join(kept)


RULES: Mapping[str, Rule] = {
    "session.1": _session,
    "tracking.1": _tracking,
    "query-order.1": _query_order,
    # After those that may empty the query.
    "default-document.1": _default_document,
}
"""Every version of every rule, in the order in which they are applied. A version is never changed or removed."""

NAMES = tuple(dict.fromkeys(name.rpartition(".")[0] for name in RULES))


def newest(name: str) -> str:
    """Return the newest version of a rule. Raises KeyError for the name of no rule."""
    versions = [version for version in RULES if version.rpartition(".")[0] == name]
    if not versions:
        raise KeyError(name)
    return versions[-1]


class Rewriting:
    """The rules that a root names, with their versions. Raises ValueError for one that does not exist."""

    def __init__(self, named: Sequence[str]) -> None:
        for name in named:
            if name not in RULES:
                raise ValueError(f"rewrite: {name[:40]!r} is no rule (there are {', '.join(NAMES)})")
        self._rules = [(name, rule) for name, rule in RULES.items() if name in named]

    def __bool__(self) -> bool:
        """Return whether any rule applies."""
        return bool(self._rules)

    def rewritten(self, url: str) -> str:
        """Return a canonical URL as the rules rewrite it; one that is not of the web is returned unchanged."""
        if not self._rules or scheme_of(url).name not in WEB:
            return url
        scheme, _, rest = url.partition("://")
        host, slash, rest = rest.partition("/")
        path, _, query = rest.partition("?")
        path = slash + path
        for _, rule in self._rules:
            path, query = rule(path, query)
        return f"{scheme}://{host}{path}{'?' if query else ''}{query}"
