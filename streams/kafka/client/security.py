"""Security of the connections to a cluster, mapped to the settings of each client library.

Strategy: one value, `Security`, is made from the settings `kafka.security`; a `Cluster` carries it, and every client is made
through the cluster. The mapping for Faust's client is in `streams/kafka/decide/credentials.py`, which few processes need.

Laws:
- No secret is part of a repr, and none is part of an error.
- What `kafka.client` adds is passed to confluent-kafka unchanged. Settings on which the laws of Harvest depend, and those that
  `kafka.security` has, were refused when the settings were loaded (`streams/config/connections.py`).
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError

if TYPE_CHECKING:
    from streams.config.connections import KafkaSecurity

OAUTH = "OAUTHBEARER"
ADVICE = (
    (
        r"supported mechanisms: *(?:\(|$)",
        "kafka.security.protocol: the broker's listener takes no login, which {0.protocol} needs",
    ),
    (
        r"unsupported sasl mechanism(?:.*supported mechanisms: ([\w,-]+))?",
        "kafka.security.mechanism: the broker does not offer {0.mechanism} (it offers {2})",
    ),
    (
        r"(?:acquire|retrieve).*token",
        "kafka.security.token_url, kafka.security.client_id, kafka.security.client_secret: no token from {0.token_url}",
    ),
    (
        r"(?:authentication error|authentication failed).*oauthbearer|invalid_token",
        "kafka.security.client_id, kafka.security.scope: the broker refuses the token of {0.client_id}",
    ),
    (
        r"authentication error|authentication failed",
        "kafka.security.user, kafka.security.password: the broker refuses the login of {0.user}",
    ),
    (
        r"certificate verify failed|certificate could not be verified",
        "kafka.security.ca: {1} does not prove the broker's certificate",
    ),
    (
        r"alert (?:certificate required|bad certificate|unknown ca|certificate unknown|handshake failure)",
        "kafka.security.certificate: the broker refuses the certificate of this client, or wants one",
    ),
    (
        r"plaintext broker listener|wrong version number|packet length too long|incorrect security\.protocol",
        "kafka.security.protocol: the broker's listener does not speak {0.protocol}",
    ),
)
"""Patterns of librdkafka's errors, and what each says of the settings: {0} is the security, {1} the CA, {2} a group of the pattern.

The first that is found counts: a refused login or certificate tells more than the disconnect that follows.
"""


@dataclass(frozen=True)
class Security:
    """Protocol, login, certificates. The fields are the settings `kafka.security.*`."""

    protocol: str = "PLAINTEXT"
    mechanism: str = "SCRAM-SHA-512"
    user: str = ""
    password: str = field(default="", repr=False)
    token_url: str = ""
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    scope: str = ""
    token_ca: str = ""
    ca: str = ""
    certificate: str = ""
    key: str = ""
    key_password: str = field(default="", repr=False)
    check_hostname: bool = True
    registry_user: str = ""
    registry_password: str = field(default="", repr=False)
    registry_ca: str = ""

    @classmethod
    def of(cls, settings: KafkaSecurity) -> Security:
        """Return the security of the settings, secrets included."""
        values = {one.name: getattr(settings, one.name) for one in fields(cls)}
        return cls(**{name: getattr(value, "get_secret_value", lambda value=value: value)() for name, value in values.items()})

    @property
    def encrypted(self) -> bool:
        """Whether connections use TLS."""
        return self.protocol.endswith("SSL")

    @property
    def logs_in(self) -> bool:
        """Whether connections log in by SASL."""
        return self.protocol.startswith("SASL")

    @property
    def name(self) -> str:
        """The user, or the client of tokens; "": the login has no name here (a certificate), or there is none."""
        return (self.client_id if self.mechanism == OAUTH else self.user) if self.logs_in else ""

    def confluent(self) -> dict[str, Any]:
        """Return the settings for confluent-kafka; none for an open cluster."""
        found = {} if self.protocol == "PLAINTEXT" else {"security.protocol": self.protocol}
        if self.logs_in:
            found |= self._oauth() if self.mechanism == OAUTH else self._password()
        if self.encrypted:
            # An empty CA leaves out the setting: the client then looks for the system's.
            found |= _given(("ssl.ca.location", self.ca), ("ssl.certificate.location", self.certificate))
            found |= _given(("ssl.key.location", self.key), ("ssl.key.password", self.key_password))
            found["ssl.endpoint.identification.algorithm"] = "https" if self.check_hostname else "none"
        return found

    def _password(self) -> dict[str, str]:
        return {"sasl.mechanism": self.mechanism, "sasl.username": self.user, "sasl.password": self.password}

    def _oauth(self) -> dict[str, str]:
        login = {"sasl.oauthbearer.client.id": self.client_id, "sasl.oauthbearer.client.secret": self.client_secret}
        where = {"sasl.oauthbearer.method": "oidc", "sasl.oauthbearer.token.endpoint.url": self.token_url}
        more = _given(("sasl.oauthbearer.scope", self.scope), ("https.ca.location", self.token_ca))
        return {"sasl.mechanism": OAUTH, **where, **login, **more}

    def registry(self, url: str) -> dict[str, str]:
        """Return the settings for confluent-kafka's client of a Schema Registry."""
        login = f"{self.registry_user}:{self.registry_password}" if self.registry_user else ""
        return {"url": url, **_given(("basic.auth.user.info", login), ("ssl.ca.location", self.registry_ca))}

    def summary(self) -> str:
        """Return protocol, mechanism and user in a line, for people."""
        if not self.logs_in:
            return f"{self.protocol} with the certificate {Path(self.certificate).name}" if self.certificate else self.protocol
        return f"{self.protocol}, {self.mechanism}, {'client' if self.mechanism == OAUTH else 'user'} {self.name}"

    def advice(self, errors: Iterable[KafkaError]) -> str:
        """Return what errors of a client say of these settings, beginning with the one to look at; "": nothing.

        The client reports each attempt; most of its errors are only disconnects, which say nothing.
        """
        texts = [error.str() for error in errors]
        for pattern, advice in ADVICE:
            for text in texts:
                if found := re.search(pattern, text, re.IGNORECASE):
                    return advice.format(self, self.ca or "a CA of this system", *found.groups())
        return ""

    def tls_context(self) -> ssl.SSLContext:
        """Return the TLS context of Python that accepts the same brokers as confluent-kafka does with these settings."""
        context = ssl.create_default_context(cafile=self.ca or None)
        context.check_hostname = self.check_hostname
        if self.certificate:
            context.load_cert_chain(self.certificate, self.key, self.key_password)
        return context


def _given(*pairs: tuple[str, str]) -> dict[str, str]:
    """Return the pairs whose value is not empty."""
    return {name: value for name, value in pairs if value}
