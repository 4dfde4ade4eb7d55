"""Fixtures for stores in a folder of the test's own, and for programs that run beside them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from streams.store import Store

Open = Callable[..., Store]
Run = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The path of a data folder that does not exist yet."""
    return tmp_path / "data"


@pytest.fixture
def opened(folder: Path) -> Iterator[Open]:
    """A function that opens stores on the folder, with topics `crawl` (4 partitions) and `summaries` (1)."""
    with ExitStack() as stack:

        def opening(**options: Any) -> Store:
            topics = None if options.get("readonly") else {"crawl": 4, "summaries": 1}
            return stack.enter_context(Store(folder, topics, **options))

        yield opening


@pytest.fixture
def store(opened: Open) -> Store:
    """A store opened by the runner."""
    return opened(runner=True)


@pytest.fixture
def program(folder: Path) -> Iterator[Run]:
    """A function that starts a Python program with the data folder as its first argument; the programs end with the test."""
    running: list[subprocess.Popen[str]] = []

    def start(code: str, *arguments: str, fault: str = "") -> subprocess.Popen[str]:
        command = [sys.executable, "-c", code, str(folder), *arguments]
        environment = {**os.environ, "HARVEST_FAULT": fault}
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True, env=environment))
        return running[-1]

    yield start
    for process in running:
        process.kill()
        process.communicate()
