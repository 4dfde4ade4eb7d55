"""Measures the rate of the whole stream against servers that send the same bytes from a ready file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from tests.bench.figures import Figure, Goal
from tests.bench.gatherer.copies import copy, large_gateway
from tests.bench.gatherer.web_servers import NAME, Rate, Server, aiohttp, content, gateway, nginx, rate

CLIENTS = (1, 4)
"""Clients of the stream at once; each address has two at most, and all have eight (`sinks/gateway/gateway.py`)."""
TIMES = 10
MB = 1_000_000


def rates(body: bytes, data: Path, work: Path, requests: int, rounds: int) -> Iterator[Figure]:
    """Measure the stream of a data folder, whose content is given, and one of TIMES as many summaries."""
    with gateway(data) as server:
        yield from _beside(f"stream, {len(body) / MB:.1f} MB", server, body, work / "small", requests, rounds)
    feed = work / "copies" / "feed.sqlite"
    copy(data, feed, TIMES)
    with large_gateway(feed) as server:
        large = content(server)
        yield from _beside(f"stream, {len(large) / MB:.0f} MB", server, large, work / "large", max(4, requests // TIMES), rounds)


def _beside(group: str, ours: Server, body: bytes, work: Path, requests: int, rounds: int) -> Iterator[Figure]:
    """Measure the rate of each server for so many requests; ratios are medians of those of the rounds."""
    folders = {name: work / name for name in ("served", "nginx", "aiohttp")}
    for folder in folders.values():
        folder.mkdir(parents=True)
    (folders["served"] / NAME).write_bytes(body)
    with ExitStack() as stack:
        servers: Mapping[str, Server] = {
            "harvest serve": ours,
            "nginx": stack.enter_context(nginx(folders["served"], folders["nginx"])),
            "aiohttp": stack.enter_context(aiohttp(folders["served"], folders["aiohttp"])),
        }
        for server in servers.values():
            # The first ones are sent from the feed, the second of them makes the file.
            rate(server, 1, 3)
        for clients in CLIENTS:
            yield from _rates(group, servers, clients, max(1, requests // clients), rounds)


def _rates(group: str, servers: Mapping[str, Server], clients: int, requests: int, rounds: int) -> Iterator[Figure]:
    found: dict[str, list[Rate]] = {name: [] for name in servers}
    for _ in range(rounds):
        for name, server in servers.items():
            found[name].append(rate(server, clients, requests))
    several = f", {clients} clients" * (clients > 1)
    for name, each in found.items():
        how = f"{requests} streams a client; {median(one.cpu for one in each) * 1_000:.2f} ms of CPU of the server a stream"
        yield Figure(group, f"{name}{several}", median(one.bytes for one in each) / MB, "MB/s", how)
    for name, goal in (("nginx", Goal(">=", 0.8)), ("aiohttp", None)):
        ratio = median(ours.bytes / other.bytes for ours, other in zip(found["harvest serve"], found[name], strict=True))
        yield Figure(group, f"to {name}{several}", ratio, "ratio", "which sends a ready file by sendfile(2)", goal)
