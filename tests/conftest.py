"""What all tests share: the order that they run in, hypothesis without chance, and the servers.

Pure tests come first, so that a mistake in the contract or a processor is seen in seconds; what starts processes, opens
ports or takes long comes last.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.servers import sharing
from tests.servers.fixtures import index, kafka, narrow, opensearch, search_client, tika, topics

__all__ = ["index", "kafka", "narrow", "opensearch", "search_client", "tika", "topics"]

ROOT = Path(__file__).resolve().parent.parent
ORDER = ("schemas", "processors", "house", "sinks", "streams")
"""Folders of tests/ in the order in which they run; the others follow."""

# How long an example takes to be made tells of the machine, and of nothing else.
SLOWLY = [HealthCheck.too_slow]
settings.register_profile("harvest", derandomize=True, deadline=None, print_blob=True, database=None, suppress_health_check=SLOWLY)
settings.register_profile("quick", parent=settings.get_profile("harvest"), max_examples=15)
settings.load_profile("harvest")


def pytest_configure(config: pytest.Config) -> None:
    """Begin a session that servers are started for; workers of xdist belong to that of their controller."""
    if not hasattr(config, "workerinput"):
        sharing.begin()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the servers that were started, also after an interruption."""
    if not hasattr(config, "workerinput"):
        sharing.end()


def _rank(item: pytest.Item) -> tuple[bool, float, int]:
    folder = item.path.relative_to(ROOT / "tests").parts[0]
    slow = item.get_closest_marker("slow")
    seconds = slow.args[0] if slow and slow.args else 0
    return slow is not None, -seconds, ORDER.index(folder) if folder in ORDER else len(ORDER)


SERVERS = frozenset({"kafka", "narrow", "opensearch", "search_client", "tika", "topics"})
"""Fixtures that start a server; a parameter of such a name asks for one, too."""
LONG_ID = 100
"""Characters of a text in the name of a test, at most."""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark a test as one of servers where it asks for one by a fixture; others say so themselves."""
    parameters = getattr(item, "callspec", None)
    asked = {*getattr(item, "fixturenames", ()), *(str(value) for value in (parameters.params.values() if parameters else ()))}
    if SERVERS & asked:
        item.add_marker("servers")


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a long text by its length: the name of a test is in the environment of each process that the test starts."""
    return f"{argname} of {len(val)}" if isinstance(val, bytes | str) and len(val) > LONG_ID else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort the tests by `ORDER`, those marked slow behind all others, the longest first; the order inside a folder stays."""
    items.sort(key=_rank)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Refuse to run where xdist does not keep the tests of a group on one worker: they share a folder or a server."""
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
    """The folder of sample files of our own making."""
    return ROOT / "tests" / "samples"
