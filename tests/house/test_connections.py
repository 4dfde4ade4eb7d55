"""Rule of connections: addresses and security of Kafka's clients are in one place each."""

from __future__ import annotations

import re
from pathlib import Path

ALLOWED = {
    "bootstrap.servers": {"streams/kafka/client/cluster.py", "streams/config/client_settings.py"},
    "sasl.": {"streams/kafka/client/security.py", "streams/config/client_settings.py"},
    "ssl.ca.location": {"streams/kafka/client/security.py", "streams/config/client_settings.py"},
    "broker_credentials": {"streams/kafka/decide/apps.py"},
}
"""Words of a connection, and the modules that may have them: one applies them, one refuses them among the further settings."""


def test_clients_are_made_through_cluster(root: Path) -> None:
    """No other module names the brokers or the security of a client, so that none connects without TLS and login."""
    found: dict[str, set[str]] = {word: set() for word in ALLOWED}
    for path in root.joinpath("streams").rglob("*.py"):
        text = path.read_text("utf-8")
        for word in ALLOWED:
            if re.search(rf"[\"']{re.escape(word)}", text):
                found[word].add(str(path.relative_to(root)))
    assert found == ALLOWED


def test_no_client_is_made_of_a_literal(root: Path) -> None:
    """Clients are not given a table that is written where they are made: what is not in it would be missing."""
    made = re.compile(r"\b(?:Consumer|Producer|AdminClient|SchemaRegistryClient)\(\s*\{[^*}]*\}")
    assert [str(path) for path in root.joinpath("streams").rglob("*.py") if made.search(path.read_text("utf-8"))] == []
