"""The whole topology on a real Kafka while its workers are killed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.distributed.conftest import Broker
from tests.distributed.farm import RUN, Farm, Plan


@pytest.fixture
def farm(broker: Broker, root: Path, tmp_path: Path) -> Iterator[Farm]:
    """A small farm: two workers of each stage over some hundred objects."""
    farm = Farm(broker, root, tmp_path, Plan(partitions=4, workers=1, objects=300, rounds=2, every=2.0, kills=6, session=6.0))
    yield farm
    farm.close()


@pytest.mark.slow
@pytest.mark.timeout(900)  # a minute on two idle cores
def test_killed_workers_lose_nothing(farm: Farm) -> None:
    """With a worker killed every two seconds, summaries, Broker and copies end as a plain walk says, round after round."""
    report = farm.play()
    print(report)
    assert sum(report.killed.values()) >= 6
    assert set(report.killed) <= set(RUN)
