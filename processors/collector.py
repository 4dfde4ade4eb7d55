"""Another Gatherer's database, as the gateway of a Harvest serves it: its URLs, requests for changes, and streams without use.

`http://HOST/gatherer/soif/` lists the parts, which are below it; each is a stream of summaries (`processors/essence/collected.py`).
"""

from __future__ import annotations

from processors.identity import frontier_key
from schemas.records import UNUSED, CrawlEvent, FetchedObject

COLLECTED = "/gatherer/soif/"
"""End of the URL of a listing of parts."""
CHANGED = 226
"""Status of an answer that has changes alone (RFC 3229, 10.4.1)."""
MANIPULATION = "soif"
"""Name of the instance manipulation that a collector accepts and a gateway applies (RFC 3229, 10.5)."""


def is_part(root: str, url: str) -> bool:
    """Return whether a URL that a root requests is in the place of a part: only parts have changes."""
    return root.endswith(COLLECTED) and url.startswith(root) and url != root


def is_collected(obj: FetchedObject) -> bool:
    """Return whether an object is in the place of another Gatherer's listing of parts, or of one of these.

    A gateway may redirect to another address, which is below another URL; nothing that such a root leads to is anything else.
    """
    return obj.root is not None and obj.root.url.endswith(COLLECTED)


def may_move(root: str, url: str, target: str) -> bool:
    """Return whether a redirect is followed: below a listing of parts only to the same place below another one.

    A login, or the portal of a network, is no gateway: that it answers instead does not remove what was collected.
    """
    return not root.endswith(COLLECTED) or ("?" not in target and target.endswith(COLLECTED + url.rpartition(COLLECTED)[2]))


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
