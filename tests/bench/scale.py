"""Sizes of the measurements: those of `make bench`, and small ones, by which a test shows that each group runs."""

from __future__ import annotations

from typing import NamedTuple


class Size(NamedTuple):
    """Sizes of the measurements."""

    quick: bool
    rounds: int
    light: int
    heavy: int
    """`light`, `heavy`: objects of the two trees."""
    records: int
    documents: int
    """`records` of the log, `documents` of the index."""
    streamed: int
    """Documents that go through Kafka into OpenSearch."""
    streams: int
    """Rounds of streaming them."""
    shared: int
    shared_heavy: int
    """`shared`, `shared_heavy`: objects of the two trees that workers process."""
    messages: int
    rows: int
    """`messages` of an agent, `rows` of a table."""
    unpacked: int
    """Unpacked bytes of the large archive."""
    searched: int
    searched_remotely: int
    """Summaries that queries search: in tantivy and glimpse, in OpenSearch."""
    searches: int
    """Different searches of the gateway."""
    hosts: int
    watched: int
    """Hosts of a crawl, and the seconds for which it is watched before and after a kill."""
    found: int
    """URLs of the frontier."""
    refreshed: int
    """Pages whose refreshing is simulated."""
    gathered: int
    """Most documents of each collection of `size`."""
    pages: int
    """Pages of the web sites of `pages`, over all hosts."""
    site: int
    collections: int
    """Files of the site of `gatherer`, and requests of its stream for each average."""


FULL = Size(
    quick=False,
    rounds=3,
    light=16_000,
    heavy=2_000,
    records=40_000,
    documents=6_000,
    streamed=16_000,
    streams=5,
    shared=4_000,
    shared_heavy=2_000,
    messages=40_000,
    rows=1_000_000,
    unpacked=10_000_000_000,
    searched=100_000,
    searched_remotely=10_000,
    searches=60,
    refreshed=4_000,
    gathered=3_000,
    pages=2_000,
    site=2_300,
    collections=100,
    hosts=1_000,
    watched=60,
    found=1_000_000,
)
QUICK = Size(
    quick=True,
    rounds=1,
    light=150,
    heavy=12,
    records=4_000,
    documents=300,
    streamed=300,
    streams=1,
    shared=60,
    shared_heavy=0,
    messages=500,
    rows=500,
    unpacked=20_000_000,
    searched=300,
    searched_remotely=0,
    searches=4,
    refreshed=100,
    gathered=90,
    pages=50,
    site=100,
    collections=10,
    hosts=20,
    watched=2,
    found=10_000,
)
