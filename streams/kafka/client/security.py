"""Security of the connections to a cluster, mapped to the settings of each client library.

Strategy: one value, `Security`, is made from the settings `kafka.security`; a `Cluster` carries it, and every client is made
through the cluster. The mapping for Faust's client is in `streams/kafka/decide/credentials.py`, which few processes need.

Laws:
- No secret is part of a repr, and none is part of an error.
- What `kafka.client` adds is passed to confluent-kafka unchanged. Settings on which the laws of Harvest depend, and those that
  `kafka.security` has, were refused when the settings were loaded (`streams/config/connections.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError

if TYPE_CHECKING:
    from streams.config.connections import KafkaSecurity

OAUTH = "OAUTHBEARER"


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
        who = f"client {self.client_id}" if self.mechanism == OAUTH else f"user {self.user}"
        return f"{self.protocol}, {self.mechanism}, {who}"

    def advice(self, errors: Sequence[KafkaError]) -> str:
        """Return what errors of a client say of these settings, beginning with the one to look at; "": nothing.

        The client reports every attempt: a refused login and a failed handshake tell more than the disconnect that follows.
        """
        for code, says in ((KafkaError._AUTHENTICATION, self._login), (KafkaError._SSL, self._tls)):  # noqa: SLF001 - its public names
            for error in errors:
                if error.code() == code:
                    return says(error.str())
        if any("security.protocol" in error.str() for error in errors):
            return f"kafka.security.protocol: the broker does not speak {self.protocol}"
        return ""

    def _login(self, text: str) -> str:
        if "nsupported" in text and "mechanism" in text:
            offers = f" (it offers {text.rpartition(':')[2].strip()})" if "supported mechanisms:" in text else ""
            return f"kafka.security.mechanism: the broker does not offer {self.mechanism}{offers}"
        if self.mechanism != OAUTH:
            return f"kafka.security.user, kafka.security.password: the broker refuses the login of {self.user}"
        if "token" in text and ("retrieve" in text or "acquire" in text):
            names = "kafka.security.token_url, kafka.security.client_id, kafka.security.client_secret"
            return f"{names}: {self.token_url} gives no token"
        return f"kafka.security.client_id, kafka.security.scope: the broker refuses the token of {self.client_id}"

    def _tls(self, text: str) -> str:
        lower = text.lower()
        if "hostname mismatch" in lower or "ip address mismatch" in lower:
            return "kafka.brokers: the broker's certificate is for another name (kafka.security.check_hostname)"
        if "certificate has expired" in lower or "not yet valid" in lower:
            return "kafka.security.ca: the broker's certificate, or its CA's, is not valid now"
        if "certificate verify failed" in lower or "certificate could not be verified" in lower:
            return f"kafka.security.ca: the broker's certificate is not signed by {self.ca or 'a CA of this system'}"
        if "alert" in lower or "certificate required" in lower:
            return "kafka.security.certificate: the broker refuses the certificate of this client, or wants one"
        return f"kafka.security.protocol: no TLS connection, which {self.protocol} needs: the broker may not speak it"


def _given(*pairs: tuple[str, str]) -> dict[str, str]:
    """Return the pairs whose value is not empty."""
    return {name: value for name, value in pairs if value}
