"""`harvest describe`: the topology as text or Mermaid."""

from __future__ import annotations

from typing import Annotated

import typer

from streams.cli.common import put


def describe(mermaid: Annotated[bool, typer.Option("--mermaid", help="As a Mermaid flowchart.")] = False) -> None:
    """Draw the topology: stages, topics and tables, as the runners execute them."""
    from streams.topology import describe as drawing

    put((drawing.mermaid() if mermaid else drawing.plain()).rstrip("\n"))
