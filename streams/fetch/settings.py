"""Settings of the fetch edge. Times in seconds, sizes in bytes."""

from __future__ import annotations

from functools import cached_property
from ipaddress import ip_network

import msgspec

from processors.urls import Network

MIB = 1024 * 1024
INLINE = 65_536
"""Maximum bytes of a body inside its record; larger ones go to the blob store (law 6)."""
MAY_BE_ZERO = ("pause", "patience", "grace", "min_rate", "ftp_idle", "ftp_recursive")
LONGEST_WAIT = 24 * 3_600_000
"""Longest wait in ms that Retry-After may ask for: one day."""


class FetchSettings(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Conservative defaults: an operator may raise them for servers of their own."""

    user_agent: str = "Harvest/0.1"
    """User-Agent header; begins with the product token that is looked up in robots.txt."""
    pause: float = 1.0
    """Pause between the end of a request and the start of the next, for each host and for each address."""
    patience: float = 10.0
    """Longest wait for the pause between two requests to a host; a request that would wait longer is answered as `deferred`."""
    dns_timeout: float = 10.0
    connect_timeout: float = 10.0
    answer_timeout: float = 30.0
    """Time limit from the request to the end of the header, and between two pieces of the body."""
    total_timeout: float = 600.0
    """Time limit for one exchange, body included."""
    grace: float = 20.0
    """Time of an exchange after which the peer must reach `min_rate`."""
    min_rate: int = 500
    """Minimum rate in bytes per second, averaged over an exchange."""
    max_body: int = 64 * MIB
    """Maximum size of a body from the network, as received and as decoded."""
    max_file: int = 1024 * MIB
    """Maximum size of a local file."""
    max_ratio: int = 200
    """Maximum ratio of decoded to received bytes, for bodies that decode to more than 1 MiB."""
    allow: tuple[str, ...] = ()
    """Local networks (CIDR) to which connections are allowed."""
    concurrency: int = 200
    """Maximum number of simultaneous exchanges."""
    ftp_idle: float = 60.0
    """Time for which the control connection to an FTP server is kept after an exchange."""
    ftp_recursive: bool = True
    """Whether an ls-lR that an FTP directory has, and that is younger than the refresh-rate, replaces the listings below it."""
    spool: str = ""
    """Folder for spooled bodies on their way to the blob store; empty: the system's temporary folder."""

    def __post_init__(self) -> None:
        """Check the values. Raises ValueError with one line that names the setting."""
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if isinstance(value, int | float) and (value < 0 or (not value and name not in MAY_BE_ZERO)):
                raise ValueError(f"{name}: {value} is too small")
        if not self.user_agent.isascii() or not self.user_agent.isprintable():
            raise ValueError("user_agent: only printable ASCII can stand in a header")

    @property
    def largest(self) -> int:
        """Return the maximum size of any body."""
        return max(self.max_body, self.max_file)

    @cached_property
    def networks(self) -> tuple[Network, ...]:
        """Return `allow`, parsed. Raises ValueError with one line for a malformed network."""
        return tuple(ip_network(network, strict=False) for network in self.allow)
