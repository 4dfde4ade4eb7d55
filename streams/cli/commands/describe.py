"""`harvest describe`: the topology as text or Mermaid."""

from __future__ import annotations

from typing import Annotated

import typer

from streams.cli.common import Config, put, settings


def describe(
    mermaid: Annotated[bool, typer.Option("--mermaid", help="As a Mermaid flowchart.")] = False, config: Config = None
) -> None:
    """Draw the topology: stages, topics and tables, as the runners execute them."""
    found = settings(config)
    from streams.config.topology import topology_of
    from streams.topology import describe as drawing

    drawn = topology_of(found)
    put((drawing.mermaid(drawn) if mermaid else drawing.plain(drawn)).rstrip("\n"))
