"""Hosts whose queues a run leaves: how many URLs wait, until when, and why. Bounded scans of the frontier's rows, read only."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from processors.frontier.rows import Table
from processors.frontier.state import HostState
from schemas.ports import Rows
from streams.store import Store

HOSTS = 2_000
"""Maximum number of hosts that are looked at in a partition."""
URLS = 50_000
"""Maximum number of URLs that are counted in the queues of a partition."""
SHOWN = 10
"""Maximum number of hosts with a line of their own."""
LAST = 253_402_300_799_000
"""The last second of the year 9999, in ms."""
ASKED = "it asked for a pause (429, 503 or Retry-After)"
UNREACHED = "its address or robots.txt could not be requested, which is tried again then"
CLOSED = "outside of the hours of its roots"
RESTS = "the pause between its requests"


class HeldHost(NamedTuple):
    """A host with a queue: the number of URLs, the time (ms) until when they wait, and why."""

    host: str
    urls: int
    until: int
    reason: str

    @property
    def line(self) -> str:
        """One line for the user."""
        what = "1 URL waits" if self.urls == 1 else f"{self.urls:,} URLs wait"
        return f"{self.host}: {what} until {shown_time(self.until)}: {self.reason}"

    def as_json(self) -> dict[str, Any]:
        """Return the host as JSON."""
        return self._asdict() | {"until": shown_time(self.until)}


def held_hosts(store: Store, now: int, roots: Collection[str]) -> list[HeldHost]:
    """Return the hosts that get no request now (ms since the epoch) although URLs of these roots wait, the longest queue first."""
    found: list[HeldHost] = []
    for partition in range(store.topics()["crawl"]):
        if (rows := store.rows("frontier", partition)) is not None:
            found += _held(rows, now, set(roots))
    return sorted(found, key=lambda each: (-each.urls, each.host))


def held_lines(found: Sequence[HeldHost]) -> list[str]:
    """Return a line for each of the first hosts, and one for all others."""
    lines = [each.line for each in found[:SHOWN]]
    if rest := found[SHOWN:]:
        urls = sum(each.urls for each in rest)
        last = shown_time(max(each.until for each in rest))
        lines.append(f"{len(rest):,} more hosts with {urls:,} URLs wait, the last until {last}")
    return lines


def _held(rows: Rows, now: int, roots: set[str]) -> Iterator[HeldHost]:
    table, after, left = Table(rows), b"", URLS
    for _ in range(HOSTS):
        head = next(iter(rows.scan(b"q|", after=after, limit=1)), None)
        if head is None or left <= 0:
            return
        name = head[0][2:-18]
        after = b"q|" + name + b"\x01"
        host = name.decode("utf-8", "replace")
        site = table.host(host)
        until = max(site.next_allowed, site.opens, site.rests)
        if until <= now:
            continue
        queued = [key[-16:] for key, _ in rows.scan(b"q|" + name + b"\0", limit=left)]
        left -= len(queued)
        known = (table.get(host, digest) for digest in queued)
        if urls := sum(1 for row in known if row is not None and row.state == "queued" and not roots.isdisjoint(row.roots)):
            yield HeldHost(host, urls, until, _reason(site, until))


def _reason(site: HostState, until: int) -> str:
    if until == site.next_allowed:
        return UNREACHED if site.tries else ASKED
    return CLOSED if until == site.opens else RESTS


def shown_time(moment: int) -> str:
    """Return a time in ms since the epoch for people, in UTC."""
    return f"{datetime.fromtimestamp(min(moment, LAST) / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
