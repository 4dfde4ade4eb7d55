"""`harvest summarize`: Essence on its own, without a data folder."""

from __future__ import annotations

from typing import Annotated

import typer

from streams.cli.common import Config, settings


def summarize(
    # Not as Path: click would refuse all arguments for one that cannot be read.
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="Files and folders.")],
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line: url, type, attributes.")] = False,
    jobs: Annotated[int | None, typer.Option("--jobs", metavar="N", min=1, max=256, help="Processes that parse.")] = None,
    config: Config = None,
) -> None:
    """Recognize, unnest, select and summarize files; prints SOIF and stores nothing."""
    found = settings(config, children=jobs)
    from streams.cli.standalone_summarize import StandaloneSummarize

    if not StandaloneSummarize(found, json=json).run(paths):
        raise typer.Exit(1)
