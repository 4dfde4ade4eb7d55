"""Canonical URLs, signs of crawler traps, and the addresses that may be dialled.

Strategy: ada-url parses by the WHATWG URL standard, as browsers do, so that `0x7f.1` or a full-width `1` is recognized as the
address that it is before any check. What the standard leaves open is settled here by RFC 3986, 6.2.2: escapes
in upper case, unreserved characters unescaped. Each URL is parsed once; nothing here resolves names.

Laws:
- canonical(canonical(u)) == canonical(u), and two spellings of one URL have one canonical form.
- For `file:` URLs the canonical form is what `processors.identity.file_url` returns for the path.
- guard() decides on the address that will be dialled, never on a name; an address is refused unless it is known to be public.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from ada_url import join_url, normalize_url

from processors.ftp_urls import canonical_ftp
from processors.gopher_urls import canonical_gopher
from processors.identity import file_url
from processors.news_urls import canonical_news
from processors.schemes import is_web, may_name, scheme_of

Network = IPv4Network | IPv6Network

MAX_URL = 2_000
"""Maximum length of a canonical http(s) URL in characters (sitemaps.org: below 2,048)."""
MAX_PATH = 3 * 4_096 + 8
"""Maximum length of a canonical `file:` or `ftp:` URL: PATH_MAX with each byte escaped: no file is lost for its long name."""
MAX_GIVEN = 16_384
"""Maximum length of parsed input in characters: a page may have megabytes between two quotes."""
MAX_HOST = 253

MAX_SEGMENTS = 20
"""Maximum number of path segments of a web URL (Heritrix, TooManyPathSegmentsDecideRule)."""
MAX_SAME_SEGMENT = 4
"""Maximum number of occurrences of one path segment in a URL."""
MAX_CYCLE = 2
"""Maximum repetitions of a sequence of segments; a third in a row is a trap (Heritrix, PathologicalPathDecideRule)."""
MAX_QUERY = 512
MAX_PARAMETERS = 16
MAX_SAME_PARAMETER = 6
MAX_SIMILAR = 50
"""Number of suspicious URLs of one pattern on one host from which on further ones are refused: the pattern is endless."""

_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})?")
_PLAIN = re.compile(
    r"(?:file://|https?://(?:[a-z0-9]++(?:-[a-z0-9]++|(?!))*+\.|(?!))++[a-z]{2,}+)/"
    r"(?:[\w~-][\w.~-]*+/|(?!))*+(?:[\w~-][\w.~-]*+)?",
    re.ASCII,
)
"""URLs that are canonical already: a host name in lower case (no address), no port, no escape, no `.` or `..` segments."""
_NAME = re.compile(r"[\w~-][\w.~-]*+", re.ASCII)
"""A last segment without escapes that is neither `.` nor `..`."""


def canonical(url: str, base: str = "") -> str | None:
    """Return the canonical form of a URL of a gathered scheme, relative to `base` if given; None if malformed or other.

    Fragment, credentials, default port, an empty query and the dots that end a host name are dropped. A web page cannot name
    files of this machine: a `file:` URL with a base that is not one yields None.
    """
    if len(url) < MAX_HOST and _PLAIN.fullmatch(url):
        # Most URLs match, and parsing takes ten times as long as this test.
        return url if not base or may_name(base, url) else None
    if len(url) > MAX_GIVEN:
        return None
    if opaque := _OPAQUE.match(url):
        made = _CANONICAL[opaque[1].lower()](url)
        return made if made and len(made) <= MAX_URL and (not base or may_name(base, made)) else None
    try:
        href: str = join_url(base, url) if base else normalize_url(url)
    except ValueError:  # UnicodeEncodeError, for lone surrogates, is a subclass
        return None
    href = href.partition("#")[0]
    make = _CANONICAL.get(href.partition(":")[0])
    return make(href) if make and (not base or may_name(base, href)) else None


def canonicalizer(base: str) -> Callable[[str], str | None]:
    """Return `canonical` relative to `base`, faster for many web URLs of few folders: each folder is parsed once.

    A plain last segment (or end of a query) cannot change the form of the URL, so what holds for one of them holds for all.
    """
    folders: dict[str, bool] = {}

    def found(url: str) -> str | None:
        above, _, name = url.rpartition("/")
        if len(url) >= MAX_HOST or not _NAME.fullmatch(name) or not is_web(url):
            return canonical(url, base)
        kept = folders.get(above)
        if kept is None:
            kept = folders[above] = canonical(f"{above}/x", base) == f"{above}/x"
        return url if kept else canonical(url, base)

    return found


def _web(href: str) -> str | None:
    if href.endswith("?") and href.index("?") == len(href) - 1:
        href = href[:-1]
    scheme, _, rest = href.partition("://")
    authority, _, path = rest.partition("/")
    if "@" in authority:
        authority = authority.rpartition("@")[2]
    if "%" in path:
        path = _ESCAPE.sub(_escape, path)
    result = f"{scheme}://{authority}/{path}"
    if len(authority) > MAX_HOST + 6 or len(result) > MAX_URL:
        return None
    host, colon, port = authority.partition(":")
    if host.endswith("."):
        # The rest may be an address (`1.2.3.4..`), so it is parsed again.
        host = host.rstrip(".")
        return canonical(f"{scheme}://{host}{colon}{port}/{path}") if host else None
    return result


def _escape(found: re.Match[str]) -> str:
    """Return one escape as RFC 3986 (6.2.2.1, 6.2.2.2) writes it; a lone percent sign becomes `%25`."""
    digits = found[1]
    if digits is None:
        return "%25"
    code = int(digits, 16)
    return chr(code) if code in _UNRESERVED else "%" + digits.upper()


def _file(href: str) -> str | None:
    """Return the canonical form of a local path. A file has no query; an escaped slash or NUL is in no file's name."""
    if not href.startswith("file:///"):
        return None
    path = href[7:].partition("?")[0]
    lower = path.lower()
    if "%2f" in lower or "%00" in lower:
        return None
    result = file_url(unquote_to_bytes(path))
    return result if len(result) <= MAX_PATH else None


