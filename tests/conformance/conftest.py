"""Both runners, each started once for all flows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conformance.runners import EmbeddedRunner, KafkaRunner, Runner
from tests.streams.kafka.conftest import _patient

__all__ = ["_patient"]

Start = Callable[[str], Runner]


@pytest.fixture(scope="module")
def runners(request: pytest.FixtureRequest, root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """A function that starts a runner by its name, once."""
    started: dict[str, Runner] = {}

    def start(name: str) -> Runner:
        if name not in started:
            folder = tmp_path_factory.mktemp(name)
            started[name] = EmbeddedRunner(folder / "data") if name == "embedded" else on_servers(folder)
        return started[name]

    def on_servers(folder: Path) -> Runner:
        return KafkaRunner(request.getfixturevalue("operators_cluster"), request.getfixturevalue("opensearch"), root, folder)

    yield start
    for runner in started.values():
        runner.close()
