"""The section `routing` of the settings: searches over several Brokers (`harvest search --routed`, the page `/brokers`)."""

from __future__ import annotations

from pydantic import Field

from streams.config.base import Section
from streams.config.registry import GatewayUrl


class RoutingSection(Section):
    """Searches over several Brokers."""

    servers: tuple[GatewayUrl, ...] = ()
    """URLs of gateways (http://HOST:8380/) whose Brokers are asked, beside those of the data folder."""
    registry: str = Field(default="", max_length=40)
    """A Broker of the settings that is a registry: the gateways that have registered there are asked, too (at most 50 of them)."""
    most: int = Field(default=10, gt=0, le=1_000)
    """Maximum number of Brokers that a search is sent to: those that answer it best by the statistics of their words."""
    deadline: float = Field(default=2.0, gt=0, le=60)
    """Time in which gateways have to answer; those that have not are named."""