def _ftp(href: str) -> str | None:
    result = canonical_ftp(href)
    return result if result and len(result) <= MAX_PATH else None


_CANONICAL: Mapping[str, Callable[[str], str | None]] = {
    "http": _web,
    "https": _web,
    "file": _file,
    "ftp": _ftp,
    "gopher": canonical_gopher,
    "news": canonical_news,
}
"""What makes the URLs of a scheme canonical."""
_OPAQUE = re.compile(r"[\0- ]*(gopher|news):", re.IGNORECASE)
"""Schemes whose paths are opaque. The URL standard would remove `..` and line ends from them."""


class Suspicion(NamedTuple):
    """Why a URL looks like one of endlessly many. Some sites have URLs of such a shape that are few: tiles of maps, forms."""

    pattern: str
    """Equal for URLs of a host that one trap makes."""
    reason: str


@lru_cache(256)  # the frontier needs it three times for a new URL
def suspicion(url: str) -> Suspicion | None:
    """Return why a canonical URL looks like one of endlessly many, None if it does not. `file:` URLs never do."""
    if not scheme_of(url).limited:
        return None
    location, mark, query = url.partition("?")
    if location.count("/") > 4:
        found = _suspicious_path(location.split("/")[3:])
        if found:
            return found
    reason = _suspicious_query(query) if mark else ""
    return Suspicion(f"query {location}", reason) if reason else None


