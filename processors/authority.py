"""Canonical host and port of URLs whose scheme the WHATWG URL standard does not know (gopher, news).

The standard leaves the host of such a scheme as it is written, so that `0x7f.1` would not be recognized as an address. Here it is
parsed as the host of an http URL is.
"""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import quote, unquote_to_bytes

from ada_url import normalize_url

MAX_HOST = 253
MAX_PORT = 65_535

_AUTHORITY = re.compile(r"(?:[^/?#]*@)?(\[[0-9A-Fa-f:.]{2,45}\]|[^\[\]@:/?#\\]+)(?::([0-9]{0,5}))?")


@lru_cache(1_024)
def canonical_authority(text: str, port: int) -> str | None:
    """Return the canonical form of an authority (RFC 3986, 3.2) without user and default `port`; None if it is malformed.

    A port of 0 or above 65535 is malformed. The dots that end a host name are dropped.
    """
    found = _AUTHORITY.fullmatch(text)
    host = _host(found[1]) if found else ""
    if found is None or not host:
        return None
    given = int(found[2]) if found[2] else port
    if not 0 < given <= MAX_PORT:
        return None
    return host if given == port else f"{host}:{given}"


def _host(text: str) -> str:
    """Return the canonical host, "" for what is none."""
    try:
        href: str = normalize_url(f"http://{text}/")
    except ValueError:  # UnicodeEncodeError, for lone surrogates, is a subclass
        return ""
    host = href[len("http://") : -1]
    if not href.endswith("/") or "/" in host or len(host) > MAX_HOST:
        return ""
    # What is left without the dots may be an address (`1.2.3.4..`), so it is parsed again.
    return _host(host.rstrip(".")) if host.endswith(".") else host


def split(url: str, scheme: str) -> tuple[str, bytes] | None:
    """Return authority and unescaped path of `scheme://authority/path`, without fragment and first slash; None for another form.

    A control character that is not escaped, and a lone surrogate, are another form too.
    """
    head, mark, rest = url.strip("\x00\t\n\x0b\x0c\r ").partition("://")
    rest = rest.partition("#")[0]
    if not mark or head.lower() != scheme or any(c < " " or c == "\x7f" for c in rest):
        return None
    authority, _, path = rest.partition("/")
    try:
        return authority, unquote_to_bytes(path)
    except UnicodeEncodeError:  # a lone surrogate
        return None


def escaped(data: bytes, safe: str) -> str:
    """Return bytes percent-encoded, except unreserved characters (RFC 3986, 2.3) and those in `safe`."""
    return quote(data, safe=safe + "~")
