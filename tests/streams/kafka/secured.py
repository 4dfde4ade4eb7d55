"""A broker with TLS, logins and ACLs, as operators have them, beside its open listener, which is for the broker itself.

The user `harvest` has the rights that the README of `streams/kafka` lists, for all stages and commands, and no others with that
prefix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

from confluent_kafka.admin import (  # type: ignore[attr-defined] # exported without saying so
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from streams.kafka.client.acls import rights
from streams.topology.flow import Topology, TopologySettings, topology
from tests.servers import kafka
from tests.servers.certificates import Authority

USER = "harvest"
PASSWORD = "correct-horse-7"
"""Of the user, for SCRAM and for PLAIN."""
PREFIX = "secured."
JAAS = "org.apache.kafka.common.security"
FREE = "free."
"""Prefix of topics and groups of a test."""
RULES = (
    (ResourceType.TOPIC, ("READ", "WRITE", "CREATE", "ALTER_CONFIGS")),
    (ResourceType.GROUP, ("READ",)),
)
"""What the user may do with names that begin with FREE."""


class Secured(NamedTuple):
    """Addresses of the listeners, and the CA of the brokers."""

    open: str
    login: str
    """SASL_SSL: SCRAM-SHA-512, PLAIN, OAUTHBEARER with unsecured tokens."""
    mutual: str
    """SSL with certificates of clients."""
    authority: Authority

    @classmethod
    def at(cls, address: str, authority: Authority) -> Self:
        """The listeners of a broker, by the address of its open one."""
        port = int(address.rpartition(":")[2])
        return cls(address, f"127.0.0.1:{port + 2}", f"127.0.0.1:{port + 3}", authority)

    @property
    def ca(self) -> str:
        """The file of the CA."""
        return str(self.authority.path)


@contextmanager
def running(folder: Path) -> Iterator[Secured]:
    """Run the broker. Raises ServerError."""
    authority, start = prepared(folder)
    with start() as address:
        allow(address, PREFIX, topology(TopologySettings()))
        yield Secured.at(address, authority)


def prepared(folder: Path) -> tuple[Authority, Callable[[], AbstractContextManager[str]]]:
    """Return the CA of a broker with its files in a folder, and what starts it, the second time with its data."""
    authority = Authority(folder)
    certificate, key = authority.sign("broker")
    store = folder / "broker.store"
    store.write_bytes(key.read_bytes() + certificate.read_bytes())
    (server := folder / "server").mkdir()
    return authority, lambda: kafka.from_jars(server, lambda port: _settings(port, store, authority.path), {USER: PASSWORD})


def set_password(broker: Secured, password: str) -> None:
    """Change the user's password for SCRAM."""
    client = AdminClient({"bootstrap.servers": broker.open, "log_level": 0})
    changed = UserScramCredentialUpsertion(USER, ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4_096), password.encode())
    for future in client.alter_user_scram_credentials([changed]).values():
        future.result(60)


def _settings(port: int, store: Path, ca: Path) -> Mapping[str, str]:
    at = "127.0.0.1"
    login = f'{JAAS}.plain.PlainLoginModule required username="b" password="b" user_{USER}="{PASSWORD}";'
    return {
        "listeners": f"PLAINTEXT://{at}:{port},CONTROLLER://{at}:{port + 1},SASL_SSL://{at}:{port + 2},SSL://{at}:{port + 3}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL,SSL:SSL",
        "inter.broker.listener.name": "PLAINTEXT",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(store),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(ca),
        "listener.name.ssl.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN,OAUTHBEARER",
        "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": f"{JAAS}.scram.ScramLoginModule required;",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": login,
        "listener.name.sasl_ssl.oauthbearer.sasl.jaas.config": f"{JAAS}.oauthbearer.OAuthBearerLoginModule required"
        ' unsecuredLoginStringClaim_sub="b";',
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }


def allow(address: str, prefix: str, drawn: Topology) -> None:
    """Give the user the rights of the README for all stages and commands under a prefix, and those of `RULES`."""
    client = AdminClient({"bootstrap.servers": address, "log_level": 0})
    kinds = {"topic": ResourceType.TOPIC, "group": ResourceType.GROUP}
    named = {(kinds[r.kind], prefix + r.name, one) for r in rights(drawn) for one in r.operations}
    literal, prefixed = ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED
    made = [_binding(kind, name, literal, operation) for kind, name, operation in sorted(named, key=str)]
    made += [_binding(kind, FREE, prefixed, one) for kind, operations in RULES for one in operations]
    for future in client.create_acls(made).values():
        future.result(60)


def _binding(kind: Any, name: str, pattern: Any, operation: str) -> AclBinding:
    return AclBinding(kind, name, pattern, f"User:{USER}", "*", AclOperation[operation], AclPermissionType.ALLOW)
