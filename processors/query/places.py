"""Places of a summary: the hosts that its URL is on, and the folders and archives that contain it.

Laws:
- A place is a run of whole segments: `in:docs` finds what lies in any folder or archive named docs, and nothing in `docs2`.
- The segments of a URL and of a query's place are made by the same function, so that they can be compared one by one. Both are
  percent-decoded and case folded; an escaped slash stays escaped, so that only a first segment can contain `://`.
- A phrase of `segment_terms(wanted)` occurs in `segment_terms(segments)` if and only if `is_inside(segments, wanted)`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from urllib.parse import quote

from processors.identity import readable
from processors.query.words import exact
from processors.schemes import scheme_of

MAX_HOST = 253
"""Maximum length of a host name in characters (RFC 1035, 2.3.4); a longer one has no names above it."""
MAX_TERM = 200
"""Maximum length of a term in characters; a longer one is replaced by a digest."""

LOCAL = "file://"
"""Scheme and authority of the files of this machine."""

_AFTER_HOST = re.compile("[/?#]")
_SPACE = re.compile(r"\s")
_UNSAFE = re.compile(r"[\s%=]")


def host(url: str) -> str:
    """Return the host of a URL in lower case, without user, port and final dot; IPv6 in brackets. "" if it has none (`file:`)."""
    scheme, mark, rest = url.partition("://")
    if not mark or _is_local(scheme):
        return ""
    authority = _AFTER_HOST.split(rest, maxsplit=1)[0].rpartition("@")[2]
    bare, bracket, _ = authority.partition("]")
    name = exact(bare + bracket if bracket else authority.partition(":")[0].rstrip("."))
    return "" if _SPACE.search(name) else name


def hosts(url: str) -> tuple[str, ...]:
    """Return the host of a URL and each name above it, the longest first; of an address only itself."""
    name = host(url)
    labels = name.split(".")
    if not name or len(name) > MAX_HOST or name.startswith("[") or _is_digits(labels[-1]):
        # As browsers do, a name that ends with a number is taken for an IPv4 address (WHATWG URL, 3.5).
        return (name,) if name else ()
    return (name, *(".".join(labels[at:]) for at in range(1, len(labels)) if labels[at]))


def _is_digits(label: str) -> bool:
    return label.isascii() and label.isdigit()


def segments(url: str) -> tuple[str, ...]:
    """Return the folders and archives that contain a summary, by its URL, outermost first; the first is scheme and authority.

    For example ("http://example.org:8080", "docs", "bundle.zip") for `http://example.org:8080/docs/bundle.zip#read.me`.
    """
    top, names = _split(url)
    return (*top, *_folded(names[:-1]))


def wanted(place: str) -> tuple[str, ...]:
    """Return the segments of a query's place: a URL, an absolute path of this machine, or names of folders and archives.

    Raises ValueError if there are none.
    """
    place = place.strip()
    top, names = _split(f"{LOCAL}{place}" if place.startswith("/") else place)
    found = (*top, *_folded(names))
    if not found or (top and not _is_local(top[0].partition("://")[0]) and top[0].endswith("://")):
        raise ValueError("a folder, an archive or the beginning of a URL is expected, such as docs/bundle.zip")
    return found


def is_inside(segments: Sequence[str], wanted: Sequence[str]) -> bool:
    """Return whether segments contain the wanted ones next to each other; scheme and authority occur only at the beginning."""
    run = tuple(wanted)
    return any(tuple(segments[at : at + len(run)]) == run for at in range(len(segments) - len(run) + 1))


def segment_terms(segments: Sequence[str]) -> list[str]:
    """Return each segment as a term of an index, without white space."""
    return [_term(segment) for segment in segments]


def _is_local(scheme: str) -> bool:
    return scheme_of(scheme.lower()).realm == "machine"


def _split(url: str) -> tuple[tuple[str, ...], list[str]]:
    """Split a URL into (scheme and authority, if it has any) and the encoded names of its path and of its members' paths."""
    place, *members = url.split("#")
    scheme, mark, rest = place.partition("://")
    if not mark:
        scheme, rest = "", place
    # Only the network has queries: in names of files and of members a question mark is a character.
    path, question, query = rest.partition("?") if mark and not _is_local(scheme) else (rest, "", "")
    authority, _, path = path.partition("/") if mark else ("", "", path)
    names = path.split("/")
    names[-1] += question + query
    for member in members:
        names += member.split("/")
    return ((exact(f"{scheme}://{authority.rpartition('@')[2]}"),) if mark else ()), names


def _folded(names: Sequence[str]) -> Iterator[str]:
    """Iterate over names for comparison; empty ones and `.` are left out."""
    for name in names:
        # After folding, which makes slashes of other characters.
        if (folded := exact(readable(name)).replace("/", "%2f")) not in ("", "."):
            yield folded


def _term(segment: str) -> str:
    term = _UNSAFE.sub(lambda found: quote(found[0]), segment)
    if len(term) <= MAX_TERM:
        return term
    # Nothing that is quoted contains an equals sign.
    return f"={hashlib.blake2b(segment.encode('utf-8', 'surrogatepass'), digest_size=16).hexdigest()}"
