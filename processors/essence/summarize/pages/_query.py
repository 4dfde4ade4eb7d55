"""Queries of links, in the encoding of their page (WHATWG URL, 4.4, "query state"; HTML, 2.4.1).

A server expects the query that browsers send. The path is in UTF-8 whatever the page is in; the URL parser sees to that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import groupby

from processors.essence.formats import charsets
from processors.essence.summarize._base import MAX_URL

_BEYOND = re.compile(r"[^\x00-\x7f]++")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*+(?=:)")
SPECIAL = frozenset(("http", "https", "ftp", "file"))
"""Schemes whose URLs have a query in the page's encoding (WHATWG URL, 4.2 and 4.4)."""
IN_UTF8 = ("utf-", "hz", "iso2022-kr")
"""Encodings of pages whose queries are in UTF-8 (WHATWG Encoding, 4.3, "get an output encoding")."""
_ESCAPED = frozenset((*range(0x21), *b"\"#'<>", *range(0x7F, 0x100)))
"""Bytes that are escaped in a query (WHATWG URL, 1.3, "special-query percent-encode set")."""


def encode_query(href: str, encoding: str) -> str:
    """Return a reference without fragment with its query percent-encoded. `encoding`: of the page, named as in `charsets`."""
    location, mark, query = href.partition("?")
    # A longer one is dropped later: each of its characters takes two others at least, in UTF-8 six.
    if query.isascii() or encoding.startswith(IN_UTF8) or len(query) > MAX_URL // 2:
        return href
    scheme = _SCHEME.match(location)
    if scheme and scheme[0].lower() not in SPECIAL:
        return href
    return location + mark + _BEYOND.sub(lambda match: _percent(match[0], encoding), query)


def _percent(text: str, encoding: str) -> str:
    """Percent-encode after encoding (WHATWG URL, 1.3); what the encoding lacks becomes an escaped character reference."""
    try:
        raw = charsets.encode(text, encoding)
    except UnicodeEncodeError:
        parts = groupby(text, lambda char: _has(encoding, char))
        return "".join(_percent("".join(part), encoding) if known else _references(part) for known, part in parts)
    return "".join(f"%{byte:02X}" if byte in _ESCAPED else chr(byte) for byte in raw)


@lru_cache(maxsize=4_096)
def _has(encoding: str, char: str) -> bool:
    try:
        return bool(charsets.encode(char, encoding))
    except UnicodeEncodeError:
        return False


def _references(text: Iterable[str]) -> str:
    return "".join(f"%26%23{ord(char)}%3B" for char in text)
