"""The whole topology on a real Kafka and a real OpenSearch, under every kind of failure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.streams.kafka.farm import RUN, Farm, Plan
from tests.streams.kafka.own import servers


@pytest.fixture
def farm(root: Path, tmp_path: Path) -> Iterator[Farm]:
    """A small farm: one worker of each stage, and a few hundred objects."""
    with servers() as (kafka, search):
        farm = Farm(kafka, search, root, tmp_path, Plan(partitions=4, workers=1, objects=300, rounds=2, every=2.0, kills=4))
        yield farm
        farm.close()


@pytest.mark.slow(90)
@pytest.mark.timeout(900)  # a minute and a half on two idle cores
def test_faults_lose_no_records(farm: Farm) -> None:
    """After kills, restarts, joins, leaves and undecodable records, everything equals a plain walk; so after compaction."""
    report = farm.play()
    print(report)
    assert report.faults == {"kill": 8, "poison": 1, "restart_broker": 1, "restart_search": 1, "join": 1, "leave": 1}
    assert set(report.killed) <= set(RUN)
    for topic in report.repeats:
        assert topic.repeated <= topic.most, topic
    for before, after in report.compacted.values():
        assert after < before
