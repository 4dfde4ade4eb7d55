"""URLs of Gopher items (RFC 4266): `gopher://HOST:PORT/TYPE SELECTOR`, where TYPE is one character.

Laws:
- A selector is opaque: no segment of it is removed, and a `?` in it is no query. In the canonical form all bytes but unreserved
  characters and `/!$&'()*+,;=:@` are percent-encoded.
- The menu that an empty selector names has the path `/`, whether it is written so, as `/1`, or without a path.
- A selector with NUL, TAB, CR or LF has no URL: those end a selector or a request (RFC 1436, 3.4), so that a URL with one could
  send any text to any port. A search string (RFC 4266, 2.3) follows a TAB: no such URL is canonical either.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from processors.authority import canonical_authority, escaped, split

PORT = 70
MENU = "1"
MAX_SELECTOR = 1_024
"""Maximum bytes of a selector: RFC 1436 (appendix) has 255 characters, servers of today accept more."""
SAFE = "/!$&'()*+,;=:@"
REFUSED = frozenset(b"\0\t\r\n")


class GopherItem(NamedTuple):
    """What a Gopher URL names: the type of the item (RFC 1436, 3.8), and the selector that is sent."""

    type: str
    selector: bytes


def canonical_gopher(url: str) -> str | None:
    """Return the canonical form of a gopher URL, None if it is malformed."""
    parts = split(url, "gopher")
    if parts is None:
        return None
    authority, raw = parts
    return gopher_url(authority, GopherItem(chr(raw[0]), raw[1:]) if raw else GopherItem(MENU, b""))


def gopher_url(authority: str, item: GopherItem) -> str | None:
    """Return the canonical URL of an item of a server (`host` or `host:port`), None if there is none."""
    server = canonical_authority(authority, PORT)
    if server is None or not "!" <= item.type <= "~" or len(item.selector) > MAX_SELECTOR or REFUSED.intersection(item.selector):
        return None
    if item == (MENU, b""):
        return f"gopher://{server}/"
    return f"gopher://{server}/{escaped(item.type.encode('ascii') + item.selector, SAFE)}"


def gopher_item(url: str) -> GopherItem:
    """Return what a canonical gopher URL names."""
    raw = unquote_to_bytes(url.partition("://")[2].partition("/")[2])
    return GopherItem(chr(raw[0]), raw[1:]) if raw else GopherItem(MENU, b"")
