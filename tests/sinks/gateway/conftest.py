"""A gateway over an index of some summaries, asked without a socket."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from schemas.ports import BrokerIndex
from sinks.gateway.app import application
from sinks.gateway.options import GatewayOptions
from tests.sinks.gateway.admin_double import AdministrationDouble
from tests.sinks.gateway.doubles import SUMMARIES, BrokersDouble, CollectionDouble, Made


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """The index of SUMMARIES."""
    return Made(tmp_path_factory.mktemp("gateway") / "index", SUMMARIES)


@pytest.fixture
def collection() -> CollectionDouble:
    """The Gatherer's side."""
    return CollectionDouble()


@pytest.fixture
def administration() -> AdministrationDouble:
    """What the administration page acts on."""
    return AdministrationDouble()


@pytest.fixture
def brokers(made: Made) -> BrokersDouble:
    """All Brokers of the gateway."""
    return BrokersDouble(made)


Client = Callable[..., TestClient]


@pytest.fixture
def client(
    made: Made, collection: CollectionDouble, administration: AdministrationDouble, brokers: BrokersDouble
) -> Iterator[Client]:
    """Makes clients of gateways with the given options; requests of each come from 127.0.0.1.

    A token opens the administration page, too, unless that has one of its own.
    """
    clients: list[TestClient] = []

    def make(open_index: Callable[[], BrokerIndex] = made.open, base_url: str = "http://localhost", **options: Any) -> TestClient:
        options = {"rate": 0.0, "admin_token": options.get("token", "")} | options
        app = application(GatewayOptions(**options), open_index, collection, brokers, administration)
        found = TestClient(app, base_url=base_url, client=("127.0.0.1", 50_000), raise_server_exceptions=False)
        clients.append(found)
        found.__enter__()
        return found

    yield make
    for each in clients:
        each.__exit__(None, None, None)
