"""The whole topology on a cluster as operators have it, under every kind of failure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.streams.kafka.farm import RUN, Farm, Plan
from tests.streams.kafka.own import servers


@pytest.fixture
def farm(root: Path, tmp_path: Path) -> Iterator[Farm]:
    """A small farm: one worker of each stage, and a few hundred objects."""
    plan = Plan(partitions=4, workers=1, objects=300, rounds=2, every=2.0, kills=4, operators=True)
    with servers(operators=plan.operators) as found:
        farm = Farm(found, root, tmp_path, plan)
        yield farm
        farm.close()


@pytest.mark.slow(120)
@pytest.mark.timeout(900)  # a minute and a half on two idle cores
def test_faults_lose_no_records(farm: Farm) -> None:
    """After kills, restarts, joins, leaves and undecodable records, everything equals a plain walk; so after compaction."""
    report = farm.play()
    print(report)
    once = dict.fromkeys(("poison", "restart_broker", "restart_search", "join", "leave"), 1)
    assert report.faults == {"kill": 8, "restart_objects": 2, **once}
    assert set(report.killed) <= set(RUN)
    for topic in report.repeats:
        assert topic.repeated <= topic.most, topic
    for before, after in report.compacted.values():
        assert after < before
    assert farm.bodies()
    assert farm.leaks() == []
