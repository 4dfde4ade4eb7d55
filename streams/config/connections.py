"""Section `kafka.security` of `harvest.toml`.

Laws:
- A secret is given as itself or as the name of a file (`*_file`), which is read when the settings are loaded.
- Settings that contradict each other, files that are missing, and a key that does not match its certificate are errors before
  anything connects. A setting without effect is an error too: a password with a protocol that does not use it would otherwise go
  unnoticed, on an open connection.
- No error shows a secret.
"""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, SecretStr, ValidationInfo, field_validator, model_validator

from streams.config.base import Section, mistake
from streams.config.secret_files import MAX_SECRET, check_ca, check_pair, read_secret

OAUTH = "OAUTHBEARER"
HTTP = r"^(https?://[^/@?#\s]+(/[^@#\s]*)?)?$"
"""A URL without user and password, since errors show it."""


def secret() -> Any:
    """Return the field of a secret, which is checked even if it is not given: its file may be."""
    return Field(default=SecretStr(""), max_length=MAX_SECRET, validate_default=True)


class Connection(Section):
    """Section with secrets, each also as a file (`NAME_file`, which stands before NAME), and with settings that belong together."""

    @field_validator(
        *("password", "client_secret", "key_password", "registry_password", "token", "admin_token", "secret_key"),
        check_fields=False,
    )
    @classmethod
    def _from_file(cls, value: SecretStr, info: ValidationInfo) -> SecretStr:
        """Read a secret from its file."""
        path = info.data.get(f"{info.field_name}_file", "")
        if path and value.get_secret_value():
            raise mistake(f"given twice, also as {info.field_name}_file")
        return SecretStr(read_secret(path)) if path else value

    @field_validator(
        *("password_file", "client_secret_file", "key_password_file", "registry_password_file", "token_file", "admin_token_file"),
        "secret_key_file",
        check_fields=False,
    )
    @classmethod
    def _readable(cls, path: str) -> str:
        """Check a file where it is named, so that an error has the name of this setting."""
        if path:
            read_secret(path)
        return path

    @property
    def _kind(self) -> str:
        """What a setting has no effect with, for messages; empty: nothing to say."""
        return ""

    def _group(self, what: str, used: bool, *names: str) -> None:
        """Require settings that are used together, and refuse them where they are not used."""
        for name in names:
            if used and not self._has(name):
                raise mistake(f"missing; needed for {what}", name)
        self._useless(what, used, *names)

    def _useless(self, what: str, used: bool, *names: str) -> None:
        """Refuse settings without effect."""
        for name in names:
            if not used and self._has(name):
                raise mistake(f"has no effect without {what}{self._kind}", name)

    def _check_certificates(self, *authorities: str) -> None:
        """Check certificate, key and its password, and the files of some CAs."""
        found = {name: str(getattr(self, name)) for name in ("certificate", "key", *authorities)}
        self._group("a certificate with its key", bool(found["certificate"] or found["key"]), "certificate", "key")
        self._useless("a certificate", bool(found["certificate"]), "key_password")
        for name in authorities:
            if found[name]:
                check_ca(found[name], name)
        if found["certificate"]:
            password: SecretStr = getattr(self, "key_password")  # noqa: B009 - of those that have one
            names = ("certificate", "key", "key_password")
            check_pair(found["certificate"], found["key"], password.get_secret_value(), names)

    def _has(self, name: str) -> bool:
        value = getattr(self, name)
        return bool(value.get_secret_value() if isinstance(value, SecretStr) else value)


class KafkaSecurity(Connection):
    """Protocol, login and certificates of connections to Kafka, and to its Schema Registry."""

    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    """Of the brokers' listener: open, TLS, a login (SASL), both."""
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] = "SCRAM-SHA-512"
    """SASL mechanism; PLAIN and SCRAM take user and password, OAUTHBEARER a token of `token_url` (client credentials)."""
    user: str = Field(default="", max_length=1_000)
    """User for PLAIN and SCRAM."""
    password_file: str = ""
    """File with the password."""
    password: SecretStr = secret()
    """Password for PLAIN and SCRAM; better as a file, or in the environment."""
    token_url: str = Field(default="", pattern=HTTP)
    """URL of the server that issues tokens for OAUTHBEARER."""
    client_id: str = Field(default="", max_length=1_000)
    """Client for which tokens are issued."""
    client_secret_file: str = ""
    """File with the secret of the client."""
    client_secret: SecretStr = secret()
    """Secret of the client; better as a file, or in the environment."""
    scope: str = Field(default="", max_length=1_000)
    """Scope of the tokens, if the server wants one."""
    token_ca: str = ""
    """File with the CA (PEM) of the server of tokens; empty: the system's."""
    ca: str = ""
    """File with the CA (PEM) that signs the brokers' certificates; empty: the system's."""
    certificate: str = ""
    """File with the certificate (PEM) of this client, for brokers that want one (mTLS)."""
    key: str = ""
    """File with the key (PEM) of the certificate."""
    key_password_file: str = ""
    """File with the password of the key."""
    key_password: SecretStr = secret()
    """Password of the key, if it is encrypted."""
    check_hostname: bool = True
    """Whether a broker's certificate must be for the name under which it is addressed."""
    registry_user: str = Field(default="", max_length=1_000, pattern="^[^:]*$")
    """User for the Schema Registry (HTTP basic authentication)."""
    registry_password_file: str = ""
    """File with the password for the Schema Registry."""
    registry_password: SecretStr = secret()
    """Password for the Schema Registry."""
    registry_ca: str = ""
    """File with the CA (PEM) of the Schema Registry; empty: the system's."""

    @property
    def _kind(self) -> str:
        """The protocol, with the mechanism of a login."""
        return (
            f" (this is {self.protocol} with {self.mechanism})"
            if self.protocol.startswith("SASL")
            else f" (this is {self.protocol})"
        )

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        """Check what belongs together, then the files."""
        logs_in, encrypted = self.protocol.startswith("SASL"), self.protocol.endswith("SSL")
        oauth = logs_in and self.mechanism == OAUTH
        self._group("SASL_SSL or SASL_PLAINTEXT with PLAIN or SCRAM", logs_in and not oauth, "user", "password")
        self._group(f"SASL_SSL or SASL_PLAINTEXT with {OAUTH}", oauth, "token_url", "client_id", "client_secret")
        self._useless(f"SASL_SSL or SASL_PLAINTEXT with {OAUTH}", oauth, "scope", "token_ca")
        self._useless("SSL or SASL_SSL", encrypted, "ca", "certificate", "key")
        self._group("a user of the registry", bool(self.registry_user), "registry_user", "registry_password")
        self._check_certificates("ca", "token_ca", "registry_ca")
        return self
