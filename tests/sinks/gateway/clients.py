"""Clients of a gateway: one that asks and reads, and hostile ones.

`python -m tests.sinks.gateway.clients URL COUNT` runs hostile ones until its standard input ends, and prints what became of them.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from urllib.parse import urlsplit


def get(url: str, path: str, source: str = "127.0.0.1", headers: Mapping[str, str] | None = None) -> tuple[int, bytes]:
    """Status and body of an answer to a client with some address of the loopback."""
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=60, source_address=(source, 0))
    try:
        connection.request("GET", path, headers=dict(headers or {}))
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def hostile_client(url: str, at: int, stop: threading.Event) -> Counter[str]:
    """One hostile client, of one of five kinds; return what became of it."""
    parts = urlsplit(url)
    # Those that flood have one address.
    source = f"127.0.1.{at % 250 + 1}" if at % 5 < 4 else "127.0.1.251"
    seen: Counter[str] = Counter()
    while not stop.is_set():
        kind = at % 5
        if kind == 0:  # the most expensive query that is allowed, again and again
            status, _ = get(url, "/api/search?q=" + "+".join(f"leviathan{n}~3" for n in range(6)), source)
            seen[str(status)] += 1
            continue
        with socket.create_connection((parts.hostname or "", parts.port or 0), 60, (source, 0)) as peer:
            peer.settimeout(0.5)
            try:
                if kind == 1:  # a head that never ends
                    peer.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ")
                    stop.wait(1)
                    peer.sendall(b"x" * 100_000)
                elif kind == 2:  # no HTTP at all
                    peer.sendall(os.urandom(10_000))
                elif kind == 3:  # an export that nobody reads
                    peer.sendall(b"GET /api/export HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    stop.wait(1)
                else:  # requests without waiting for answers
                    peer.sendall(b"GET /api/search?q=whale HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50)
                    stop.wait(0.2)
                seen["answered" if peer.recv(1_000) else "closed"] += 1
            except OSError:
                seen["closed"] += 1
    return seen


def main(url: str, count: int) -> None:
    """Run hostile clients."""
    stop = threading.Event()
    with ThreadPoolExecutor(count) as clients:
        hostile = [clients.submit(hostile_client, url, at, stop) for at in range(count)]
        sys.stdin.read()
        stop.set()
        print(sum((each.result() for each in hostile), Counter()).total())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
