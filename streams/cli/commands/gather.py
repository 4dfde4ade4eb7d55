"""`harvest gather` and `harvest run`: the commands that run the pipeline."""

from __future__ import annotations

from typing import Annotated

import typer

from streams.cli.commands.serve import Port
from streams.cli.common import USAGE, Accept, Config, Data, Depth, Failure, MaxUrls, settings

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, and no closing table.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="The closing table with all its rows, also those that are zero.")]
Allow = Annotated[list[str] | None, typer.Option("--allow", metavar="CIDR", help="A local network that this run may connect to.")]
Gatherer = Annotated[str | None, typer.Option("--gatherer", metavar="NAME", help="The Gatherer's name, part of every OID.")]
Partitions = Annotated[int | None, typer.Option("--partitions", metavar="N", help="Partitions of a new data folder.")]
Serve = Annotated[bool, typer.Option("--serve", help="Also serve the page, in a process of its own: see `harvest serve`.")]
Pause = Annotated[float | None, typer.Option("--pause", metavar="S", help="Seconds between requests to a server, in this run.")]


def gather(
    roots: Annotated[
        list[str] | None, typer.Argument(metavar="ROOT...", help="Paths, or URLs: file, http, https, ftp, gopher, news.")
    ] = None,
    data: Data = None,
    depth: Depth = None,
    max_urls: MaxUrls = None,
    pause: Pause = None,
    allow: Allow = None,
    gatherer: Gatherer = None,
    partitions: Partitions = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    accept: Accept = False,
    json: Annotated[bool, typer.Option("--json", help="The closing table as one JSON object on standard output.")] = False,
    config: Config = None,
) -> None:
    """Gather roots: fetch, unnest, summarize, catalogue, remove duplicates, index.

    Another run visits the roots again; unchanged objects cost little. Without a ROOT, all roots of the data folder are visited.
    """
    if verbose and (quiet or json):
        raise Failure("--verbose is about the closing table: it goes neither with --quiet nor with --json", USAGE)
    found = settings(config, data=data, fetch__pause=pause, fetch__allow=allow or None, gatherer=gatherer, partitions=partitions)
    from streams.cli.gathering import Gathering

    code = Gathering(found, quiet=quiet, json=json, verbose=verbose).gather(roots or [], depth, max_urls, accept=accept)
    if code:
        raise typer.Exit(code)


def run(
    data: Data = None,
    pause: Pause = None,
    allow: Allow = None,
    gatherer: Gatherer = None,
    partitions: Partitions = None,
    quiet: Quiet = False,
    serve: Serve = False,
    port: Port = None,
    config: Config = None,
) -> None:
    """Run the pipeline as a service until it is stopped: visit what changes in local roots, refresh due objects, expire, index.

    Its roots are those that `harvest gather` has visited and `harvest roots add` names, also while it runs.
    """
    if port is not None and not serve:
        raise Failure("--port is that of the page: it goes with --serve", USAGE)
    flags = {"fetch__pause": pause, "fetch__allow": allow or None, "gatherer": gatherer, "partitions": partitions}
    found = settings(config, data=data, serve__port=port, **flags)
    from streams.cli.gathering import Gathering

    command = None
    if serve:
        from streams.cli.gateway import gateway_options
        from streams.cli.gateway_process import gateway_command

        gateway_options(found)  # what cannot be served is a usage error now, not one of a process later
        command = gateway_command(found, config)
    Gathering(found, quiet=quiet, json=False).serve(command)
