"""A cluster as operators have it, and the settings with which `harvest worker` uses it.

Kafka has TLS, logins (SCRAM-SHA-512) and ACLs; OpenSearch is behind nginx with TLS and a login; bodies are in a bucket of an S3
server with TLS. One CA signs for Kafka and OpenSearch, another for the S3 server.

Laws:
- The settings name files for all secrets, and contain none.
- Kafka and nginx are its own. Its bucket is deleted at the end; a test deletes its indexes.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.servers.nginx import Proxy, proxy
from tests.servers.object_store import REGION, Buckets, ObjectStore
from tests.streams.kafka import secured
from tests.streams.kafka.secured import Secured

USER = "harvest-index"
"""The user of OpenSearch."""
Value = str | int | list[str]
"""Value of a setting."""


class OperatorsCluster(NamedTuple):
    """A running cluster."""

    kafka: Secured
    search: Proxy
    store: ObjectStore
    buckets: Buckets
    bucket: str
    """The bucket of bodies, in which the writer has his rights."""
    secrets: tuple[str, ...]
    """What no log, output, metric or traceback may contain."""
    sections: Mapping[str, Mapping[str, Value]]
    """Settings by section and name."""

    def toml(self, prefix: str, index: str) -> str:
        """A `harvest.toml`, for topics and for indexes whose names begin with `prefix` and with `index`."""
        more = {"kafka": {"prefix": prefix}, "index": {"name": index}, "blobs": {"url": f"s3://{self.bucket}/{index}"}}
        lines = (
            [f"[{section}]", *(f"{name} = {json.dumps(value)}" for name, value in {**settings, **more.get(section, {})}.items())]
            for section, settings in self.sections.items()
        )
        return "".join(f"{line}\n" for section in lines for line in section)

    def leaked(self, texts: Iterable[str]) -> list[str]:
        """What some texts show of the secrets: the beginning of the texts."""
        return [text[:200] for text in texts if any(secret in text for secret in self.secrets)]

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Refuse the logins of OpenSearch, and all rights in the bucket, during the block."""
        users, client = self.search.folder / "users", self.buckets.client
        known, rights = users.read_text("utf-8"), client.get_bucket_policy(Bucket=self.bucket)["Policy"]
        users.write_text("nobody:{PLAIN}nothing\n", "utf-8")
        client.delete_bucket_policy(Bucket=self.bucket)
        yield
        users.write_text(known, "utf-8")
        client.put_bucket_policy(Bucket=self.bucket, Policy=rights)


@contextmanager
def running(folder: Path, opensearch: str, store: ObjectStore) -> Iterator[OperatorsCluster]:
    """Run Kafka and nginx, with files in `folder`, for a running OpenSearch and S3 server. Raises ServerError, ToolError."""
    (folder / "kafka").mkdir()
    with secured.running(folder / "kafka") as kafka, over(folder, kafka, opensearch, store) as cluster:
        yield cluster


@contextmanager
def over(folder: Path, kafka: Secured, opensearch: str, store: ObjectStore) -> Iterator[OperatorsCluster]:
    """As `running`, for a running Kafka too."""
    password = secrets.token_urlsafe(20)
    words = {"kafka": secured.PASSWORD, "index": password, "blobs": store.writer.secret}
    files = {name: folder / f"{name}.secret" for name in words}
    for name, word in words.items():
        files[name].write_text(f"{word}\n", "utf-8")
        files[name].chmod(0o600)
    (folder / "nginx").mkdir()
    buckets = Buckets(store)
    with proxy(folder / "nginx", opensearch, {USER: password}, kafka.authority.sign("search")) as search:
        found = OperatorsCluster(kafka, search, store, buckets, buckets.make(), tuple(words.values()), {})
        yield found._replace(sections=_sections(found, files))
        buckets.close()


def _sections(cluster: OperatorsCluster, files: Mapping[str, Path]) -> Mapping[str, Mapping[str, Value]]:
    kafka, search, store = cluster.kafka, cluster.search, cluster.store
    login = {"user": secured.USER, "password_file": str(files["kafka"])}
    return {
        "kafka": {"brokers": [kafka.login]},
        "kafka.security": {"protocol": "SASL_SSL", "mechanism": "SCRAM-SHA-512", **login, "ca": kafka.ca},
        "index": {
            "url": search.url,
            "user": USER,
            "password_file": str(files["index"]),
            "ca": kafka.ca,
        },
        "blobs": {
            "endpoint": store.tls_url,
            "region": REGION,
            "access_key": store.writer.access,
            "secret_key_file": str(files["blobs"]),
            "ca": store.ca,
            "timeout": 5,
        },
    }
