"""`harvest view`: the views of a Broker (standing queries), which keep themselves as summaries come."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streams.cli.common import USAGE, Config, Data, Failure, Json, counted, note, open_log, printable, put, settings
from streams.cli.common import broker as named

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from schemas.ports import BrokerIndex
    from schemas.query import Query
    from schemas.records import View
    from streams.config.settings import Settings

app = typer.Typer(no_args_is_help=True, help="Create, list, remove and import the views of a Broker.")

Broker = Annotated[str, typer.Argument(metavar="BROKER", help="The Broker, such as main.")]
Path_ = Annotated[str, typer.Argument(metavar="PATH", help="Names with slashes between: computing/unix/shells.")]


@app.command()
def create(
    broker: Broker,
    path: Path_,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What it holds of what the view above it holds.")],
    data: Data = None,
    config: Config = None,
) -> None:
    """Create a view, or change the query of one. It holds what its own query and those of all views above it accept."""
    from processors.broker.views import created
    from processors.query import QueryError

    def change(known: Mapping[str, View], now: int) -> list[View]:
        try:
            return [created(known, path, query, now)]
        except QueryError as error:
            raise Failure(error.line(query), USAGE) from None

    _change(settings(config, data=data), broker, change)


@app.command()
def remove(broker: Broker, path: Path_, data: Data = None, config: Config = None) -> None:
    """Remove a view; refused while there are views below it. No summary is removed."""
    from processors.broker.views import removed

    _change(settings(config, data=data), broker, lambda known, now: [removed(known, path, now)])


@app.command("import")
def import_views(
    broker: Broker,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="An outline, a line `title: query` for each view, indented; or SKOS as RDF/XML.")
    ],
    data: Data = None,
    config: Config = None,
) -> None:
    """Create the views of a taxonomy; those that are there get its queries, and others stay. With a mistake, nothing is done."""
    from processors.broker.outline import imported
    from processors.broker.skos import MAX_SIZE
    from processors.broker.views import ViewError
    from streams.config.topology import broker_defined

    found = settings(config, data=data)
    languages = broker_defined(found, broker).languages
    with file.open("rb") as opened:
        content = opened.read(MAX_SIZE + 1)

    def change(known: Mapping[str, View], now: int) -> list[View]:
        try:
            return imported(known, content, now, languages)
        except ViewError as error:
            raise Failure(f"{file}: {error}", USAGE) from None

    _change(found, broker, change)


def _change(found: Settings, broker: str, change: Callable[[Mapping[str, View], int], Sequence[View]]) -> None:
    """Append the definitions that `change` makes of the known ones and the time, and let them be applied. Raises Failure."""
    from processors.broker.views import ViewError
    from streams.cli.gathering import settle
    from streams.operations.views import define, defined
    from streams.store.database import clock_ms

    name = named(found, broker)
    with open_log(found, writing=True) as log:
        try:
            made = change(defined(log, name), clock_ms())
        except ViewError as error:
            raise Failure(str(error), USAGE) from None
        if made:
            define(log, name, made)
    note(f"{counted(len(made), 'view')} of {name} changed" if made else "nothing to change")
    if made:
        settle(found)


@app.command("list")
def list_views(broker: Broker = "", data: Data = None, json: Json = False, config: Config = None) -> None:
    """List the views of a Broker with the number of summaries in each, by its index; copies are counted, too."""
    found = settings(config, data=data)
    from processors.broker.views import queries
    from schemas.jsonform import line
    from streams.operations.views import defined

    name = named(found, broker)
    with open_log(found) as log:
        known = defined(log, name)
    if not known:
        note(f"no views of {name} (harvest view create {name} PATH QUERY)")
        return
    counts = _counts(found, name, queries(known))
    for key, view in sorted(known.items()):
        if json:
            put(line({"path": view.path, "query": view.query, "summaries": counts.get(key)}))
        else:
            number = f"{counts[key]:,}" if key in counts else "?"
            put(printable(f"{number:>9}  {view.path}: {view.query}"))


def _counts(found: Settings, broker: str, wanted: Mapping[str, Query]) -> dict[str, int]:
    """Return the numbers of summaries by key of a view; none if there is no index."""
    from streams.cli.index_access import ask_index

    def ask(index: BrokerIndex) -> dict[str, int]:
        return {key: index.count(query) for key, query in wanted.items()}

    try:
        return ask_index(found, broker, ask)
    except Failure as error:
        note(str(error))
        return {}
