"""Aliases of a Broker's indexes, through which all reading and writing goes.

Strategy: the alias NAME is the serving index. NAME.rebuild is the one being built to replace it, if there is any. The
indexes themselves are NAME-STAMP, and are referred to by name in this module only.

Laws:
- An index is created together with its alias, in one request; an alias names one index; a swap is one request. So a request to an
  alias reaches exactly one whole index at any time.
- If two processes create the first index, one succeeds and the other uses that index. If it is created while a rebuild swaps, the
  alias names both for a moment; then the first one is deleted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from processors.query.forms import DEFAULT_LANGUAGES
from sinks.index.document import FORMAT
from sinks.index.errors import IndexDamaged, IndexMissing, IndexMoved, IndexUnreachable, QueryRefused
from sinks.index.opensearch.node import Node
from sinks.index.opensearch.schema import definition

FIRST = "0"
"""Stamp of an index that was created because there was none."""
STAMP = r"\d{8}t\d{6}(?:\d{3})?"
"""Stamp of a rebuilt index: its time, to the ms; to the second by an earlier version."""
REBUILD = ".rebuild"
"""Suffix of the alias of an index being built."""
NEVER = "-1"
"""Interval for `pace`: no refresh."""


class IndexIdentity(NamedTuple):
    """Index behind an alias: its name, and an id that differs from any other index that has had this name."""

    name: str
    made: str
    languages: tuple[str, ...] = DEFAULT_LANGUAGES
    """Languages that the forms of words are made for."""


def served_by(node: Node, alias: str) -> IndexIdentity:
    """Return the index behind an alias. Raises IndexMissing, IndexUnreachable, IndexDamaged if it is of another version."""
    found = node.ask("GET", f"/{alias}/_mapping")
    if not found:
        # For a missing index OpenSearch answers 404.
        raise IndexUnreachable(f"the server's answer is not from OpenSearch: {node.name}")
    if len(found) != 1 or alias in found:
        raise IndexDamaged(f"{alias} does not name exactly one index at {node.name}: remove it, and rebuild the index")
    ((index, about),) = found.items()
    if not isinstance(about, dict) or "mappings" not in about:
        raise IndexUnreachable(f"the server's answer is not from OpenSearch: {node.name}")
    kept = about["mappings"].get("_meta", {}).get("format")
    if kept != FORMAT:
        raise IndexDamaged(f"the index has format {kept}, this version has {FORMAT}: {index} at {node.name}")
    made = about["mappings"]["_meta"].get("made", "")
    languages = tuple(about["mappings"]["_meta"].get("languages", DEFAULT_LANGUAGES))
    return IndexIdentity(str(index), f"{index}/{made}" if made else str(index), languages)


def claim(node: Node, alias: str) -> None:
    """Check that a name can be the alias of an index. Raises IndexDamaged if it is used for something else."""
    try:
        found = node.ask("GET", f"/{alias}/_mapping")
    except IndexMissing:
        return
    for index, about in found.items():
        if not _stamped(alias).fullmatch(index) or "format" not in about["mappings"].get("_meta", {}):
            raise IndexDamaged(f"{alias} is in use for something else at {node.name}")


def make(node: Node, index: str, *aliases: str, languages: Sequence[str] = DEFAULT_LANGUAGES) -> None:
    """Create an index with its aliases, for some languages; an existing one stays. Raises IndexUnreachable, QueryRefused."""
    try:
        node.ask("PUT", f"/{index}", definition(languages) | {"aliases": {alias: {} for alias in aliases}})
    except QueryRefused as error:
        if "already exists" not in str(error):
            raise


def first(node: Node, alias: str, languages: Sequence[str] = DEFAULT_LANGUAGES) -> IndexIdentity:
    """Return the index behind an alias, created for some languages if there is none. Raises IndexUnreachable, IndexDamaged."""
    try:
        return served_by(node, alias)
    except IndexMissing:
        make(node, f"{alias}-{FIRST}", alias, languages=languages)
    except IndexDamaged:
        if not _settle(node, alias):
            raise
    try:
        return served_by(node, alias)
    except IndexDamaged:
        if not _settle(node, alias):
            raise
        return served_by(node, alias)


def _settle(node: Node, alias: str) -> bool:
    """Delete the first index if a rebuilt one serves beside it; return whether it did.

    A process that finds no index creates the first one, and does not notice a rebuild that swaps at that moment. What was written
    to the first index is written to the rebuilt one too, since offsets are kept in the index.
    """
    index, there = f"{alias}-{FIRST}", behind(node, alias)
    if index not in there or len(there) == 1:
        return False
    drop(node, index)
    return True


def behind(node: Node, alias: str) -> list[str]:
    """Return the names of all indexes behind an alias."""
    try:
        return list(node.ask("GET", f"/_alias/{alias}"))
    except IndexMissing:
        return []


def begin_rebuild(node: Node, alias: str, stamp: str, languages: Sequence[str] = DEFAULT_LANGUAGES) -> str:
    """Create an index for a rebuild, in place of any that was begun before, and return its alias.

    A process that still fills the earlier one finds the alias moved, and ends. Of several rebuilds begun at once the one whose
    index was created last, by the server's clock, continues. Raises IndexMoved for the others.
    """
    index, building = f"{alias}-{stamp}", alias + REBUILD
    # Created with its alias: an index without an alias would be swept as the remains of a killed rebuild.
    make(node, index, building, languages=languages)
    there = _by_age(node, building)
    if there[-1:] != [index]:
        drop(node, index)
        raise rebuild_replaced(node, alias)
    for other in there[:-1]:
        _take(node, building, other)
    return building


def _take(node: Node, building: str, index: str) -> None:
    """Delete the index of another rebuild, unless it has started to serve since it was listed."""
    try:
        # One request, as a swap is: whichever comes first, the other one fails.
        node.ask("POST", "/_aliases", {"actions": [{"remove": {"index": index, "alias": building, "must_exist": True}}]})
    except (IndexMissing, QueryRefused):
        if index in behind(node, building):
            raise
    else:
        drop(node, index)


def rebuild_replaced(node: Node, alias: str) -> IndexMoved:
    """Return the error for a rebuild that another one has replaced."""
    return IndexMoved(f"another rebuild of {alias} has begun at {node.name}")


def _by_age(node: Node, alias: str) -> list[str]:
    """Return the indexes behind an alias, ordered by creation time."""
    while behind(node, alias):
        try:
            found = node.ask("GET", f"/{alias}/_settings/index.creation_date")
        except IndexMissing:
            continue  # one of them was deleted while they were read
        return sorted(found, key=lambda name: (int(found[name]["settings"]["index"]["creation_date"]), name))
    return []


def swap(node: Node, alias: str, stamp: str) -> list[str]:
    """Make the index of that stamp serve, in one step; return the indexes that served before, which still exist.

    Raises IndexMoved if it is no longer the index being built: then another rebuild has begun, and nothing is changed.
    """
    index, building = f"{alias}-{stamp}", alias + REBUILD
    old = behind(node, alias)
    actions: list[dict[str, Any]] = [{"remove": {"index": index, "alias": building, "must_exist": True}}]
    actions += [{"remove": {"index": other, "alias": alias}} for other in old]
    try:
        node.ask("POST", "/_aliases", {"actions": [*actions, {"add": {"index": index, "alias": alias}}]})
    except (IndexMissing, QueryRefused):
        if index in behind(node, building):
            raise
        raise rebuild_replaced(node, alias) from None
    _settle(node, alias)
    return old


def drop(node: Node, index: str) -> None:
    """Delete an index, if it exists."""
    # If another process deletes it between two steps of the server, the server reports it as missing in spite of this.
    with suppress(IndexMissing):
        node.ask("DELETE", f"/{index}", ignore_unavailable="true")


def sweep(node: Node, alias: str) -> None:
    """Delete the remains of killed rebuilds: indexes of this name without an alias.

    One that is still being searched may have been replaced by another rebuild just now; that rebuild, or the next, deletes it.
    """
    for index, about in node.ask("GET", f"/{alias}-*/_alias").items():
        if _stamped(alias).fullmatch(index) and not about["aliases"] and not searched(node, index):
            drop(node, index)


def forget(node: Node, alias: str) -> int:
    """Delete all indexes that an alias may name, serving or not, with their aliases; return their number."""
    found = [index for index in node.ask("GET", f"/{alias}-*/_alias") if _stamped(alias).fullmatch(index)]
    for index in found:
        drop(node, index)
    return len(found)


def _stamped(alias: str) -> re.Pattern[str]:
    """Return the pattern of the names of indexes that an alias may name."""
    return re.compile(rf"{re.escape(alias)}-(?:{FIRST}|{STAMP})")


def pace(node: Node, alias: str, interval: str | None) -> None:
    """Set the interval at which writes become visible (NEVER: not at all; None: the engine's default)."""
    node.ask("PUT", f"/{alias}/_settings", {"index": {"refresh_interval": interval}})


def searched(node: Node, index: str) -> bool:
    """Return whether a search of the index is running, or is open between two steps."""
    try:
        found = node.ask("GET", f"/{index}/_stats/search")["indices"][index]["total"]["search"]
    except IndexMissing:
        return False
    return bool(found["open_contexts"] or found["query_current"] or found["fetch_current"] or found.get("point_in_time_current"))
