"""Comparison of a data folder with the oracle, and with another data folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from processors.broker.definition import MAIN
from schemas.codec import decode
from schemas.query import Every
from schemas.records import Removed, Summary
from sinks.index.tantivy.index import TantivyIndex
from streams.logs import StoreLog
from streams.operations.dead_letters import standing
from streams.store import Store
from streams.store.data_folder import index_folder
from tests.faults.harness import GATHERER
from tests.faults.oracle import Oracle, Role

ALONE: Role = ("", (), 0)
VARYING = {"version": 0, "time": 0, "attempt": "", "published": 0}
"""Fields that may differ between two runs."""


def latest(store: Store, topic: str, counter: str) -> dict[str, Summary]:
    """Return the latest summaries of a compacted topic, by URL.

    Asserts that the counter of each OID never decreases, and that `published` increases.
    """
    latest: dict[str, Summary | Removed] = {}
    dead = {(r.topic, r.partition, r.offset) for r in standing(StoreLog(store))}
    for partition in range(store.topics()[topic]):
        for logged in store.read(topic, partition, 0, 10_000_000):
            if (topic, partition, logged.offset) in dead:
                continue
            record = cast("Summary | Removed", decode(logged.value or b""))
            known = latest.get(record.oid)
            step = getattr(record, counter) - (getattr(known, counter) if known else 0)
            assert step > 0 or (step == 0 and counter == "version"), record.url
            latest[record.oid] = record
    return {r.url: r for r in latest.values() if isinstance(r, Summary)}


class Held:
    """The content of a data folder: summaries, Broker, index and dead letters."""

    def __init__(self, data: Path) -> None:
        with Store(data, readonly=True) as store:
            self.summaries = latest(store, "summaries", "version")
            self.broker = latest(store, "broker.main", "published")
            self.rejected = {(r.url, r.path) for r in standing(StoreLog(store)) if r.url}
            self.reasons = {(r.url, r.path): (r.stage, r.reason, r.detail) for r in standing(StoreLog(store))}
            self.ends = dict(enumerate(store.ends("broker.main")))
            self.unread = {(group, topic): lag for group in store.groups() for (topic, _), lag in store.lag(group).items() if lag}
        index = TantivyIndex(index_folder(data, MAIN), writable=False)
        try:
            self.offsets = dict(index.offsets())
            self.oids = list(index.scroll(Every()))
            self.hits = {hit.url: hit for hit in index.search(Every(), limit=1_000_000, copies=True).hits}
            self.firsts = {hit.url for hit in index.search(Every(), limit=1_000_000).hits}
        finally:
            index.close()


def same(name: str, found: Mapping[Any, Any], expected: Mapping[Any, Any]) -> None:
    """Assert that two mappings are equal; the message names a few differing keys."""
    differing = [k for k in {*found, *expected} if found.get(k, "nothing") != expected.get(k, "nothing")]
    told = [(k, found.get(k, "nothing"), expected.get(k, "nothing")) for k in sorted(differing)[:8]]
    assert not differing, f"{name}: {len(differing)} differ: {told}"


def check(data: Path, oracle: Oracle) -> Held:
    """Assert that summaries, Broker, index and rejections are as the oracle says; return the content of the folder."""
    held, things, roles = Held(data), oracle.things(), oracle.roles(GATHERER)
    bytes_of = {url: ("", -1) if t.md5 == "" else (t.md5, t.size) for url, t in things.items()}
    for name, kept in (("summaries", held.summaries), ("broker.main", held.broker)):
        same(name, {u: ("", -1) if bytes_of.get(u) == ("", -1) else (s.md5, s.size) for u, s in kept.items()}, bytes_of)
    roles = {url: roles.get(url, ALONE) for url in things}
    same("roles", {u: (s.copy_of, s.copies, s.copies_count) for u, s in held.broker.items()}, roles)
    assert held.oids == sorted(s.oid for s in held.broker.values())
    same("index", {u: (h.oid, h.copies, h.copies_count) for u, h in held.hits.items()}, _hits(held.broker))
    assert held.firsts == {u for u, (copy_of, _, _) in roles.items() if not copy_of}
    assert held.offsets == {p: end for p, end in held.ends.items() if end or p in held.offsets}
    rejected = oracle.rejected()
    same("rejected", dict.fromkeys(held.rejected, True), dict.fromkeys(rejected, True))
    unrecognized = {(s.object_url, s.path) for s in held.summaries.values() if "reason" in s.attributes}
    assert unrecognized == {split for split in rejected if split[1] or split[0] not in oracle.refused}
    assert not {key: lag for key, lag in held.unread.items() if key[0] != "index"}
    return held


def _hits(broker: Mapping[str, Summary]) -> dict[str, tuple[str, tuple[str, ...], int]]:
    return {u: (s.oid, s.copies, s.copies_count) for u, s in broker.items()}


def alike(one: Held, other: Held) -> None:
    """Assert that two folders have the same content, except versions, counters, times and offsets."""
    for name in ("summaries", "broker"):
        same(name, *({u: msgspec.structs.replace(s, **VARYING) for u, s in getattr(h, name).items()} for h in (one, other)))
    same("reasons", one.reasons, other.reasons)
