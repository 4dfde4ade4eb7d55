"""A gateway on Kafka and a collector of its stream, while the feed lacks a part of its topic."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from schemas.codec import decode
from schemas.records import CrawlEvent, Record, Summary
from streams.operations.feed import feed_file, open_feed
from streams.sandbox.seal import die_with
from streams.store import Store
from tests.sinks.feed.conftest import made
from tests.streams.kafka.conftest import Broker
from tests.streams.kafka.feeds import PARTITIONS, FeedWorld, titles, until


@contextmanager
def program(*words: str, **settings: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command beside the test, and stop it at the end."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("HARVEST_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "streams.cli", *words],
        env={**plain, **{f"HARVEST_{name}": value for name, value in settings.items()}},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        preexec_fn=partial(die_with, os.getpid()),  # noqa: PLW1509 - the call that it makes is safe
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def address(gateway: subprocess.Popen[bytes]) -> str:
    """Return the URL of a gateway that was started."""
    assert gateway.stderr is not None
    line = next(text for raw in gateway.stderr if (text := raw.decode()).startswith("harvest: search at"))
    return line.split()[3].rstrip("/;")


def records(folder: Path, topic: str) -> Iterator[tuple[bytes, Record | None]]:
    """Yield the keys and records of a topic of a collector."""
    with Store(folder, readonly=True) as store:
        for number, end in enumerate(store.ends(topic)):
            for logged in store.read(topic, number, 0, end) if end else ():
                yield logged.key, decode(logged.value) if logged.value is not None else None


def collected(folder: Path) -> dict[str, str]:
    """Return the locations and titles of the summaries that a collector has."""
    latest = dict(records(folder, "summaries"))
    return {one.location: str(one.attributes["title"][0]) for one in latest.values() if isinstance(one, Summary)}


def is_refused(folder: Path) -> bool:
    """Return whether a collector has got a 503."""
    return any(isinstance(one, CrawlEvent) and one.status == 503 for _, one in records(folder, "crawl"))


@pytest.mark.slow(40)
def test_collector_of_a_partial_feed_keeps_everything(broker: Broker, tmp_path: Path) -> None:
    """While a feed is filled anew, the gateway answers 503, and a collector that comes keeps all that it has, and comes back."""
    world = FeedWorld(broker)
    world.send("a", "b", partition=0)
    world.send("c", partition=1)
    source, collector = tmp_path / "source", tmp_path / "collector"
    options = ("--data", str(collector), "--gatherer", "us", "--allow", "127.0.0.0/8", "--pause", "0", "--quiet")
    kafka = {"KAFKA_BROKERS": world.cluster.brokers, "KAFKA_PREFIX": world.cluster.prefix}
    with program("serve", "--port", "0", "--data", str(source), **kafka) as gateway:
        url = address(gateway)
        with world.worker(source):
            until(lambda: titles(source) is not None)
            with program("collect", url, *options) as first:
                assert first.wait(120) == 0
        everything = collected(collector)
        assert sorted(everything.values()) == ["a", "b", "c"]
        for path in feed_file(source).parent.iterdir():
            path.unlink()
        fill_half(source)
        with pytest.raises(HTTPError) as refused:
            urlopen(f"{url}/gatherer/soif/")
        assert (refused.value.code, refused.value.headers["Retry-After"]) == (503, "5")
        assert b"partition 1 at 0 of 1" in refused.value.read()
        world.send("d", partition=1)
        with program("collect", url, *options) as second:
            until(lambda: is_refused(collector))
            assert collected(collector) == everything
            with world.worker(source):
                until(lambda: titles(source) is not None)
                assert second.wait(120) == 0
    assert sorted(collected(collector).values()) == ["a", "b", "c", "d"]


def fill_half(source: Path) -> None:
    """Fill a new feed from one of two partitions, as a worker does that is then killed."""
    with closing(open_feed(source, "g")) as feed:
        feed.expect(PARTITIONS, {0: 2, 1: 1})
        feed.apply([made("a"), made("b")], {0: 2})
        feed.mark_whole({0: 2})
