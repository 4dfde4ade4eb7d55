"""Helpers for the tests of `harvest replay`: they write topics of a data folder and read indexes in folders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from typer.testing import Result

from processors.broker.definition import MAIN
from processors.identity import oid
from schemas.codec import encode
from schemas.ports import Logged
from schemas.query import Every
from schemas.records import Removed, Summary
from sinks.index.tantivy.index import TantivyIndex
from streams.logs import StoreLog
from streams.store import Store
from streams.store.data_folder import index_folder
from streams.topology.flow import TopologySettings, topology

Change = Summary | Removed
DATA = Path("harvest-data")
PARTITIONS = 2


def summary(number: int, published: int = 1, *, by: str = "a", of: str = "", **more: Any) -> Summary:
    """Build a numbered summary of the Gatherer `by`; `of` replaces the Gatherer's name in the computation of the OID."""
    url = f"http://example.org/{by}/{number}"
    about: dict[str, Any] = {"oid": oid(of or by, url), "url": url, "object_url": url, "gatherer": by, "time": 1, "type": "Text"}
    return Summary(**{**about, "version": published, "published": published, "attributes": {"title": (f"v{published}",)}, **more})


def removal(of: Summary, published: int, time: int = 1) -> Removed:
    """Build the removal of a summary."""
    about: dict[str, Any] = {"oid": of.oid, "url": of.url, "object_url": of.object_url, "version": published, "time": time}
    return Removed(**about, reason="gone", published=published)


def write(changes: Iterable[Change | bytes], time: int = 1_000, topic: str = "broker.main") -> None:
    """Append to a topic of the data folder, created if it is missing. Bytes are a damaged record with the first change's key."""
    with Store(DATA, {each.name: PARTITIONS for each in topology(TopologySettings()).topics}) as store:
        given = list(changes)
        key = next(change.oid for change in given if not isinstance(change, bytes)).encode()
        pairs = [(key, each) if isinstance(each, bytes) else (each.oid.encode(), encode(each)) for each in given]
        StoreLog(store).write(Logged(topic, -1, -1, time, key, value) for key, value in pairs)


def last(result: Result) -> str:
    """The last line on standard error: on a busy machine progress lines precede it."""
    return str(result.stderr.splitlines()[-1])


def held(folder: Path = DATA) -> dict[str, str]:
    """URL and title of every summary in an index, copies included."""
    with closing(TantivyIndex(index_folder(folder, MAIN), writable=False)) as index:
        return {hit.url: hit.title for hit in index.search(Every(), limit=1_000, copies=True).hits}


def offsets(folder: Path = DATA) -> Mapping[int, int]:
    """The offsets that are stored in an index."""
    with closing(TantivyIndex(index_folder(folder, MAIN), writable=False)) as index:
        return index.offsets()


def apply(changes: Sequence[Change]) -> None:
    """Apply changes to the current index, without offsets."""
    with closing(TantivyIndex(index_folder(DATA, MAIN), heap=15_000_000)) as index:
        index.apply(changes, {})


def titles(changes: Iterable[Summary]) -> dict[str, str]:
    """What `held` returns for an index of these summaries."""
    return {each.url: str(each.attributes["title"][0]) for each in changes}
