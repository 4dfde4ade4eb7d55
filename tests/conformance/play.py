"""Plays flows together: in each round the commands of all flows run, one wait serves all, and each flow gets its state."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from typing import Any, NamedTuple

from msgspec.structs import replace

from processors.broker.views import latest, queries
from processors.query import parse
from schemas.records import File, Record, Removed, Summary, View
from tests.conformance.ground import Flow, Found, Ground, Order
from tests.conformance.runners import BROKERS, OTHERS, STREAMED, Runner, obey, tell
from tests.sinks.feed.conftest import Stream
from tests.streams.kafka.flows import newest, said

WHOLE = 1_000_000
QUERIES = (
    *("*", "whale", "whale OR thistle", "whale -thistle", '"white whale"', "title:whale", "type:html"),
    *("url:*notes*", "keywords:leviathan"),
)
"""Queries of every kind, with words of the flows."""


class Played(NamedTuple):
    """The results of one flow on one runner."""

    found: list[Found]
    """The state after each round."""
    failed: list[BaseException]
    """The failed assertion or other exception that ended the flow, if any."""


def play(runner: Runner, flows: Mapping[str, Callable[[Ground], Flow]], grounds: Mapping[str, Ground]) -> dict[str, Played]:
    """Play all flows to their ends, or to their first error."""
    played = {name: Played([], []) for name in flows}
    for name in flows:
        grounds[name].clear()
    running = {name: flow(grounds[name]) for name, flow in flows.items()}
    orders = {name: next(flow) for name, flow in running.items()}
    while orders:
        for name in orders:
            grounds[name].date()
        for order in _together(orders.values()):
            obey(runner, order)
        runner.rest()
        for name, found in look(runner, {name: grounds[name] for name in orders}).items():
            played[name].found.append(found)
            del orders[name]
            if further := _next(running[name], found, played[name].failed):
                orders[name] = further
    return played


def _together(orders: Iterable[Order]) -> Iterable[Order]:
    """Combine orders that differ only in their roots into one command, since each command takes a while to start."""
    visits: dict[Order, tuple[str, ...]] = {}
    for order in orders:
        if order.roots:
            alike = order._replace(roots=())
            visits[alike] = visits.get(alike, ()) + order.roots
        else:
            yield order
    yield from (order._replace(roots=roots) for order, roots in visits.items())


def _next(flow: Flow, found: Found, failed: list[BaseException]) -> Order | None:
    try:
        return flow.send(found)
    except StopIteration:
        return None
    except Exception as error:  # noqa: BLE001 - the others are played on; the test of this one raises it
        failed.append(error)
        return None


def look(runner: Runner, grounds: Mapping[str, Ground]) -> dict[str, Found]:
    """The current state of each ground."""
    read = ("summaries", *(f"broker.{name}" for name in BROKERS))
    last = {topic: list(newest(runner.records(topic)).values()) for topic in read}
    files: dict[str, File] = {}
    for _, record in runner.records("files"):
        if isinstance(record, File) and (record.url not in files or record.version >= files[record.url].version):
            files[record.url] = record
    letters = [json.loads(line) for line in tell(runner, ["rejected", "list", "--json"]).splitlines()]
    roots = [json.loads(line) for line in tell(runner, ["roots", "list", "--json"]).splitlines()]
    streams = {name: _streamed(runner, name) for name in STREAMED}
    views = {name: _views(runner, name) for name in BROKERS}
    hits = _hits(runner, views)
    return {
        name: Found(
            _summaries(ground, last["summaries"]),
            _named(ground, ((r.url, r.reason) for r in last["summaries"] if isinstance(r, Removed))),
            _summaries(ground, last["broker.main"]),
            {other: _summaries(ground, last[f"broker.{other}"]) for other in OTHERS},
            {other: _summaries(ground, streamed) for other, streamed in streams.items()},
            {broker: {path: view.query for path, view in found.items()} for broker, found in views.items()},
            _named(ground, ((url, file.type) for url, file in files.items())),
            _named(ground, ((root["url"], root["state"]) for root in roots)),
            _named(ground, ((_member(one), f"{one['stage']}: {one['reason']}") for one in letters)),
            {query: _named(ground, ((hit.url, hit) for hit in all_hits)) for query, all_hits in hits.items()},
        )
        for name, ground in grounds.items()
    }


def _summaries(ground: Ground, records: Iterable[Record]) -> dict[str, Summary]:
    return _named(ground, ((record.url, said(record)) for record in records if isinstance(record, Summary)))


def _named(ground: Ground, found: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Select what belongs to a ground, by short name."""
    named = {ground.name(url): one for url, one in found}
    named.pop("", None)
    return named


def _member(letter: Mapping[str, str]) -> str:
    return f"{letter['url']}#{letter['path']}" if letter["path"] else letter["url"]


def _streamed(runner: Runner, broker: str) -> list[Summary]:
    """The summaries that a complete stream of a Broker sends."""
    with closing(runner.stream(broker)) as reader:
        reader.require_whole()
        return list(Stream(reader.complete()).live.values())


def without_roles(summary: Summary) -> Summary:
    """A summary as a stream sends it."""
    return replace(summary, copy_of="", copies=(), copies_count=0, views=())


def _views(runner: Runner, broker: str) -> dict[str, View]:
    return latest(record for _, record in runner.records(f"views.{broker}") if isinstance(record, View))


def _hits(runner: Runner, views: Mapping[str, Mapping[str, View]]) -> dict[str, list[Any]]:
    """All hits of each query and view, copies included; "canonical": those without copies; the name of a Broker: all of its own."""
    found = defaultdict(list)
    with closing(runner.index()) as index:
        for text in QUERIES:
            hits = index.search(query := parse(text), WHOLE, copies=True).hits
            assert sorted(hit.oid for hit in hits) == list(index.scroll(query))
            found[text] = [hit._replace(score=0.0) for hit in hits]
        found["canonical"] = [hit._replace(score=0.0) for hit in index.search(parse("*"), WHOLE).hits]
    for broker in OTHERS:
        with closing(runner.index(broker)) as index:
            found[broker] = [hit._replace(score=0.0) for hit in index.search(parse("*"), WHOLE, copies=True).hits]
    for broker, defined in views.items():
        with closing(runner.index(broker)) as index:
            for path, query in queries(defined).items():
                found[f"{broker}/{path}"] = [hit._replace(score=0.0) for hit in index.search(query, WHOLE, copies=True).hits]
    return found
