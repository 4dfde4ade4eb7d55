"""Checks of `kafka.client`: further settings of librdkafka, for all clients of confluent-kafka.

Strategy: names that Harvest has itself are refused with the name of the right setting, and so are those on which its laws depend.
Whether librdkafka knows the others, it says itself when the first client is made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from streams.config.base import mistake

INSTEAD: Mapping[str, str] = {
    "bootstrap.servers": "kafka.brokers",
    "metadata.broker.list": "kafka.brokers",
    "security.protocol": "kafka.security.protocol",
    "sasl.mechanism": "kafka.security.mechanism",
    "sasl.mechanisms": "kafka.security.mechanism",
    "sasl.username": "kafka.security.user",
    "sasl.password": "kafka.security.password",
    "sasl.oauthbearer.method": "kafka.security.mechanism",
    "sasl.oauthbearer.token.endpoint.url": "kafka.security.token_url",
    "sasl.oauthbearer.client.id": "kafka.security.client_id",
    "sasl.oauthbearer.client.secret": "kafka.security.client_secret",
    "sasl.oauthbearer.scope": "kafka.security.scope",
    "https.ca.location": "kafka.security.token_ca",
    "https.ca.pem": "kafka.security.token_ca",
    "ssl.ca.location": "kafka.security.ca",
    "ssl.ca.pem": "kafka.security.ca",
    "ssl.certificate.location": "kafka.security.certificate",
    "ssl.certificate.pem": "kafka.security.certificate",
    "ssl.keystore.location": "kafka.security.certificate",
    "ssl.keystore.password": "kafka.security.key_password",
    "ssl.key.location": "kafka.security.key",
    "ssl.key.pem": "kafka.security.key",
    "ssl.key.password": "kafka.security.key_password",
    "ssl.endpoint.identification.algorithm": "kafka.security.check_hostname",
    "enable.ssl.certificate.verification": "kafka.security.ca",
    "session.timeout.ms": "worker.session",
    "heartbeat.interval.ms": "worker.session",
    "group.instance.id": "worker.instance",
}
"""Settings of librdkafka that Harvest has under names of its own."""
FIXED = frozenset(
    {
        *("acks", "request.required.acks", "enable.idempotence", "transactional.id", "partitioner", "compression.codec"),
        *("compression.type", "group.id", "enable.auto.commit", "enable.auto.offset.store", "auto.offset.reset"),
        *("isolation.level", "enable.partition.eof", "partition.assignment.strategy", "group.protocol", "delivery.timeout.ms"),
        *("message.timeout.ms", "message.max.bytes", "log_level", "allow.auto.create.topics", "max.in.flight", "retries"),
        *("message.send.max.retries", "max.in.flight.requests.per.connection", "enable.gapless.guarantee"),
    }
)
"""Settings of librdkafka on which the laws of Harvest depend: order, repetition, partitions of keys."""
LOGIN = "sasl."
"""Prefix of settings of logins, which are refused as a whole: some are secrets."""


def client_settings(value: Any) -> dict[str, str]:
    """Return the settings by name, from a table or from NAME=VALUE pairs. Raises PydanticCustomError.

    TOML takes the points of an unquoted name for tables in each other.
    """
    if isinstance(value, str):
        value = dict(_pair(one) for one in value.split(",") if one.strip())
    if not isinstance(value, Mapping):
        raise mistake("a table of settings of librdkafka")
    found = dict(_flat(value))
    for name in found:
        _refuse(name)
    return found


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise mistake("NAME=VALUE pairs, separated by commas")
    return name.strip(), value.strip()


def _flat(table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{name}.")
        elif isinstance(value, bool):
            yield above + name, str(value).lower()
        elif isinstance(value, str | int | float):
            yield above + name, str(value)
        else:
            raise mistake(f"{above}{name} is neither text nor a number")


def _refuse(name: str) -> None:
    if name in INSTEAD:
        raise mistake(f"{name} is set by {INSTEAD[name]}")
    if name.startswith(LOGIN):
        raise mistake(f"{name} is not available: logins are set by kafka.security")
    if name in FIXED:
        raise mistake(f"{name} is fixed: Harvest relies on its value")
