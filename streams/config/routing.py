"""The section `routing` of the settings: searches over several Brokers (`harvest search --routed`, the page `/brokers`)."""

from __future__ import annotations

from urllib.parse import urlsplit

from pydantic import Field, field_validator

from streams.config.base import Section


class RoutingSection(Section):
    """Searches over several Brokers."""

    servers: tuple[str, ...] = ()
    """URLs of gateways (http://HOST:8380/) whose Brokers are asked, beside those of the data folder."""
    most: int = Field(default=10, gt=0, le=1_000)
    """Maximum number of Brokers that a search is sent to: those that answer it best by the statistics of their words."""
    deadline: float = Field(default=2.0, gt=0, le=60)
    """Time in which gateways have to answer; those that have not are named."""

    @field_validator("servers")
    @classmethod
    def _urls(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for url in value:
            parts = urlsplit(url)
            if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or "@" in parts.netloc:
                raise ValueError("the URL of a gateway is expected, such as http://HOST:8380/, without name and password")
        return tuple(url.rstrip("/") + "/" for url in value)
