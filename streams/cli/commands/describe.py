"""`harvest describe`: the topology as text or Mermaid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from streams.cli.common import BrokerName, Config, Data, put, settings

if TYPE_CHECKING:
    from streams.config.settings import Settings
    from streams.topology.flow import Topology


def describe(
    mermaid: Annotated[bool, typer.Option("--mermaid", help="As a Mermaid flowchart.")] = False,
    broker: BrokerName = "",
    data: Data = None,
    config: Config = None,
) -> None:
    """Draw the topology: stages, topics and tables, as the runners execute them; with --broker the stages of that Broker alone."""
    found = settings(config, data=data)
    from streams.config.topology import topology_of
    from streams.topology import describe as drawing

    drawn = _of_broker(found, broker) if broker else topology_of(found)
    put((drawing.mermaid(drawn) if mermaid else drawing.plain(drawn)).rstrip("\n"))


def _of_broker(found: Settings, name: str) -> Topology:
    from streams.config.topology import broker_defined
    from streams.topology.flow import Topology, broker

    return Topology(broker(broker_defined(found, name)))
