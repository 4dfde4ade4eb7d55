"""`harvest show`: a complete summary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from streams.cli.common import BrokerName, Config, Data, Json, put, reading, settings, write_bytes
from streams.cli.common import broker as named

if TYPE_CHECKING:
    from schemas.records import Summary
    from streams.config.settings import Settings
    from streams.store import Store


def show(
    what: Annotated[str, typer.Argument(metavar="URL-or-OID", help="A URL (of a member: object#path), a path, or an OID.")],
    broker: BrokerName = "",
    data: Data = None,
    json: Json = False,
    config: Config = None,
) -> None:
    """Show a complete summary, as SOIF."""
    found = settings(config, data=data)
    broker = named(found, broker)
    if found.index.url:
        from streams.cli.index_access import ask_index
        from streams.cli.objectnames import indexed

        summary = ask_index(found, broker, lambda index: indexed(found, index, what))
    else:
        with reading(found) as store:
            own = _summary(store, broker, what, found.gatherer)
        summary = own or _collected(found, broker, what)
    if json:
        from schemas.jsonform import line

        put(line(summary))
        return
    from schemas.soif import dumps
    from schemas.soif_summary import to_template

    write_bytes(dumps([to_template(summary)]))


def _summary(store: Store, broker: str, what: str, gatherer: str) -> Summary | None:
    """Return the Broker's version of a summary from the rows of a data folder; None: it has none.

    The rows know what was removed: that raises Failure.
    """
    from streams.cli.objectnames import oids_of, removed
    from streams.operations.registered import entry, summary_of
    from streams.store.data_folder import gatherer as stored

    for oid in oids_of(what, stored(store) or gatherer):
        found = entry(store, broker, oid)
        if found is not None and (summary := summary_of(found)) is not None:
            return summary
        if found is not None:
            raise removed(what)
    return None


def _collected(found: Settings, broker: str, what: str) -> Summary:
    """Return a summary whose `location` is the URL meant, from the index, which alone knows it by that URL. Raises Failure."""
    from streams.cli.index_access import ask_index
    from streams.cli.objectnames import indexed, no_summary
    from streams.store.data_folder import index_folder

    if not index_folder(found.data, broker).is_dir():
        raise no_summary(what)
    return ask_index(found, broker, lambda index: indexed(found, index, what))
