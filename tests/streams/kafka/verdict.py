"""Compares the topics, the index and the dead letters of a distributed run with the oracle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import cast

from processors.query import parse, predicate
from schemas.codec import DecodeError, decode
from schemas.query import Every
from schemas.records import Record, Rejected, Removed, Summary
from sinks.index.opensearch.index import OpenSearchIndex
from streams.kafka.client.cluster import Cluster
from streams.kafka.client.log import KafkaLog
from streams.operations.dead_letters import standing
from streams.topology.flow import TopologySettings, topology
from tests.faults.check import ALONE, same
from tests.faults.harness import GATHERER
from tests.faults.oracle import Oracle
from tests.streams.kafka.flows import HEADERS, JUNK
from tests.streams.kafka.standing import TOPOLOGY, inputs

QUERIES = ("badan", "kefel OR logor", "type:text number", "url:*twice*", "migor -nuhin")
WHOLE = 1_000_000


def latest(records: Iterable[Record]) -> dict[str, Summary]:
    """The final state of a topic of summaries, by URL, to a consumer that heeds versions and publish counters."""
    last: dict[str, Summary | Removed] = {}
    for record in records:
        one = cast("Summary | Removed", record)
        if one.oid not in last or (one.version, one.published) >= (last[one.oid].version, last[one.oid].published):
            last[one.oid] = one
    return {one.url: one for one in last.values() if isinstance(one, Summary)}


def anew(cluster: Cluster, topic: str) -> list[Record]:
    """All records of a topic, read from the beginning, without the undecodable ones."""
    found = []
    with KafkaLog(cluster, topology(TopologySettings())) as log:
        for partition in range(log.topics()[topic]):
            for logged in log.read(topic, partition, 0, 1 << 40):
                try:
                    found.append(decode(logged.value or b""))
                except DecodeError:
                    assert logged.value == JUNK
    return found


def archives(oracle: Oracle, summaries: Mapping[str, Summary], broker: Mapping[str, Summary]) -> None:
    """Check that summaries, the Broker's archive and the roles equal the content of the tree."""
    things, roles = oracle.things(), oracle.roles(GATHERER)
    bytes_of = {url: ("", -1) if t.md5 == "" else (t.md5, t.size) for url, t in things.items()}
    for name, held in (("summaries", summaries), ("broker.main", broker)):
        told = {url: ("", -1) if bytes_of.get(url) == ("", -1) else (s.md5, s.size) for url, s in held.items()}
        same(name, told, bytes_of)
    told_roles = {url: (s.copy_of, s.copies, s.copies_count) for url, s in broker.items()}
    same("roles", told_roles, {url: roles.get(url, ALONE) for url in things})


def indexed(url: str, alias: str, broker: Mapping[str, Summary]) -> None:
    """Check that the index has each whole summary of the archive, and that its hits are those that the predicate accepts."""
    with closing(OpenSearchIndex(url, alias, writable=False)) as index:
        index.refresh()
        oids = list(index.scroll(Every()))
        assert oids == sorted(one.oid for one in broker.values())
        records = [index.record(oid) for oid in oids]
        same("index", {one.url: one for one in records if isinstance(one, Summary)}, broker)
        hits = index.search(Every(), WHOLE, copies=True).hits
        same("hits", {h.url: (h.copies, h.copies_count) for h in hits}, {u: (s.copies, s.copies_count) for u, s in broker.items()})
        for text in QUERIES:
            query = parse(text)
            accepts = predicate(query)
            wanted = {one.url for one in broker.values() if accepts(one)}
            same(text, dict.fromkeys(h.url for h in index.search(query, WHOLE, copies=True).hits), dict.fromkeys(wanted))


def rejections(cluster: Cluster, oracle: Oracle, summaries: Mapping[str, Summary]) -> None:
    """Check that the current rejections, and the summaries with a reason, are those of the oracle."""
    with KafkaLog(cluster, topology(TopologySettings())) as log:
        told = {(one.url, one.path) for one in standing(log) if one.url}
    rejected = oracle.rejected()
    same("rejected", dict.fromkeys(told), dict.fromkeys(rejected))
    unrecognized = {(s.object_url, s.path) for s in summaries.values() if "reason" in s.attributes}
    assert unrecognized == {split for split in rejected if split[1] or split[0] not in oracle.refused}


def letters(records: Iterable[tuple[Record, Iterable[object]]], junked: set[tuple[str, int, int]]) -> None:
    """Check that each reader of an undecodable record made a dead letter with bytes, headers and place, and nobody else did."""
    told = set()
    for one, headers in records:
        if isinstance(one, Rejected) and one.reason.startswith("not a record"):
            assert (one.key, one.value, list(headers)) == (b"key", JUNK, HEADERS), one
            told.add((one.topic, one.partition, one.offset, one.stage.partition(".")[0]))
    readers = {(topic.name, stage.name.partition(".")[0]) for stage in TOPOLOGY.stages for topic in inputs(stage)}
    assert told == {(*place, stage) for place in junked for topic, stage in readers if topic == place[0]}
    assert {topic for topic, *_ in told} == {topic for topic, _ in readers}
