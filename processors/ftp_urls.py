"""Canonical FTP URLs (RFC 1738, 3.2), and names of files in them.

Laws:
- A path has names only: no empty one, no `.` or `..`, none with a slash, CR, LF or NUL, so that it can stand in a command.
- A path below the root directory, instead of the directory of the login, begins with `%2F/`; `%2Fetc` is written `%2F/etc`.
- FTP has no query: `?` is part of a name, and written `%3F`; `;` is written `%3B`, since `;type=` ends a URL.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote_to_bytes

from ada_url import normalize_url

TOP = "%2F/"
"""Begins the path of a URL below the root directory."""
MAX_HOST = 253
_SAFE = "!$&'()*+,=:@~"
_TYPE = re.compile(r";type=[aid]$", re.IGNORECASE)
_IMPOSSIBLE = re.compile(rb"[/\0\r\n]")


def ftp_name(name: bytes) -> str:
    """Return the name of a file or directory as it stands in a canonical URL, "" if it is one that no file has."""
    return "" if name in (b".", b"..") or _IMPOSSIBLE.search(name) else quote(name, safe=_SAFE)


def ftp_path(url: str) -> tuple[bool, bytes]:
    """Return whether the path of a canonical URL begins at the root directory, and the path without slashes around it."""
    path = url.partition("://")[2].partition("/")[2]
    return path.startswith(TOP), unquote_to_bytes(path.removeprefix(TOP)).rstrip(b"/")


def canonical_ftp(href: str) -> str | None:
    """Return the canonical form of an FTP URL that was parsed by the URL standard; None if no file can have it.

    User and password are dropped, and `;type=`; a URL with `;type=d` is that of a directory, which ends with a slash.
    """
    authority, _, path = href.removeprefix("ftp://").partition("/")
    host = _host(authority.rpartition("@")[2])
    kind = _TYPE.search(path)
    path = path[: kind.start()] if kind else path
    is_folder = path.endswith("/") or not path or (kind is not None and kind[0][-1] in "dD")
    first, *others = [segment for segment in path.split("/") if segment] or [""]
    top = ""
    while first[:3].upper() == "%2F":
        top, first = TOP, first[3:]
    names = [ftp_name(unquote_to_bytes(segment)) for segment in (first, *others) if segment]
    if not host or not all(names):
        return None
    return f"ftp://{host}/{top}{'/'.join(names)}{'/' if is_folder and names else ''}"


def _host(authority: str) -> str:
    """Return host and port without the dots that end the name; the rest may be an address, so it is parsed again."""
    name, colon, port = authority.partition(":")
    if name.endswith("."):
        try:
            href: str = normalize_url(f"ftp://{name.rstrip('.')}{colon}{port}/")
        except ValueError:
            return ""
        return _host(href.removeprefix("ftp://").partition("/")[0])
    return authority if len(authority) <= MAX_HOST + 6 else ""
