from __future__ import annotations

from collections.abc import Iterator

import pytest

from processors.essence import summarize
from tests.parity.readings import Tika


@pytest.fixture(scope="session")
def client(tika: str) -> Iterator[Tika]:
    """A client of the tika-server."""
    summarize.preload()
    with Tika(tika) as client:
        yield client
