"""URLs of newsgroups and articles on a server (RFC 5538): `news://HOST:PORT/GROUP`, `news://HOST:PORT/MESSAGE-ID`.

Laws:
- What has an `@` is a message identifier, without its angle brackets; what has a `*` or `?` is a pattern of groups (RFC 5538, 3.3).
- A server without a path is the pattern `*`: all of its groups. A URL without a server names no server to ask: it is not canonical.
- A name with white space, a control character, an angle bracket or, in a group or pattern, a comma, has no URL: it would be another
  command or argument of NNTP.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple
from urllib.parse import unquote_to_bytes

from processors.authority import canonical_authority, escaped, split

PORT = 119
SAFE = "!$&'()*+,;=:@"
MAX_ID = 248
"""Maximum bytes of a message identifier without its angle brackets (RFC 3977, 3.6: 250 with them)."""
MAX_GROUP = 460
"""Maximum bytes of a group's name or of a pattern: a command line has at most 512 bytes (RFC 3977, 3.1)."""

_ID = re.compile(rb"[!-;=?-~]+@[!-;=?-~]+")
_GROUP = re.compile(rb"[^\x00- ,<>\x7f\\\[\]!]+")

NewsKind = Literal["article", "group", "groups"]


class NewsName(NamedTuple):
    """What a news URL names."""

    kind: NewsKind
    name: bytes
    """Message identifier without angle brackets, name of a group, or pattern (`groups`)."""


def canonical_news(url: str) -> str | None:
    """Return the canonical form of a news URL with a server, None for any other."""
    parts = split(url, "news")
    if parts is None:
        return None
    authority, name = parts
    # RFC 5538 has no query; a `?` of a pattern that was not escaped is one.
    return news_url(authority, name or b"*")


def news_url(authority: str, name: bytes) -> str | None:
    """Return the canonical URL of an article, group or pattern on a server, None if there is none."""
    server = canonical_authority(authority, PORT)
    article = b"@" in name
    if server is None or len(name) > (MAX_ID if article else MAX_GROUP) or not (_ID if article else _GROUP).fullmatch(name):
        return None
    return f"news://{server}/{escaped(name, SAFE)}"


def news_name(url: str) -> NewsName:
    """Return what a canonical news URL names."""
    name = unquote_to_bytes(url.partition("://")[2].partition("/")[2])
    if b"@" in name:
        return NewsName("article", name)
    return NewsName("groups" if b"*" in name or b"?" in name else "group", name)
