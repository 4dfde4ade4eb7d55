"""Which index is a Broker's: aliases, through which all reading and writing goes.

Strategy: the alias NAME is the index that serves. NAME.rebuild is one that is being made to take its place, if there is any. The
indexes themselves are NAME-STAMP, and are named by nobody else.

Laws:
- An index is made together with its alias, in one request; an alias names one index; a swap is one request. So who asks an alias
  has one whole index at any time.
- Of two that make the first index, one makes it and the other takes it.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any, NamedTuple

from sinks.index.document import FORMAT
from sinks.index.errors import IndexDamaged, IndexMissing, IndexMoved, IndexUnreachable, QueryRefused
from sinks.index.opensearch.node import Node
from sinks.index.opensearch.schema import definition

FIRST = "0"
"""The stamp of an index that was made because there was none."""
STAMP = r"\d{8}t\d{6}(?:\d{3})?"
"""That of one that was rebuilt: when, to the ms; of an earlier version, to the second."""
REBUILD = ".rebuild"
"""What the alias of an index that is being made ends in."""
NEVER = "-1"
"""An interval of `pace`."""


class Serving(NamedTuple):
    """The index behind an alias: its name, and what tells it from another that had that name before, or has it later."""

    name: str
    made: str


def served_by(node: Node, alias: str) -> Serving:
    """The index behind an alias. Raises IndexMissing, IndexUnreachable, IndexDamaged where it is none of this version."""
    found = node.ask("GET", f"/{alias}/_mapping")
    if not found:
        # An index that is not there is told with 404.
        raise IndexUnreachable(f"what answers is no index: {node.name}")
    if len(found) != 1 or alias in found:
        raise IndexDamaged(f"{alias} is no alias of one index at {node.name}: remove it, and rebuild the index")
    ((index, about),) = found.items()
    if not isinstance(about, dict) or "mappings" not in about:
        raise IndexUnreachable(f"what answers is no index: {node.name}")
    kept = about["mappings"].get("_meta", {}).get("format")
    if kept != FORMAT:
        raise IndexDamaged(f"the index has format {kept}, this version has {FORMAT}: {index} at {node.name}")
    made = about["mappings"]["_meta"].get("made", "")
    return Serving(str(index), f"{index}/{made}" if made else str(index))


def claim(node: Node, alias: str) -> None:
    """See that a name can be the alias of an index that is made. Raises IndexDamaged where it is somebody else's."""
    try:
        found = node.ask("GET", f"/{alias}/_mapping")
    except IndexMissing:
        return
    for index, about in found.items():
        if not _stamped(alias).fullmatch(index) or "format" not in about["mappings"].get("_meta", {}):
            raise IndexDamaged(f"{alias} is in use for something else at {node.name}")


def make(node: Node, index: str, *aliases: str) -> None:
    """Make an index behind its aliases; one that is there stays as it is. Raises IndexUnreachable, QueryRefused."""
    try:
        node.ask("PUT", f"/{index}", definition() | {"aliases": {alias: {} for alias in aliases}})
    except QueryRefused as error:
        if "already exists" not in str(error):
            raise


def first(node: Node, alias: str) -> Serving:
    """The index behind an alias, made where there is none. Raises IndexUnreachable, IndexDamaged."""
    try:
        return served_by(node, alias)
    except IndexMissing:
        make(node, f"{alias}-{FIRST}", alias)
    return served_by(node, alias)


def behind(node: Node, alias: str) -> list[str]:
    """The indexes behind an alias, however many they are."""
    try:
        return list(node.ask("GET", f"/_alias/{alias}"))
    except IndexMissing:
        return []


def begin_rebuild(node: Node, alias: str, stamp: str) -> str:
    """Make an index behind the alias of a rebuild, in the place of one that was begun before; gives the alias.

    Whoever still fills that one finds the alias moved, and ends. Of several that begin at once one goes on: whose index was
    made last, by the server's clock. Raises IndexMoved for the others.
    """
    index, building = f"{alias}-{stamp}", alias + REBUILD
    # With its alias from the start: one that no alias names is what a killed rebuild has left, to whoever begins now.
    make(node, index, building)
    there = _by_age(node, building)
    if there[-1:] != [index]:
        drop(node, index)
        raise begun(node, alias)
    for other in there[:-1]:
        _take(node, building, other)
    return building


def _take(node: Node, building: str, index: str) -> None:
    """Delete an index that another rebuild is making; one that serves since it was looked at is left alone."""
    try:
        # One request, as a swap is: whichever comes first, the other one fails.
        node.ask("POST", "/_aliases", {"actions": [{"remove": {"index": index, "alias": building, "must_exist": True}}]})
    except (IndexMissing, QueryRefused):
        if index in behind(node, building):
            raise
    else:
        drop(node, index)


def begun(node: Node, alias: str) -> IndexMoved:
    """What is told to a rebuild in whose place another one has come."""
    return IndexMoved(f"another rebuild of {alias} has begun at {node.name}")


def _by_age(node: Node, alias: str) -> list[str]:
    """The indexes behind an alias, the one that was made last at the end."""
    while behind(node, alias):
        try:
            found = node.ask("GET", f"/{alias}/_settings/index.creation_date")
        except IndexMissing:
            continue  # one of them went while they were read
        return sorted(found, key=lambda name: (int(found[name]["settings"]["index"]["creation_date"]), name))
    return []


def swap(node: Node, alias: str, stamp: str) -> list[str]:
    """Let the index of that stamp serve, in one step; gives those that served before, which are still there.

    Raises IndexMoved where it is not the one that is being made any more: then another rebuild has begun, and nothing is changed.
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
        raise begun(node, alias) from None
    return old


def drop(node: Node, index: str) -> None:
    """Delete an index; one that is not there is deleted."""
    # Somebody else may delete it between two steps of the server's, which it tells in spite of this.
    with suppress(IndexMissing):
        node.ask("DELETE", f"/{index}", ignore_unavailable="true")


def sweep(node: Node, alias: str) -> None:
    """Delete what a rebuild that was killed has left: indexes of this name that no alias names.

    One that somebody still searches may be what another rebuild has just replaced; it is left to that, or to the next.
    """
    for index, about in node.ask("GET", f"/{alias}-*/_alias").items():
        if _stamped(alias).fullmatch(index) and not about["aliases"] and not searched(node, index):
            drop(node, index)


def _stamped(alias: str) -> re.Pattern[str]:
    """The names of the indexes that an alias may name."""
    return re.compile(rf"{re.escape(alias)}-(?:{FIRST}|{STAMP})")


def pace(node: Node, alias: str, interval: str | None) -> None:
    """How often what was written comes to be found (NEVER; None: as the engine has it)."""
    node.ask("PUT", f"/{alias}/_settings", {"index": {"refresh_interval": interval}})


def searched(node: Node, index: str) -> bool:
    """Whether somebody is in the middle of a search there, or between two steps of one."""
    try:
        found = node.ask("GET", f"/{index}/_stats/search")["indices"][index]["total"]["search"]
    except IndexMissing:
        return False
    return bool(found["open_contexts"] or found["query_current"] or found["fetch_current"] or found.get("point_in_time_current"))
