"""Both runners."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conformance.runners import EmbeddedRunner, KafkaRunner, Runner
from tests.servers.operators_cluster import OperatorsCluster
from tests.streams.kafka.conftest import _patient

__all__ = ["_patient"]

Start = Callable[[str], Runner]


@pytest.fixture(scope="session")
def on_servers(
    operators_cluster: OperatorsCluster, opensearch: str, root: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KafkaRunner]:
    """The runner on Kafka; tests read only what is below their own folders and sites."""
    runner = KafkaRunner(operators_cluster, opensearch, root, tmp_path_factory.mktemp("kafka"))
    yield runner
    runner.close()


@pytest.fixture(scope="module")
def runners(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Start:
    """A function that returns a running runner by its name: the embedded one has a data folder for each module."""
    embedded = EmbeddedRunner(tmp_path_factory.mktemp("embedded") / "data")

    def running(name: str) -> Runner:
        if name == "embedded":
            return embedded
        found: KafkaRunner = request.getfixturevalue("on_servers")
        found.start()
        return found

    return running
