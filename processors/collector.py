"""Another Gatherer's database, or a Broker's archive, as the gateway of a Harvest serves it: URLs, and streams without use.

`http://HOST/gatherer/soif/` lists the parts, which are below it; each is a stream of summaries (`processors/essence/collected.py`).
`http://HOST/brokers/NAME/soif/` is the same of a Broker; with `?q=QUERY`, which its parts have too, of what matches a query.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qs, quote, urlsplit

from processors.identity import frontier_key
from processors.urls import canonical
from schemas.records import UNUSED, CrawlEvent, FetchedObject

COLLECTED = "/gatherer/soif/"
"""End of the URL of a listing of parts."""
QUERY = "q"
"""Name of the parameter with the query."""
CHANGED = 226
"""Status of an answer that has changes alone (RFC 3229, 10.4.1)."""
MANIPULATION = "soif"
"""Name of the instance manipulation that a collector accepts and a gateway applies (RFC 3229, 10.5)."""
_PLACE = re.compile(r".*(/(?:gatherer|brokers/[a-z0-9][a-z0-9-]{0,39})/soif/.*)", re.DOTALL)
_SERVED = re.compile(r"(.*/(?:gatherer|brokers/[a-z0-9][a-z0-9-]{0,39}))(?:/soif)?", re.DOTALL)


def listing_of(text: str) -> str | None:
    """Return the canonical URL of the listing of parts that a URL means; None if it can mean none.

    A gateway by itself means its Gatherer's database. A Broker's archive is `GATEWAY/brokers/NAME` or `GATEWAY/brokers/NAME/soif`,
    with `?q=QUERY` where not all of it is wanted. A URL with a password, or any other query, means none.
    """
    try:
        parts = urlsplit(text)
        port = parts.port
        given = parse_qs(parts.query, strict_parsing=True, keep_blank_values=True) if parts.query else {}
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0 or "@" in parts.netloc or "#" in text:
        return None
    served = _SERVED.fullmatch(parts.path.rstrip("/"))
    above = served[1] if served else f"{parts.path.rstrip('/')}/gatherer"
    asked = given.pop(QUERY, [])
    if given or len(asked) > 1 or (asked and (not asked[0].strip() or above.endswith("/gatherer"))):
        return None
    end = f"?{QUERY}={quote(asked[0].strip(), safe='')}" if asked else ""
    return canonical(f"{parts.scheme}://{parts.netloc}{above}/soif/{end}")


def is_listing(url: str) -> bool:
    """Return whether a URL is that of a listing of parts."""
    path, *query = url.split("?", 1)
    if not path.endswith("/soif/"):
        return False
    place = _place(path)
    return (place == COLLECTED and not query) or (place.startswith("/brokers/") and place.count("/") == 4)


def is_part(root: str, url: str) -> bool:
    """Return whether a URL that a root requests is in the place of a part: only parts have changes."""
    if not is_listing(root):
        return False
    above, *query = root.split("?", 1)
    path, *asked = url.split("?", 1)
    return path.startswith(above) and path != above and query == asked


def is_collected(obj: FetchedObject) -> bool:
    """Return whether an object is in the place of another Gatherer's listing of parts, or of one of these.

    A gateway may redirect to another address, which is below another URL; nothing that such a root leads to is anything else.
    """
    return obj.root is not None and is_listing(obj.root.url)


def may_move(root: str, url: str, target: str) -> bool:
    """Return whether a redirect is followed: below a listing of parts only to the same place below another one.

    A login, or the portal of a network, is no gateway: that it answers instead does not remove what was collected.
    """
    return not is_listing(root) or (_place(url) == _place(target) != "")


def _place(url: str) -> str:
    """Return the end of the URL of a listing or a part, from `/gatherer` or `/brokers` on, with its query; "" if it is none."""
    path, mark, query = url.partition("?")
    found = _PLACE.fullmatch(path)
    return found[1] + mark + query if found else ""


def unused(obj: FetchedObject) -> CrawlEvent:
    """Return the event that makes the frontier request an object as a whole the next time."""
    return CrawlEvent(
        kind="failed",
        host=frontier_key(obj.url),
        time=obj.time,
        url=obj.url,
        version=obj.version,
        depth=obj.depth,
        root=obj.root,
        reason=UNUSED,
    )
