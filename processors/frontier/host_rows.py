"""Typed access to the rows of hosts.

| row | holds |
| --- | --- |
| `s|host` | HostState: address, requests in flight, next allowed; written at every request and answer |
| `h|host` | robots.txt of the host, which may be large and changes at most once a day |

A row `s|` of an earlier version contains robots.txt itself: it is read from there, and moved with the next write.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import msgspec

from processors.frontier.clock_rows import decode_text
from processors.frontier.state import HostState
from schemas.ports import Rows

_pack = msgspec.msgpack.encode
# Cached: an event looks at the row of its host several times.
_host = lru_cache(1_024)(msgspec.msgpack.Decoder(HostState).decode)


class HostRows:
    """Rows of the hosts of one partition."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows

    def host(self, host: str) -> HostState:
        """Return the row of a host; a new one if the host is unknown."""
        value = self.rows.get(b"s|" + host.encode())
        return _host(value) if value is not None else HostState()

    def put_host(self, host: str, site: HostState) -> None:
        """Write the row of a host."""
        if site.robots:
            self.put_robots(host, site.robots)
            site = site.but(robots=b"")
        self.rows.put(b"s|" + host.encode(), _pack(site))

    def hosts(self) -> Iterator[tuple[str, HostState]]:
        """Iterate over the hosts of the partition."""
        for key, value in self.rows.scan(b"s|"):
            yield decode_text(key[2:]), _host(value)

    def robots(self, host: str, site: HostState) -> bytes:
        """Return the last robots.txt of a host with the given row; b"" if it has none."""
        return site.robots or self.rows.get(b"h|" + host.encode()) or b""

    def put_robots(self, host: str, robots: bytes) -> None:
        """Write the robots.txt of a host."""
        key = b"h|" + host.encode()
        if robots:
            self.rows.put(key, robots)
        elif self.rows.get(key) is not None:
            self.rows.delete(key)
