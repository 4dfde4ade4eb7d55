"""Measures the rate of the whole stream against servers that send the same bytes from a ready file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from tests.bench.figures import Figure, Goal
from tests.bench.gatherer.web_servers import NAME, Server, aiohttp, gateway, nginx, rate

CLIENTS = (1, 4)
"""Clients of the stream at once; each address has two at most, and all have eight (`sinks/gateway/gateway.py`)."""
MB = 1_000_000


def rates(body: bytes, data: Path, work: Path, requests: int, rounds: int) -> Iterator[Figure]:
    """Measure the rate of each server for so many requests of each client; ratios are medians of those of the rounds."""
    folders = {name: work / name for name in ("served", "nginx", "aiohttp")}
    for folder in folders.values():
        folder.mkdir()
    (folders["served"] / NAME).write_bytes(body)
    with ExitStack() as stack:
        servers: Mapping[str, Server] = {
            "harvest serve": stack.enter_context(gateway(data)),
            "nginx": stack.enter_context(nginx(folders["served"], folders["nginx"])),
            "aiohttp": stack.enter_context(aiohttp(folders["served"], folders["aiohttp"])),
        }
        for clients in CLIENTS:
            yield from _rates(servers, clients, max(1, requests // clients), rounds)


def _rates(servers: Mapping[str, Server], clients: int, requests: int, rounds: int) -> Iterator[Figure]:
    found: dict[str, list[float]] = {name: [] for name in servers}
    for server in servers.values():
        rate(server, 1, 1)
    for _ in range(rounds):
        for name, server in servers.items():
            found[name].append(rate(server, clients, requests))
    group = f"stream, {clients} client{'s' * (clients > 1)}"
    for name, each in found.items():
        yield Figure(group, name, median(each) / MB, "MB/s", f"{requests} streams for each client, a connection each")
    for name, goal in (("nginx", Goal(">=", 0.8)), ("aiohttp", None)):
        ratio = median(ours / other for ours, other in zip(found["harvest serve"], found[name], strict=True))
        yield Figure(group, f"to {name}", ratio, "ratio", "which sends a ready file by sendfile(2)", goal)
