"""A cluster as operators have it, and the settings with which `harvest worker` uses it.

Kafka has TLS, logins (SCRAM-SHA-512) and ACLs; OpenSearch is behind nginx with TLS and a login; bodies are in a bucket of an S3
server with TLS. One CA signs for Kafka and OpenSearch, another for the S3 server.

Laws:
- The settings name files for all secrets, and contain none.
- Kafka and nginx are its own. What it stores on the servers of the session has a name of its own, and is deleted at the end.
"""

from __future__ import annotations

import json
import secrets
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.servers.nginx import Proxy, proxy
from tests.servers.object_store import REGION, Buckets, ObjectStore
from tests.streams.kafka import secured
from tests.streams.kafka.secured import Secured

USER = "harvest-index"
"""The user of OpenSearch."""
PARTITIONS = 2
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

    @property
    def environment(self) -> dict[str, str]:
        """The settings as environment variables."""
        return {
            f"HARVEST_{section}_{name}".replace(".", "_").upper(): ",".join(value) if isinstance(value, list) else str(value)
            for section, settings in self.sections.items()
            for name, value in settings.items()
        }

    @property
    def toml(self) -> str:
        """The settings as a `harvest.toml`."""
        lines = (
            [f"[{section}]", *(f"{name} = {json.dumps(value)}" for name, value in settings.items())]
            for section, settings in self.sections.items()
        )
        return "".join(f"{line}\n" for section in lines for line in section)


@contextmanager
def running(folder: Path, opensearch: str, store: ObjectStore) -> Iterator[OperatorsCluster]:
    """Run Kafka and nginx, with files in `folder`, for a running OpenSearch and S3 server. Raises ServerError, ToolError."""
    password = secrets.token_urlsafe(20)
    words = {"kafka": secured.PASSWORD, "index": password, "blobs": store.writer.secret}
    files = {name: folder / f"{name}.secret" for name in words}
    for name, word in words.items():
        files[name].write_text(f"{word}\n", "utf-8")
        files[name].chmod(0o600)
    for name in ("kafka", "nginx"):
        (folder / name).mkdir()
    buckets = Buckets(store)
    with secured.running(folder / "kafka") as kafka:
        certificate = kafka.authority.sign("search")
        with proxy(folder / "nginx", opensearch, {USER: password}, certificate) as search:
            bucket = buckets.make()
            found = OperatorsCluster(kafka, search, store, buckets, bucket, tuple(words.values()), {})
            found = found._replace(sections=_sections(found, files))
            yield found
            buckets.close()
            _delete(opensearch, str(found.sections["index"]["name"]))


def _sections(cluster: OperatorsCluster, files: Mapping[str, Path]) -> Mapping[str, Mapping[str, Value]]:
    kafka, search, store = cluster.kafka, cluster.search, cluster.store
    login = {"user": secured.USER, "password_file": str(files["kafka"])}
    return {
        "kafka": {"brokers": [kafka.login], "prefix": secured.PREFIX, "partitions": PARTITIONS},
        "kafka.security": {"protocol": "SASL_SSL", "mechanism": "SCRAM-SHA-512", **login, "ca": kafka.ca},
        "index": {
            "url": search.url,
            "name": f"t{uuid.uuid4().hex[:10]}",
            "user": USER,
            "password_file": str(files["index"]),
            "ca": kafka.ca,
        },
        "blobs": {
            "url": f"s3://{cluster.bucket}/bodies",
            "endpoint": store.tls_url,
            "region": REGION,
            "access_key": store.writer.access,
            "secret_key_file": str(files["blobs"]),
            "ca": store.ca,
        },
    }


def _delete(opensearch: str, name: str) -> None:
    """Delete the indexes whose names begin with `name`."""
    from opensearchpy import OpenSearch

    with OpenSearch(opensearch, timeout=60) as client:
        client.indices.delete(index=f"{name}*", ignore_unavailable=True)
