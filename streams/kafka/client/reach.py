"""First contact with a cluster: finds out why no broker answers.

Cause: librdkafka retries a refused login or a failed handshake like any lost connection, and a request then ends with a time-out
that gives no reason. The reasons are events of the client, which only its error callback reports. What these leave open is found by
a handshake of our own with the first broker.

Law: a reason that lies in the settings is reported within seconds, in one line that names the setting; no other silence is reported
before its time.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections import deque
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from streams.kafka.client.cluster import Cluster, ClusterError

FIRST = 2.0
"""Seconds of the first attempt; each further one waits twice as long. Before its end a reason is not conclusive: another broker of
the list may answer."""
PROBE = 2.0
"""Seconds of a TLS handshake that is made to find a reason."""
EVENTS = 100
"""Number of the client's latest errors that are kept."""


class ClientSettingsError(Exception):
    """librdkafka does not know a setting, or refuses its value; the text is one line."""


class Contact:
    """A client for administration that knows why no broker answers."""

    def __init__(self, cluster: Cluster) -> None:
        """Raises ClientSettingsError."""
        self._cluster = cluster
        self._heard: deque[KafkaError] = deque(maxlen=EVENTS)
        try:
            self.client = AdminClient(cluster.client() | {"error_cb": self._heard.append})
        except KafkaException as error:
            raise ClientSettingsError(_refused(cluster, error.args[0])) from None

    def metadata(self, seconds: float) -> Any:
        """Return brokers and topics.

        Raises ClusterError for a reason that lies in the settings, KafkaException after `seconds` without an answer.
        """
        self._heard.clear()
        until, pause = time.monotonic() + seconds, FIRST
        while True:
            try:
                return self.client.list_topics(timeout=max(0.1, min(pause, until - time.monotonic())))
            except KafkaException:
                # Has the client call the callback for each error until now.
                self.client.poll(0)
                if advice := self._advice(probe=pause == FIRST):
                    raise ClusterError(f"{self._cluster.brokers}: {advice}") from None
                if time.monotonic() >= until:
                    self._refuse_silence()
                    raise
            pause *= 2

    def _advice(self, *, probe: bool) -> str:
        """Return what the settings have to do with the silence; "": nothing is known. `probe`: also try whether TLS is answered."""
        security, first = self._cluster.security, self._cluster.brokers.partition(",")[0]
        advice = security.advice(tuple(self._heard))
        if advice.startswith("kafka.security.ca") and (why := handshake_error(first, security.tls_context())):
            return f"kafka.brokers, kafka.security.check_hostname: {why}" if "mismatch" in why else f"{advice}: {why}"
        if probe and not advice and not security.encrypted and speaks_tls(first):
            return f"kafka.security.protocol: the broker's listener speaks TLS, {security.protocol} does not"
        return advice

    def _refuse_silence(self) -> None:
        """Raise ClusterError if TLS works, and nothing else: a listener that wants a login disconnects other clients."""
        security, first = self._cluster.security, self._cluster.brokers.partition(",")[0]
        if security.protocol == "SSL" and speaks_tls(first):
            raise ClusterError(f"{self._cluster.brokers}: kafka.security.protocol: no answer to SSL; the listener may want a login")


def handshake_error(address: str, context: ssl.SSLContext) -> str:
    """Return why a certificate is refused, which librdkafka does not say: it is expired, for another host, of another CA."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), PROBE) as plain, context.wrap_socket(plain, server_hostname=host):
            return ""
    except ssl.SSLCertVerificationError as error:
        return error.verify_message
    except (OSError, ValueError):
        return ""


def speaks_tls(address: str) -> bool:
    """Whether a listener answers a TLS handshake, whatever its certificate. A client without TLS is only disconnected by it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), PROBE) as plain, context.wrap_socket(plain, server_hostname=host):
            return True
    except (OSError, ValueError):
        return False


def _refused(cluster: Cluster, error: KafkaError) -> str:
    """Return the error of a client that could not be made. It names the property; only those of `kafka.client` show its value."""
    names = [name for name, _ in cluster.further if f'"{name}"' in error.str()]
    return f"kafka.client: {error.str()}" if names else f"kafka.security: {error.str()}"
