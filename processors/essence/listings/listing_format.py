"""What all formats of listings have in common: children with a mark."""

from __future__ import annotations

from typing import Literal

import msgspec

MAX_CHILDREN = 250_000
"""Children of a listing: five times what the protocol of sitemaps allows, and little enough for the memory of a parser process."""
Coverage = Literal["complete", "open", "rolling"]
"""complete: a child that is no longer listed is gone; open: it is requested again; rolling: it is left alone."""
ChildKind = Literal["page", "listing"]
"""page: an object; listing: a further listing of the same root."""


class ListedChild(msgspec.Struct, frozen=True):
    """One child that a listing names."""

    url: str
    """Canonical URL."""
    kind: ChildKind = "page"
    mark: str = ""
    """What the listing states of the child's version, such as size and time; "": nothing. Two equal marks: unchanged."""
    text: str = ""
    """Title or description that the listing has of the child."""


class ParsedListing(msgspec.Struct, frozen=True):
    """A parsed listing."""

    children: tuple[ListedChild, ...]
    coverage: Coverage
    whole: bool = True
    """Whether it was read to its end; otherwise its missing children prove nothing."""
    reason: str = ""
    """Why it was not."""
