"""Section `serve` of `harvest.toml`: the search page, the API and the administration page."""

from __future__ import annotations

import re
from ipaddress import ip_network

from pydantic import Field, SecretStr, ValidationInfo, field_validator

from streams.config.connections import Connection, secret
from streams.config.sections import MOST, YEAR


class Serve(Connection):
    """The search page and the API of `harvest serve`."""

    host: str = Field(default="127.0.0.1", min_length=1, max_length=255)
    """Address to listen on; beyond the loopback `token` or `public` is needed."""
    port: int = Field(default=8380, ge=0, le=65_535)
    """Port to listen on; 0: the system chooses one."""
    token_file: str = ""
    """File with the token."""
    token: SecretStr = secret()
    """Secret of at least 16 characters that every client has to present; empty: none. Better as a file, or in the environment."""
    public: bool = False
    """Whether anybody who reaches the address may search and read without a token."""
    admin_token_file: str = ""
    """File with the token of the administration page."""
    admin_token: SecretStr = secret()
    """Secret of at least 16 characters, other than `token`, that opens the administration page `/admin`; empty: there is none."""
    registry: bool = False
    """Whether servers can register here (`harvest register`); with `token` alone."""
    hosts: tuple[str, ...] = ()
    """Names that a request's Host may have, beside those of the loopback and `host`; `*`: any."""
    root_path: str = Field(default="", max_length=1_000)
    """Path under which a proxy publishes the gateway, such as `/search`."""
    proxies: tuple[str, ...] = ()
    """Addresses of proxies whose X-Forwarded-For and X-Forwarded-Proto are believed; `*`: any. Clients behind others are one."""
    templates: str = ""
    """Folder with templates that replace those of the same name; empty: none."""
    objects: bool = False
    """Whether the bytes of objects are served, of local files and of members of archives."""
    rate: float = Field(default=20.0, ge=0, le=1_000_000)
    """Requests a second of each client, over some seconds; 0: no limit."""
    searches: int = Field(default=2, gt=0, le=1_000)
    """Plain searches at once; half as many expensive ones have turns of their own, so that plain ones need not wait for them."""
    queue: int = Field(default=256, ge=0, le=100_000)
    """Searches that wait for their turn; further ones are refused with 503."""
    timeout: float = Field(default=10.0, gt=0, le=YEAR)
    """Time that a search may wait for its turn, and for an answer of OpenSearch."""
    budget: int = Field(default=400, gt=0, le=MOST)
    """Cost of a query above which it is refused: a plain word costs 1, a pattern 5 to 60 (`processors/query/limits.py`)."""

    @field_validator("token", "admin_token")
    @classmethod
    def _long_enough(cls, value: SecretStr) -> SecretStr:
        if value.get_secret_value() and not re.fullmatch(r"[!-~]{16,}", value.get_secret_value()):
            raise ValueError("a token has at least 16 characters, all of them ASCII and none a space")
        return value

    @field_validator("admin_token")
    @classmethod
    def _of_its_own(cls, value: SecretStr, info: ValidationInfo) -> SecretStr:
        if value.get_secret_value() and value == info.data.get("token"):
            raise ValueError("the same as serve.token, which every client has: the administration page needs a token of its own")
        return value

    @field_validator("hosts")
    @classmethod
    def _names(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if not re.fullmatch(r"\*|\[?[0-9A-Fa-f:.]+\]?|[A-Za-z0-9._-]+", name):
                raise ValueError(f"a host name without a port is expected, not {name!r}")
        return tuple(name.strip("[]").rstrip(".") for name in value)

    @field_validator("proxies")
    @classmethod
    def _networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for proxy in value:
            if proxy != "*":
                ip_network(proxy, strict=False)
        return value

    @field_validator("root_path")
    @classmethod
    def _path(cls, value: str) -> str:
        if value and not re.fullmatch(r"(/[A-Za-z0-9._~!$&'()*+,;=:@%-]+)+", value):
            raise ValueError("a path begins with / and does not end with one, as /search")
        return value
