"""The section `registry` of the settings: how this gateway registers at the registries of others (`harvest register`)."""

from __future__ import annotations

from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, model_validator

from streams.config.base import mistake
from streams.config.connections import Connection, secret

WEEK = 7 * 86_400


def gateway_url(url: str) -> str:
    """Return the URL of a gateway with a slash at its end. Raises ValueError."""
    parts = urlsplit(url)
    known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    if not known or parts.query or parts.fragment or "@" in parts.netloc:
        raise ValueError("the URL of a gateway is expected, such as http://HOST:8380/, without name and password")
    return url.rstrip("/") + "/"


GatewayUrl = Annotated[str, AfterValidator(gateway_url)]


class RegistrySection(Connection):
    """Registration of this gateway at registries."""

    servers: tuple[GatewayUrl, ...] = ()
    """URLs of gateways with a registry (`serve.registry`), at which `harvest serve` registers and renews in time."""
    token_file: str = ""
    """File with the token of these gateways."""
    token: SecretStr = secret()
    """Token of these gateways (their `serve.token`); better as a file, or in the environment."""
    url: str = Field(default="", max_length=1_000)
    """URL under which others reach this gateway; needed to register."""
    name: str = Field(default="", pattern=r"^([A-Za-z0-9][A-Za-z0-9._/-]{0,99})?$")
    """Name under which it registers; empty: that of the Gatherer and of the Broker, as HOST/main."""
    title: str = Field(default="", max_length=500)
    """Title in registries; empty: that of the Broker, or its name."""
    description: str = Field(default="", max_length=1_000)
    """What is to be found here."""
    contact: str = Field(default="", max_length=500)
    """Whom to write to, such as a mail address."""
    ttl: int = Field(default=WEEK, ge=60, le=4 * WEEK)
    """Time-to-live of the registration, which is renewed after half of it."""
    statistics: bool = False
    """Whether a registration has the statistics of the Broker's words, up to 256 kB, for those who route searches by them."""

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        """Check the URL, and what belongs together."""
        if self.url:
            try:
                gateway_url(self.url)
            except ValueError as error:
                raise mistake(str(error), "url") from None
        for name in ("url", "token"):
            if self.servers and not self._has(name):
                raise mistake("missing; needed for registry.servers", name)
        return self
