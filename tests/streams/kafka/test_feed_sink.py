"""The feed sink on Kafka: the same consumer as that of an index, which fills the feed from `summaries`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, cast

from confluent_kafka import KafkaException
from msgspec.structs import replace

from processors.broker.definition import Broker as Definition
from schemas.codec import decode, encode
from schemas.records import Rejected, Removed, Summary
from sinks.feed.partitions import lack
from sinks.feed.reader import FeedReader
from streams.kafka.client.cluster import Cluster
from streams.kafka.sink.index_sink import IndexSink, sink_options
from streams.operations.feed import feed_file, open_feed
from streams.topology.flow import FEED, TopologySettings, topology
from tests.sinks.feed.conftest import Stream, gone, made
from tests.streams.kafka.conftest import Broker
from tests.streams.kafka.feeds import until
from tests.streams.kafka.threads import beside

STAGE: Any = topology(TopologySettings(feed=True)).stage(FEED)
PARTITIONS = 2


def test_feed_ahead_of_its_topic_is_filled_again(broker: Broker, tmp_path: Path) -> None:
    """A feed of a topic that was made anew is emptied, as in a data folder; the worker does not end."""
    cluster = Cluster(broker.address, f"{broker.topics.prefix}-")
    topic = broker.topics.make("summaries", 1)
    broker.topics.make("rejected", 1)
    one = made("a")
    broker.append(topic, [(one.oid.encode(), encode(one))])
    with closing(open_feed(tmp_path, "g")) as feed:
        feed.apply([made("old")], {0: 99})
        sink = IndexSink(cluster, "main", feed, stage=STAGE, session=120.0, **sink_options(remote=False))
        with beside(lambda stop: sink.run(stop.is_set)), closing(FeedReader(feed_file(tmp_path))) as reader:
            for _ in range(600):
                if reader.offsets() == {0: 1}:
                    break
                time.sleep(0.05)
            assert Stream(reader.complete()).titles == ["a"]


def test_stream_of_a_broker_follows_its_archive(broker: Broker, tmp_path: Path) -> None:
    """A worker of `stream.NAME` fills a feed of its own from the archive of a Broker, in the order of its counters."""
    defined = Definition("pages", stream=True)
    stage: Any = topology(TopologySettings(brokers=(Definition(), defined))).stage("stream.pages")
    cluster = Cluster(broker.address, f"{broker.topics.prefix}-")
    topic = broker.topics.make("broker.pages", PARTITIONS)
    broker.topics.make("rejected", 1)
    sent: list[Summary | Removed] = [made("a"), made("b"), gone("a", 1), made("c", copy_of="0" * 64), made("a"), gone("b", 1)]
    records = [replace(one, published=number) for number, one in enumerate(sent, 1)]
    broker.append(topic, [(one.oid.encode(), encode(one)) for one in records])
    with closing(open_feed(tmp_path, "g", broker="pages")) as feed:
        sink = IndexSink(cluster, "stream.pages", feed, stage=stage, session=120.0, **sink_options(remote=False))
        with beside(lambda stop: sink.run(stop.is_set)), closing(FeedReader(feed_file(tmp_path, "pages"))) as reader:
            until(lambda: not lack(reader.positions()))
            stream = Stream(reader.complete())
    assert stream.titles == ["a", "c"]
    assert {one.copy_of for one in stream.live.values()} == {""}


def test_feed_follows_summaries(broker: Broker, tmp_path: Path) -> None:
    """A worker fills the feed, continues where the feed is after a restart, and rejects what SOIF cannot express."""
    cluster = Cluster(broker.address, f"{broker.topics.prefix}-")
    topic, rejected = broker.topics.make("summaries", PARTITIONS), broker.topics.make("rejected", 1)

    def send(records: Sequence[Summary | Removed]) -> None:
        broker.append(topic, [(one.oid.encode(), encode(one)) for one in records])

    def follow() -> None:
        """Run a worker until its group has committed all records."""
        with closing(open_feed(tmp_path, "g")) as feed:
            sink = IndexSink(cluster, "main", feed, stage=STAGE, session=120.0, **sink_options(remote=False))
            with beside(lambda stop: sink.run(stop.is_set)):
                while lag():
                    time.sleep(0.05)

    def lag() -> int:
        try:
            return broker.lag(cluster.group(FEED), topic, PARTITIONS)
        except KafkaException:
            return 1  # the group has no coordinator yet

    send([made(str(number)) for number in range(50)])
    follow()
    send([gone("7", 2), made("8", 2, title="eight"), replace(made("bad"), url="http://a\nb"), made("50")])
    follow()
    with closing(FeedReader(feed_file(tmp_path))) as reader:
        expected = {str(number) for number in range(51)} - {"7", "8"} | {"eight"}
        assert Stream(reader.complete()).titles == sorted(expected)
        assert sum(reader.offsets().values()) == 54
    (letter,) = [cast("Rejected", decode(value or b"")) for _, value in broker.read(rejected, 1)]
    assert (letter.stage, letter.reason) == (FEED, "refused by the feed")
