"""`harvest why URL`: every event that concerned one URL, in order, with reasons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from streams.cli.common import Config, Data, Failure, Json, note, printable, put, reading, settings

if TYPE_CHECKING:
    from streams.config.settings import Settings
    from streams.operations.history import Event


def why(
    url: Annotated[str, typer.Argument(metavar="URL", help="A URL (of a member: object#path), or a path.")],
    data: Data = None,
    json: Json = False,
    config: Config = None,
) -> None:
    """Print every event that concerned a URL, in order, with reasons."""
    found = settings(config, data=data)
    from schemas.jsonform import line
    from streams.operations.history import format_event

    events = known_events(found, url)
    if not found.kafka.brokers and (doubted := _doubted(found, url)):
        note(f"{printable(doubted)} is missing; its removal is in doubt (harvest doctor)")
    if not events:
        raise Failure(f"{printable(url)}: nothing is known of it")
    for event in events:
        put(line(event._asdict()) if json else printable(format_event(event)))


def known_events(found: Settings, url: str) -> list[Event]:
    """Return the events that concerned a URL, or a path, in any of the forms that it may mean; none if nothing is known of it.

    Raises Failure for what is no URL, StoreError, ClusterError.
    """
    from streams.cli.common import open_log
    from streams.cli.objectnames import urls_of
    from streams.config.topology import topology_of
    from streams.operations.history import history

    drawn, forms = topology_of(found), _forms(urls_of(url))
    with open_log(found) as log:
        name = log.gatherer() or found.gatherer
        return next((events for meant in forms if (events := history(log, meant, name, drawn))), [])


def _doubted(found: Settings, url: str) -> str:
    """Return the URL, or that of a folder above it, whose removal is in doubt; "" if none is."""
    from processors.identity import split_url
    from streams.cli.objectnames import urls_of
    from streams.embedded.outcomes import doubted_above

    with reading(found) as store:
        return next((above for meant in _forms(urls_of(url)) if (above := doubted_above(store, split_url(meant)[0]))), "")


def _forms(urls: list[str]) -> list[str]:
    """Return URLs, and behind them those of folders by the same names: a folder that is missing now is named like a file."""
    return [*urls, *(f"{url}/" for url in urls if not url.endswith("/"))]