def _suspicious_path(segments: list[str]) -> Suspicion | None:
    if len(segments) > MAX_SEGMENTS:
        return Suspicion(f"depth {segments[0]}", f"trap: more than {MAX_SEGMENTS} path segments")
    # Of segments that occur equally often the least: then the pattern does not depend on their order.
    counts = Counter(s for s in segments if s)
    segment = min(counts, key=lambda each: (-counts[each], each), default="")
    if counts[segment] > MAX_SAME_SEGMENT:
        reason = f"trap: the path segment {segment[:60]!r} occurs {counts[segment]} times"
        return Suspicion(f"path {segment}", reason)
    for length in range(1, len(segments) // (MAX_CYCLE + 1) + 1):
        run = 0
        for at, (here, there) in enumerate(zip(segments, segments[length:], strict=False)):
            run = run + 1 if here == there else 0
            if run == length * MAX_CYCLE:
                cycle = segments[at + 1 : at + 1 + length]
                # The cycle may begin anywhere: of its rotations the least stands for all.
                least = min(cycle[start:] + cycle[:start] for start in range(length))
                reason = f"trap: {length} path segment(s) repeated more than {MAX_CYCLE} times in a row"
                return Suspicion(f"path {'/'.join(least)}", reason)
    return None


def _suspicious_query(query: str) -> str:
    if len(query) > MAX_QUERY:
        return f"trap: a query of more than {MAX_QUERY} characters"
    if query.count("?") > 1:
        return "trap: more than one ? in the query"
    names = Counter(p.partition("=")[0] for p in re.split("[&;]", query))
    if names.total() > MAX_PARAMETERS:
        return f"trap: more than {MAX_PARAMETERS} parameters in the query"
    name, times = names.most_common(1)[0]
    return f"trap: the parameter {name[:60]!r} occurs {times} times" if times > MAX_SAME_PARAMETER else ""


_REFUSED4 = {
    IPv4Network(network): why
    for network, why in (
        ("0.0.0.0/8", "unspecified"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "private (carrier-grade NAT)"),
        ("127.0.0.0/8", "loopback"),
        ("168.63.129.16/32", "the host of a cloud machine"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "reserved"),
        ("192.0.2.0/24", "reserved for documentation"),
        ("192.88.99.0/24", "reserved (6to4 relays)"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "reserved for benchmarks"),
        ("198.51.100.0/24", "reserved for documentation"),
        ("203.0.113.0/24", "reserved for documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
    )
}
"""Non-public networks of RFC 6890 and its registry. Listed here because `ipaddress` classifies private and global addresses

differently between versions of Python.
"""

_REFUSED6 = {
    IPv6Network(network): why
    for network, why in (
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("64:ff9b:1::/48", "private (local NAT64)"),
        ("100::/64", "reserved (discarded)"),
        ("2001:2::/48", "reserved for benchmarks"),
        ("2001:10::/28", "reserved"),
        ("2001:20::/28", "reserved"),
        ("2001:db8::/32", "reserved for documentation"),
        ("3fff::/20", "reserved for documentation"),
        ("fc00::/7", "private"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "private (site-local)"),
        ("ff00::/8", "multicast"),
    )
}
_UNICAST6 = IPv6Network("2000::/3")
_PROTOCOLS6 = IPv6Network("2001::/23")
"""IETF protocol assignments (RFC 2928), Teredo among them: anycast services, overlays and tests, but no server's own address."""
_NAT64 = IPv6Network("64:ff9b::/96")
_COMPATIBLE = IPv6Network("::/96")
_TRANSLATED = IPv6Network("::ffff:0:0:0/96")
_ISATAP = (0x00005EFE, 0x02005EFE)


def guard(address: str, allow: Sequence[Network]) -> str:
    """Return why an address must not be dialled, "" if it may be: the defence against server-side request forgery.

    `address` is a numeric IPv4 or IPv6 address, as resolved. `allow` lists the networks of permitted local targets.
    """
    return _guarded(address, tuple(allow))


@lru_cache(1_024)  # a request is checked three times, and a host has many
def _guarded(address: str, allow: tuple[Network, ...]) -> str:
    try:
        found = ip_address(address)
    except ValueError:
        return f"{address[:60]!r} is not an address"
    if isinstance(found, IPv6Address):
        found = found.ipv4_mapped or found
    if any(found in network for network in allow):
        return ""
    why = _refused4(found) if isinstance(found, IPv4Address) else _refused6(found)
    return f"{address} is {why}" if why else ""


def _refused4(address: IPv4Address) -> str:
    return next((why for network, why in _REFUSED4.items() if address in network), "")


def _refused6(address: IPv6Address) -> str:
    for network, why in _REFUSED6.items():
        if address in network:
            return why
    for inner in _embedded(address):
        why = _refused4(inner)
        if why:
            return f"{why} (it leads to {inner})"
    if (address in _UNICAST6 and address not in _PROTOCOLS6) or address in _NAT64:
        return ""
    return "reserved"


def _embedded(address: IPv6Address) -> list[IPv4Address]:
    """Return the IPv4 addresses that an IPv6 address may lead to (RFC 4291, 6052, 3056, 4380, 5214, 7915)."""
    found = [a for a in (address.sixtofour, *(address.teredo or ())) if a is not None]
    number = int(address)
    isatap = (number >> 32) & 0xFFFFFFFF in _ISATAP
    if isatap or any(address in network for network in (_NAT64, _COMPATIBLE, _TRANSLATED)):
        found.append(IPv4Address(number & 0xFFFFFFFF))
    return found
