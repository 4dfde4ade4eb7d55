"""Versions of the protocol that a broker speaks; from them, the version of Kafka, which the protocol itself does not give.

Strategy: brokers answer a request for their API versions before any login (KIP-35). It is sent over a connection of its own, since
none of the clients shows the answer.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping
from contextlib import closing

from streams.kafka.client.cluster import Cluster

TIMEOUT = 3.0
PRODUCE, FETCH, API_VERSIONS = 0, 1, 18
"""Keys of APIs."""
SINCE = (
    (FETCH, 18, "4.1"),
    (PRODUCE, 12, "4.0"),
    (FETCH, 17, "3.9"),
    (FETCH, 16, "3.7"),
    (FETCH, 15, "3.5"),
    (FETCH, 13, "3.1"),
    (FETCH, 12, "2.7"),
)
"""Keys of APIs, versions of them, and the first Kafka that has those, newest first."""
LARGEST = 1 << 16
"""Bytes of an answer."""


def broker_protocol(cluster: Cluster) -> str:
    """Return which Kafka's protocols the first broker that answers speaks, for people; "": none answers with versions."""
    for address in cluster.brokers.split(","):
        try:
            found = api_versions(address, cluster)
        except (OSError, ValueError, struct.error):
            continue
        return f"speaks protocols of {kafka_version(found)} (Produce up to {found[PRODUCE]}, Fetch up to {found[FETCH]})"
    return ""


def kafka_version(highest: Mapping[int, int]) -> str:
    """Return the version of Kafka inferred from the highest version of each API."""
    for key, version, name in SINCE:
        if highest.get(key, -1) >= version:
            return f"Kafka {name}{' or later' if name == SINCE[0][2] else ''}"
    return f"a Kafka before {SINCE[-1][2]}"


def api_versions(address: str, cluster: Cluster) -> dict[int, int]:
    """Return the highest version of each API by its key. Raises OSError, ValueError, struct.error."""
    host, _, port = address.rpartition(":")
    plain = socket.create_connection((host.strip("[]"), int(port)), TIMEOUT)
    with closing(plain):
        security = cluster.security
        connection = security.tls_context().wrap_socket(plain, server_hostname=host.strip("[]")) if security.encrypted else plain
        with closing(connection):
            # Version 0 of the request: key, version, correlation id, no client id.
            request = struct.pack(">hhih", API_VERSIONS, 0, 1, -1)
            connection.sendall(struct.pack(">i", len(request)) + request)
            (length,) = struct.unpack(">i", _received(connection, 4))
            if not 0 < length <= LARGEST:
                raise ValueError(f"an answer of {length} bytes")
            answer = _received(connection, length)
    _, code, count = struct.unpack_from(">ihi", answer)
    found = {key: most for key, _, most in struct.iter_unpack(">hhh", answer[10 : 10 + 6 * count])}
    if code or not {PRODUCE, FETCH} <= found.keys():
        raise ValueError("no versions")
    return found


def _received(connection: socket.socket, count: int) -> bytes:
    """Return this many bytes. Raises OSError."""
    parts = b""
    while len(parts) < count:
        part = connection.recv(count - len(parts))
        if not part:
            raise OSError("the connection was closed")
        parts += part
    return parts
