"""Cookies of one redirect chain, by RFC 6265. No I/O.

Strategy: a jar belongs to one chain of redirects within one host, and ends with it: no cookie identifies this program in a later
request, and none reaches another host. Domain therefore only tells which cookies the host may not set.

Laws:
- A Set-Cookie field is read by RFC 6265, 5.2. A cookie without `=` or without a name is ignored, and so is one of another domain
  (5.3).
- A cookie is sent if its path matches and, with `Secure`, over https alone; longer paths come first (5.4).
- Max-Age takes precedence over Expires; an expired cookie deletes the one of the same name, domain and path (5.3).
- At most 50 cookies of 4,096 bytes each (6.1), and 8,190 bytes of one Cookie header: further ones are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import NamedTuple
from urllib.parse import urlsplit

MAX_COOKIES = 50
MAX_COOKIE = 4_096
"""Maximum bytes of a cookie: name, value and attributes."""
MAX_SENT = 8_190
"""Maximum bytes of the Cookie header."""

_DIGITS = re.compile(r"-?[0-9]{1,18}")
_BLANK = " \t"


class _Key(NamedTuple):
    name: str
    domain: str
    path: str


class _Cookie(NamedTuple):
    value: str
    secure: bool
    until: float
    """Expiry in ms since the epoch."""


class Jar:
    """The cookies of one chain. `now` is ms since the epoch: a chain is too short for its time to matter."""

    def __init__(self, now: int) -> None:
        self._now = now
        self._cookies: dict[_Key, _Cookie] = {}

    def __bool__(self) -> bool:
        return bool(self._cookies)

    def update(self, url: str, fields: Iterable[str]) -> None:
        """Take the Set-Cookie fields of the response to a canonical URL."""
        parts = urlsplit(url)
        for field in fields:
            found = self._parse(field, parts.hostname or "", parts.path)
            if found is None:
                continue
            key, cookie = found
            if cookie.until <= self._now:
                self._cookies.pop(key, None)
            elif key in self._cookies or len(self._cookies) < MAX_COOKIES:
                self._cookies[key] = cookie

    def header(self, url: str) -> str:
        """Return the Cookie header of a request for a canonical URL of the same host, "" for none."""
        parts = urlsplit(url)
        path, secure = parts.path or "/", parts.scheme == "https"
        fitting = [(key, one) for key, one in self._cookies.items() if _path_matches(path, key.path) and (secure or not one.secure)]
        header = ""
        for key, cookie in sorted(fitting, key=lambda item: -len(item[0].path)):
            longer = f"{header}; {key.name}={cookie.value}" if header else f"{key.name}={cookie.value}"
            if len(longer.encode()) <= MAX_SENT:
                header = longer
        return header

    def _parse(self, field: str, host: str, path: str) -> tuple[_Key, _Cookie] | None:
        """Return the cookie of one Set-Cookie field; None if it is ignored."""
        # Bytes that are not UTF-8 arrive as surrogates, which are not printable: they could not be sent back as received.
        if not field.replace("\t", " ").isprintable() or len(field.encode()) > MAX_COOKIE:
            return None
        pair, *attributes = field.split(";")
        name, equals, value = (part.strip(_BLANK) for part in pair.partition("="))
        if not equals or not name:
            return None
        known = {}
        for attribute in attributes:
            key, _, setting = attribute.partition("=")
            known[key.strip(_BLANK).lower()] = setting.strip(_BLANK)  # the last one counts (5.3)
        domain = known.get("domain", "").removeprefix(".").lower()
        if domain and not _domain_matches(host, domain):
            return None
        where = known.get("path", "")
        scope = where if where.startswith("/") else _default_path(path)
        return _Key(name, domain, scope), _Cookie(value, "secure" in known, self._until(known))

    def _until(self, known: dict[str, str]) -> float:
        """Return the expiry in ms since the epoch (5.2.1, 5.2.2): without one that can be read, that of a session."""
        age = known.get("max-age", "")
        if _DIGITS.fullmatch(age):
            return self._now + int(age) * 1000 if int(age) > 0 else 0
        try:
            when = parsedate_to_datetime(known.get("expires", ""))
            return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1000
        except (ValueError, OverflowError, TypeError):
            return float("inf")


def _domain_matches(host: str, domain: str) -> bool:
    """RFC 6265, 5.1.3: the same name, or a suffix of it behind a dot; an IP address has no domain above it."""
    numeric = ":" in host or host.rpartition(".")[2].isdigit()
    return host == domain or (not numeric and host.endswith(f".{domain}"))


def _default_path(path: str) -> str:
    """RFC 6265, 5.1.4: the path of the URL up to its last slash."""
    return path[: path.rfind("/")] if path.count("/") > 1 else "/"


def _path_matches(path: str, scope: str) -> bool:
    """RFC 6265, 5.1.4: the same path, or one below it."""
    return path == scope or (path.startswith(scope) and (scope.endswith("/") or path[len(scope)] == "/"))
