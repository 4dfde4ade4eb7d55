"""The schemes that are gathered, and what each means to the frontier, to pages that link to it, and to fetching.

One table: whoever decides by the scheme of a URL asks it here, and a further protocol is one row more, with one adapter in
`streams/fetch/adapters`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

Realm = Literal["network", "machine"]
"""Links lead from a realm to the same realm only: no page names files of this machine, and no file leads into the network."""


class Scheme(NamedTuple):
    """What the URLs of one scheme are."""

    name: str
    realm: Realm
    paced: bool
    """Its URLs belong to a server that is spared: requests wait in the server's queue, for its robots.txt and its pauses, and a
    failure of the server makes its other URLs wait. Otherwise a request goes out at once."""
    limited: bool
    """A root has the limits of depth and number of the settings, stays on its server, and is guarded against endless URLs."""
    listings: bool
    """A URL that ends with a slash is a listing: its children are what there is, and what is missing in it is gone."""
    described: bool
    """Owner, group and mode of an object come with it as header fields."""
    typed: bool = False
    """The first character of a path is the type of the item (RFC 4266), not part of its name."""


SCHEMES: Mapping[str, Scheme] = {
    scheme.name: scheme
    for scheme in (
        Scheme("http", "network", paced=True, limited=True, listings=False, described=False),
        Scheme("https", "network", paced=True, limited=True, listings=False, described=False),
        Scheme("ftp", "network", paced=True, limited=True, listings=True, described=False),
        Scheme("gopher", "network", paced=True, limited=True, listings=False, described=False, typed=True),
        Scheme("news", "network", paced=True, limited=True, listings=False, described=False),
        Scheme("file", "machine", paced=False, limited=False, listings=True, described=True),
    )
}


OTHER = Scheme("", "network", paced=True, limited=True, listings=False, described=False)
"""Any other scheme, which records from elsewhere may hold: nothing fetches it."""


def scheme_of(url: str) -> Scheme:
    """Return the scheme of a URL or of a frontier key, which begins as its URLs do."""
    return SCHEMES.get(url.partition(":")[0], OTHER)


def is_listing(url: str) -> bool:
    """Return whether an object of this URL is a listing, a folder of files for example."""
    return url.endswith("/") and scheme_of(url).listings


def may_name(base: str, url: str) -> bool:
    """Return whether a document of one URL may name another one: any names the network, only files name files of this machine."""
    return scheme_of(url).realm == "network" or scheme_of(base).realm == "machine"


def may_link(source: str, target: str) -> bool:
    """Return whether the frontier may go from an object of one URL to another one: both are in the same realm."""
    return scheme_of(source).realm == scheme_of(target).realm


def is_web(url: str) -> bool:
    """Return whether a URL, or a frontier key, is of HTTP, whose listings are never complete."""
    return scheme_of(url).name in ("http", "https")


def has_complete_listings(url: str) -> bool:
    """Return whether the listings of a URL's scheme state all that there is: not those of HTTP, nor menus of Gopher."""
    return not is_web(url) and not scheme_of(url).typed
