"""URLs among the sources of Brokers, as roots that the Gatherer collects.

Laws:
- A URL that a Broker names and that is no root becomes one, once; what it is made from then is collected as by `harvest collect`.
- Such a root goes when no Broker names it any more. One that somebody has named by hand stays until it is removed by hand.
- Where a definition is wrong nothing is changed: a mistake in a file removes no root.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from processors.collector import listing_of
from streams.cli.common import appending, note, printable
from streams.cli.rootnames import gathered_root
from streams.config.topology import check_definitions

if TYPE_CHECKING:
    from schemas.records import Root
    from streams.config.settings import Settings

EVERY = 3_600
"""Seconds after which a source is asked again for what has changed at the latest, as `harvest collect` has it."""


class SourceRoots(NamedTuple):
    """The roots that Brokers need, with the name of a Broker for each, and those of before that none needs any more."""

    added: dict[str, str]
    gone: list[Root]


def collect_sources(found: Settings, say: Callable[[str], object] = note) -> None:
    """Make the sources of Brokers roots of the data folder, and end those that none names. `say` takes a line about each.

    Raises SettingsError for a wrong definition, Failure, StoreError.
    """
    from streams.embedded import runs
    from streams.store.data_folder import known

    with known(found.data) as store:
        roots = {root.url: root for root in runs.roots(store)} if store is not None else {}
        theirs = runs.sources(store) if store is not None else frozenset()
    needed = needed_sources(found)
    change = SourceRoots(
        {url: broker for url, broker in needed.items() if url not in roots},
        [root for url, root in roots.items() if url in theirs and url not in needed],
    )
    if not any(change):
        return
    with appending(found) as store:
        for url, broker in change.added.items():
            runs.ask(store, source_root(found, url), source=True)
            say(f"{printable(url)}: collected from now on, a source of the Broker {broker}")
        for root in change.gone:
            runs.drop(store, root)
            say(f"{printable(root.url)}: no source of a Broker any more, so what came from there is removed")


def needed_sources(found: Settings) -> dict[str, str]:
    """Return the listings that Brokers are made from, each with the name of a Broker. Raises SettingsError."""
    return {
        listing: broker.name
        for broker in reversed(check_definitions(found).brokers)
        for url in broker.collected_sources
        if (listing := listing_of(url)) is not None
    }


def source_root(found: Settings, listing: str) -> Root:
    """Return the root of a listing. Raises Failure."""
    root = gathered_root(listing, found, 1, None)
    return replace(root, refresh=min(root.refresh, EVERY))
