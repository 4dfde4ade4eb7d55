"""A cluster as operators have it: Kafka with TLS, logins and ACLs, OpenSearch behind TLS and a login, bodies in object storage.

Nothing is shared between workers but these servers; each worker has a data folder of its own.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.servers.certificates import Authority
from tests.servers.object_store import REGION, Buckets, ObjectStore
from tests.servers.tls_proxy import TlsProxy, tls_proxy
from tests.streams.kafka.secured import PASSWORD, USER, Secured

SEARCH_USER = "searcher"


class Operators(NamedTuple):
    """The servers, and the files with what logs in to them."""

    kafka: Secured
    proxy: TlsProxy
    search: str
    """URL of the proxy in front of OpenSearch."""
    search_ca: str
    store: ObjectStore
    buckets: Buckets
    bucket: str
    folder: Path
    """Folder of the files with secrets."""
    passwords: Mapping[str, str]
    """Secrets, by the names of their files."""

    def config(self, prefix: str, index: str) -> Path:
        """Write a `harvest.toml` for topics with a prefix, and indexes whose names begin with another one; return its path."""
        sections: Mapping[str, Mapping[str, object]] = {
            "kafka": {"brokers": [self.kafka.login], "prefix": prefix},
            "kafka.security": {
                "protocol": "SASL_SSL",
                "user": USER,
                "password_file": str(self.folder / "kafka"),
                "ca": self.kafka.ca,
            },
            "index": {
                "url": self.search,
                "name": index,
                "user": SEARCH_USER,
                "password_file": str(self.folder / "search"),
                "ca": self.search_ca,
            },
            "blobs": {
                "url": f"s3://{self.bucket}/{index}",
                "endpoint": self.store.tls_url,
                "region": REGION,
                "access_key": self.store.writer.access,
                "secret_key_file": str(self.folder / "bodies"),
                "ca": self.store.ca,
                "timeout": 5,
            },
        }
        lines = [
            f"[{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())
            for name, keys in sections.items()
        ]
        path = self.folder / f"{index}.toml"
        path.write_text("\n".join(lines), "utf-8")
        return path

    def leaked(self, texts: Iterable[str]) -> list[str]:
        """The names of the secrets that some texts contain."""
        return [name for text in texts for name, secret in self.passwords.items() if secret in text]


@contextmanager
def operating(kafka: Secured, opensearch: str, store: ObjectStore, folder: Path) -> Iterator[Operators]:
    """Put a proxy in front of OpenSearch, make a bucket, and write the files with the secrets into a folder."""
    passwords = {"kafka": PASSWORD, "search": secrets.token_urlsafe(20), "bodies": store.writer.secret}
    for name, secret in passwords.items():
        (folder / name).write_text(f"{secret}\n", "utf-8")
    authority = Authority(folder, "search-ca")
    proxy, buckets = TlsProxy(opensearch, SEARCH_USER, passwords["search"]), Buckets(store)
    with ExitStack() as stack:
        stack.callback(buckets.close)
        url = stack.enter_context(tls_proxy(proxy, authority.sign("search")))
        yield Operators(kafka, proxy, url, str(authority.path), store, buckets, buckets.make(), folder, passwords)
