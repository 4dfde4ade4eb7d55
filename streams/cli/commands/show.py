"""`harvest show`: a complete summary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from streams.cli.common import BrokerName, Config, Data, Json, put, reading, settings, write_bytes
from streams.cli.common import broker as named

if TYPE_CHECKING:
    from schemas.records import Summary
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
    summary = None
    if not found.index.url:
        with reading(found) as store:
            summary = _summary(store, broker, what, found.gatherer)
    if summary is None:
        from streams.cli.index_access import ask_index
        from streams.cli.objectnames import indexed

        summary = ask_index(found, broker, lambda index: indexed(found, index, what))
    if json:
        from schemas.jsonform import line

        put(line(summary))
        return
    from schemas.soif import dumps
    from schemas.soif_summary import to_template

    write_bytes(dumps([to_template(summary)]))


def _summary(store: Store, broker: str, what: str, gatherer: str) -> Summary | None:
    """Return the Broker's version of a summary from the rows of a data folder: they know what was removed. Raises Failure.

    None: the rows have no such object or member, but the index may have one that was fetched from that URL (`location`).
    """
    from streams.cli.objectnames import no_summary, oids_of, removed
    from streams.operations.registered import entry, summary_of
    from streams.store.data_folder import gatherer as stored

    for oid in oids_of(what, stored(store) or gatherer):
        found = entry(store, broker, oid)
        if found is not None and (summary := summary_of(found)) is not None:
            return summary
        if found is not None:
            raise removed(what)
    if "://" in what:
        return None
    raise no_summary(what)
