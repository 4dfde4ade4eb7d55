"""Options of the gateway; the command line makes them from the settings `serve.*`."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from processors.broker.definition import MAIN
from processors.query.facets import FACETS


class GatewayOptions(NamedTuple):
    """Options of one gateway. Times are seconds."""

    host: str = "127.0.0.1"
    """Address to listen on."""
    port: int = 8380
    """Port to listen on; 0: the system chooses one."""
    token: str = ""
    """Secret that every client has to present; empty: none."""
    admin_token: str = ""
    """Secret that opens the administration page, and answers as `token` does elsewhere; empty: there is no such page."""
    registry: bool = False
    """Whether servers can register, if there is a token."""
    hosts: tuple[str, ...] = ()
    """Names that a request's Host may have, beside those of the loopback and `host`; `*`: any."""
    root_path: str = ""
    """Path under which a proxy publishes the gateway, such as `/search`."""
    proxies: tuple[str, ...] = ()
    """Addresses of proxies whose X-Forwarded-For and X-Forwarded-Proto are believed; `*`: any."""
    templates: Path | None = None
    """Folder with templates that replace those of the same name."""
    objects: bool = False
    """Whether the bytes of objects are served."""
    rate: float = 20.0
    """Requests a second of each client, over some seconds; 0: no limit."""
    searches: int = 2
    """Plain searches at once; half as many expensive ones have turns of their own, so that plain ones need not wait for them."""
    queue: int = 256
    """Searches that wait for their turn; further ones are refused with 503."""
    timeout: float = 10.0
    """Time that a search may wait for its turn, and for an answer of OpenSearch."""
    budget: int = 400
    """Cost of a query (`processors.query.limits.cost`) above which it is refused."""
    broker: str = MAIN
    """Name of the Broker that is served."""
    stream: bool = False
    """Whether this Broker has a stream (`/brokers/NAME/soif`)."""
    facets: tuple[str, ...] = FACETS
    """Facets that are counted and shown, in this order: those of the Broker's definition."""

    @property
    def admin(self) -> bool:
        """Return whether there is an administration page."""
        return bool(self.admin_token)
