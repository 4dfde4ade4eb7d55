"""`harvest why URL`: every event that concerned one URL, in order, with reasons."""

from __future__ import annotations

from typing import Annotated

import typer

from streams.cli.common import Config, Data, Failure, Json, printable, put, settings


def why(
    url: Annotated[str, typer.Argument(metavar="URL", help="A URL (of a member: object#path), or a path.")],
    data: Data = None,
    json: Json = False,
    config: Config = None,
) -> None:
    """Print every event that concerned a URL, in order, with reasons."""
    found = settings(config, data=data)
    from schemas.jsonform import line
    from streams.cli.commands.search import urls_of
    from streams.cli.common import open_log
    from streams.config.topology import topology_of
    from streams.operations.history import format_event, history

    drawn = topology_of(found)
    with open_log(found) as log:
        name = log.gatherer() or found.gatherer
        told = next((events for meant in urls_of(url) if (events := history(log, meant, name, drawn))), None)
    if told is None:
        raise Failure(f"{printable(url)}: nothing is known of it")
    for event in told:
        put(line(event._asdict()) if json else printable(format_event(event)))
