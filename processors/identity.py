"""Identity: the form of URLs, member URLs and OIDs (DESIGN "Identity").

OID = hex SHA-256 of gatherer name, newline, URL. A member is `object-url#member/path`, nested with further `#`; `#`, `%`
and bytes that are not UTF-8 are percent-encoded in paths, and a second member of the same name gets `;2`.
"""

from __future__ import annotations

import hashlib
from urllib.parse import quote, unquote, unquote_to_bytes

from processors.schemes import scheme_of

UNSAFE = {*range(0x21), 0x7F, ord("#"), ord("%")}
"""Bytes of a member path that are percent-encoded: controls and space, `#` and `%`."""
_ESCAPES = {byte: f"%{byte:02X}" for byte in UNSAFE}


def oid(gatherer: str, url: str) -> str:
    """Return the object identifier of a URL in one Gatherer: 64 hex digits."""
    return hashlib.sha256(f"{gatherer}\n{url}".encode()).hexdigest()


def member_path(name: bytes) -> str:
    """Return an archive member's name as a path: text, with `#`, `%`, controls and non-UTF-8 percent-encoded."""
    try:
        text = name.decode("utf-8")
    except UnicodeDecodeError:
        return "".join(chr(b) if b < 0x80 and b not in UNSAFE else f"%{b:02X}" for b in name)
    return text.translate(_ESCAPES)


def member_name(path: str) -> bytes:
    """Return the name that `member_path` encoded."""
    return unquote_to_bytes(path)


def member_url(object_url: str, path: str) -> str:
    """Return the URL of a member; the object's own for an empty path."""
    return f"{object_url}#{path}" if path else object_url


def split_url(url: str) -> tuple[str, str]:
    """Split a URL into (object URL, member path)."""
    object_url, _, path = url.partition("#")
    return object_url, path


def readable(url: str) -> str:
    """Return a URL or a member's path for display: percent-decoded, with U+FFFD for bytes that are not UTF-8."""
    return unquote(url, errors="replace")


def file_name(url: str) -> str:
    """Return the decoded name of the file or member that a URL refers to; "" for a URL without a path."""
    object_url, _, path = url.rpartition("#")
    if object_url:
        return readable(path.rpartition("/")[2])
    return readable(last_segment(path))


def last_segment(object_url: str) -> str:
    """Return the last segment of an object's path, which names it, percent-encoded; "" for a URL without a path."""
    place = object_url.partition("#")[0].partition("://")[2].partition("?")[0].rstrip("/")
    _, slash, path = place.partition("/")
    if slash and scheme_of(object_url).typed:
        path = path[1:]
    return path.rpartition("/")[2]


def file_url(path: bytes, *, folder: bool = False) -> str:
    """Return the `file:` URL of an absolute path (RFC 8089); a folder's ends with a slash."""
    url = "file://" + quote(path, safe="/!$&'()*+,;=:@~")
    return url + "/" if folder and not url.endswith("/") else url


def file_path(url: str) -> bytes:
    """Return the path of a `file:` URL. Raises ValueError for any other URL."""
    if not url.startswith("file:///"):
        raise ValueError(f"not a local file: {url[:100]}")
    return unquote_to_bytes(url[7:])


def frontier_key(url: str) -> str:
    """Return the key of a URL in the frontier: scheme://host:port; for `file:` the URL of its folder."""
    if scheme_of(url).realm == "machine":
        # The folder of the root folder is itself.
        return url[: url.rstrip("/").rfind("/") + 1] or "file:///"
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}"


def url_digest(url: str) -> bytes:
    """Return the 16-byte digest of a URL used in row keys and listing slices."""
    return hashlib.sha256(url.encode()).digest()[:16]
