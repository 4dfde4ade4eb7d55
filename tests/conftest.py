"""Shared configuration of all tests: their order, deterministic hypothesis profiles, and the server fixtures.

Pure tests run first, so that a mistake in the contract or in a processor shows within seconds; tests that start processes,
open ports or take long run last.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.deploy import glimpse as programs
from tests.servers import sharing
from tests.servers.fixtures import (
    buckets,
    index,
    kafka,
    narrow,
    object_store,
    opensearch,
    operators_cluster,
    search_client,
    shared_forkservers,
    tika,
    topics,
)

__all__ = [
    "buckets",
    "index",
    "kafka",
    "narrow",
    "object_store",
    "opensearch",
    "operators_cluster",
    "search_client",
    "shared_forkservers",
    "tika",
    "topics",
]

ROOT = Path(__file__).resolve().parent.parent
ORDER = ("schemas", "processors", "house", "sinks", "streams")
"""Folders of tests/ in the order in which they run; all other folders follow."""

# The time that hypothesis needs to build an example depends on the machine only, so it is no failure.
SLOWLY = [HealthCheck.too_slow]
settings.register_profile("harvest", derandomize=True, deadline=None, print_blob=True, database=None, suppress_health_check=SLOWLY)
settings.register_profile("quick", parent=settings.get_profile("harvest"), max_examples=15)
settings.load_profile("harvest")


def pytest_configure(config: pytest.Config) -> None:
    """Keep compiled modules, and begin a server session in the controlling process, which its xdist workers join.

    Without compiled modules each of some hundred processes compiles the program again, and each worker all tests.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    if not hasattr(config, "workerinput"):
        sharing.begin()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the servers of the session, also after an interruption."""
    if not hasattr(config, "workerinput"):
        sharing.end()


def _rank(item: pytest.Item) -> tuple[bool, float, int]:
    folder = item.path.relative_to(ROOT / "tests").parts[0]
    slow = item.get_closest_marker("slow")
    seconds = slow.args[0] if slow and slow.args else 0
    return slow is not None, -seconds, ORDER.index(folder) if folder in ORDER else len(ORDER)


SERVERS = frozenset(
    {"buckets", "glimpse", "kafka", "narrow", "object_store", "opensearch", "operators_cluster", "search_client", "tika", "topics"}
)
"""Fixtures that start a server, or need the programs of Glimpse; a test parameter with one of these names counts as well."""
LONG_ID = 100
"""Characters of a text in the name of a test, at most."""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark a test as `servers` if it requests a server fixture; other tests that need servers carry the marker explicitly."""
    parameters = getattr(item, "callspec", None)
    asked = {*getattr(item, "fixturenames", ()), *(str(value) for value in (parameters.params.values() if parameters else ()))}
    if SERVERS & asked:
        item.add_marker("servers")


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a long text by its length: the name of a test is in the environment of each process that the test starts."""
    return f"{argname} of {len(val)}" if isinstance(val, bytes | str) and len(val) > LONG_ID else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort tests by `ORDER`; tests marked slow come last, the longest first. The order inside a folder is kept."""
    items.sort(key=_rank)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Raise UsageError if xdist does not keep the tests of a group on one worker: they share a folder or a server."""
    if not session.config.getoption("loadgroup", default=False):
        return
    for item in session.items:
        if item.get_closest_marker("xdist_group") and "@" not in item.nodeid:
            raise pytest.UsageError(f"{item.nodeid}: this pytest and this pytest-xdist do not keep groups of tests together")


@pytest.fixture(scope="session")
def root() -> Path:
    """The folder that holds pyproject.toml."""
    return ROOT


@pytest.fixture(scope="session")
def samples() -> Path:
    """The folder of the project's own sample files."""
    return ROOT / "tests" / "samples"


@pytest.fixture(scope="session")
def glimpse() -> Path:
    """The folder of the programs of Glimpse: agrep, glimpse, glimpseindex. They are installed if make has not done so."""
    programs.install()
    return programs.HOME
