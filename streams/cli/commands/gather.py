"""`harvest gather` and `harvest run`: the commands that run the pipeline."""

from __future__ import annotations

from typing import Annotated

import typer

from streams.cli.common import Accept, Config, Data, Depth, MaxUrls, settings

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, and no closing table.")]
Allow = Annotated[list[str] | None, typer.Option("--allow", metavar="CIDR", help="A local network that this run may connect to.")]
Gatherer = Annotated[str | None, typer.Option("--gatherer", metavar="NAME", help="The Gatherer's name, part of every OID.")]
Partitions = Annotated[int | None, typer.Option("--partitions", metavar="N", help="Partitions of a new data folder.")]
Pause = Annotated[float | None, typer.Option("--pause", metavar="S", help="Seconds between requests to a server, in this run.")]


def gather(
    roots: Annotated[list[str] | None, typer.Argument(metavar="ROOT...", help="Paths, or file:, http: or https: URLs.")] = None,
    data: Data = None,
    depth: Depth = None,
    max_urls: MaxUrls = None,
    pause: Pause = None,
    allow: Allow = None,
    gatherer: Gatherer = None,
    partitions: Partitions = None,
    quiet: Quiet = False,
    accept: Accept = False,
    json: Annotated[bool, typer.Option("--json", help="The closing table as one JSON object on standard output.")] = False,
    config: Config = None,
) -> None:
    """Gather roots: fetch, unnest, summarize, catalogue, remove duplicates, index.

    Another run visits the roots again; unchanged objects cost little. Without a ROOT, all roots of the data folder are visited.
    """
    found = settings(config, data=data, fetch__pause=pause, fetch__allow=allow or None, gatherer=gatherer, partitions=partitions)
    from streams.cli.gathering import Gathering

    code = Gathering(found, quiet=quiet, json=json).gather(roots or [], depth, max_urls, accept=accept)
    if code:
        raise typer.Exit(code)


def run(
    data: Data = None,
    pause: Pause = None,
    allow: Allow = None,
    gatherer: Gatherer = None,
    partitions: Partitions = None,
    quiet: Quiet = False,
    config: Config = None,
) -> None:
    """Run the pipeline as a service until it is stopped: refresh due objects, expire, index."""
    found = settings(config, data=data, fetch__pause=pause, fetch__allow=allow or None, gatherer=gatherer, partitions=partitions)
    from streams.cli.gathering import Gathering

    Gathering(found, quiet=quiet, json=False).serve()
