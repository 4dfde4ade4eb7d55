"""Names of objects and of their members given by users: a path, a URL, or an OID."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from streams.cli.common import Failure, printable

if TYPE_CHECKING:
    from schemas.ports import BrokerIndex
    from schemas.records import Summary
    from streams.config.settings import Settings

OID = re.compile(r"[0-9a-f]{64}")
RAW = re.compile(r"[\x00-\x20\x7f\ud800-\udfff]")
"""Characters that are escaped in the path of a member."""


def urls_of(what: str, *, followed: bool = True) -> list[str]:
    """Return the URLs that an argument may mean, member path included: as written first, then as by `meant`. Raises Failure.

    A member may be named as in its archive, even where that cannot be a URL: with spaces, controls, or bytes that are no text.
    """
    from processors.identity import member_path, member_url
    from processors.registry.template import is_registration
    from streams.cli.rootnames import meant

    if is_registration(what):
        return [what]
    if "://" not in what and os.path.lexists(what):
        return meant(what, followed=followed)
    base, mark, path = what.partition("#")
    path = "#".join(member_path(os.fsencode(part)) if RAW.search(part) else part for part in path.split("#"))
    what = f"{base}{mark}{path}"
    found = [member_url(url, path) for url in meant(base, followed=followed)]
    return list(dict.fromkeys([what, *found] if "://" in what else found))


def oids_of(what: str, gatherer: str) -> list[str]:
    """Return the OIDs that an argument may mean: itself, or those of the path or URL at a Gatherer. Raises Failure."""
    if OID.fullmatch(what):
        return [what]
    from processors.identity import oid

    return [oid(gatherer, url) for url in urls_of(what)]


def gatherer_of(found: Settings) -> str:
    """Return the Gatherer's name in the OIDs: that of the data folder if the index is there and it has one. Raises StoreError."""
    if found.index.url:
        return found.gatherer
    from streams.store.data_folder import gatherer, known

    with known(found.data) as store:
        return (gatherer(store) if store is not None else "") or found.gatherer


def indexed(found: Settings, index: BrokerIndex, what: str) -> Summary:
    """Return the summary that an argument means, of this Gatherer, or else of any with that URL. Raises Failure."""
    from schemas.query import Word
    from schemas.records import Removed, Summary

    for oid in oids_of(what, gatherer_of(found)):
        match index.record(oid):
            case Summary() as summary:
                return summary
            case Removed():
                raise removed(what)
    for url in urls_of(what) if not OID.fullmatch(what) else ():
        for hit in index.search(Word(url, "url"), copies=True).hits:
            if hit.url == url and isinstance(other := index.record(hit.oid), Summary):
                return other
    raise no_summary(what)


def removed(what: str) -> Failure:
    """Return the error for a summary that was removed."""
    return Failure(f"{printable(what)}: its summary was removed (harvest why tells more)")


def no_summary(what: str) -> Failure:
    """Return the error for a missing summary, with the reason if it is a folder or a missing file."""
    hint = ""
    if os.path.isdir(what) and not os.path.islink(what):
        hint = ": folders have no summary, their files have"
    elif "://" not in what and not OID.fullmatch(what) and not os.path.lexists(what.partition("#")[0]):
        hint = ", and no such file"
    return Failure(f"{printable(what)}: no summary of it{hint}")
