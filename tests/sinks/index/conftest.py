"""Summaries and indexes for the tests of this folder.

OpenSearch is started only for tests that use it: tests of another engine start no server.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from hashlib import blake2s
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from processors.identity import oid
from schemas.ports import BrokerIndex
from schemas.records import Removed, Summary
from sinks.index.opensearch.index import OpenSearchIndex
from sinks.index.tantivy.index import TantivyIndex

if TYPE_CHECKING:
    from opensearchpy import OpenSearch

Open = Callable[[Path], BrokerIndex]


class WithRecords(TantivyIndex):
    """A tantivy index with the records that were put into it, as a data folder has them beside its index."""

    folders: Mapping[Path, dict[str, Summary | Removed]] = defaultdict(dict)

    def __init__(self, path: Path, **more: Any) -> None:
        kept = self._kept = self.folders[path]
        super().__init__(path, records=lambda oids: {oid: kept[oid] for oid in oids if oid in kept}, **more)

    def add(self, changes: Sequence[Summary | Removed]) -> None:
        super().add(changes)
        for change in changes:
            if change.oid not in self._kept or self._kept[change.oid].published <= change.published:
                self._kept[change.oid] = change


def tantivy(request: pytest.FixtureRequest) -> Iterator[Open]:
    """Open tantivy indexes in folders."""
    yield lambda folder: WithRecords(folder / "index", heap=15_000_000)


def opensearch(request: pytest.FixtureRequest) -> Iterator[Open]:
    """Open indexes on a real OpenSearch node, named after their folders; they are deleted after the test."""
    url = request.getfixturevalue("opensearch")
    client = request.getfixturevalue("search_client")
    prefix = f"t{uuid.uuid4().hex[:10]}"
    yield lambda folder: OpenSearchIndex(url, f"{prefix}-{blake2s(bytes(folder), digest_size=8).hexdigest()}")
    client.indices.delete(index=f"{prefix}-*", ignore_unavailable=True)


ENGINES: dict[str, Callable[[pytest.FixtureRequest], Iterator[Open]]] = {"tantivy": tantivy, "opensearch": opensearch}
"""How to open each engine on its own folder; opening it again gives the index that exists there."""


@pytest.fixture(params=sorted(ENGINES))
def engine(request: pytest.FixtureRequest) -> Iterator[Open]:
    """Function that opens the engine's index in a folder."""
    yield from ENGINES[request.param](request)


@pytest.fixture
def opened(engine: Callable[[Path], BrokerIndex], tmp_path: Path) -> Callable[[], BrokerIndex]:
    """Function that opens, or opens again, the engine's index of this test."""
    return lambda: engine(tmp_path)


@pytest.fixture
def index(opened: Callable[[], BrokerIndex]) -> Iterator[BrokerIndex]:
    """A new, empty index."""
    with closing(opened()) as made:
        yield made


@pytest.fixture
def summary() -> Callable[..., Summary]:
    """Function that returns a summary of a URL.

    Attributes are keywords (`_` for `-`) or in `attributes`, as a value or a tuple of values.
    """

    def make(url: str, *, published: int = 1, attributes: dict[str, Any] | None = None, **more: Any) -> Summary:
        fields = {name: more.pop(name) for name in list(more) if name in Summary.__struct_fields__}
        given = {name.replace("_", "-"): value for name, value in more.items()} | (attributes or {})
        values = {name: value if isinstance(value, tuple) else (value,) for name, value in given.items()}
        base = {"oid": oid("here", url), "url": url, "object_url": url.partition("#")[0], "gatherer": "here"}
        made = {"version": published, "time": 1, "type": "Text", "content_type": "text/plain"}
        return Summary(**{**base, **made, **fields}, published=published, attributes=values)

    return make


@pytest.fixture
def removed() -> Callable[..., Removed]:
    """Function that returns the Removed record of a URL."""

    def make(url: str, *, published: int, time: int = 1) -> Removed:
        about: dict[str, Any] = {"oid": oid("here", url), "url": url, "object_url": url.partition("#")[0]}
        return Removed(**about, version=published, time=time, reason="gone", published=published)

    return make


@pytest.fixture
def name(request: pytest.FixtureRequest, search_client: OpenSearch) -> Iterator[str]:
    """The alias of the test's own index."""
    yield (made := f"t{uuid.uuid4().hex[:10]}")
    search_client.indices.delete(index=f"{made}*", ignore_unavailable=True)


@pytest.fixture
def open_index(opensearch: str, name: str) -> Callable[..., OpenSearchIndex]:
    """Function that opens the test's own index."""
    return lambda **more: OpenSearchIndex(opensearch, name, **more)
