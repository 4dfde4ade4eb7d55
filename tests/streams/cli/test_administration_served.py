"""The administration page of `harvest run --serve`, by the real commands: what is asked for on it is gathered."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

pytestmark = pytest.mark.slow(30)

TOKEN = "correct-horse-battery-staple"
PATIENCE = 120.0
"""Seconds that a test waits for something before it fails."""


class Served:
    """A running service; `lines`: what it has written."""

    def __init__(self, url: str, lines: list[str]) -> None:
        self.url, self.lines = url, lines

    def ask(self, path: str, **form: str) -> tuple[int, str]:
        """Send a request with the token, as a form if there are fields; return status and text."""
        data = urlencode(form).encode() if form else None
        asked = urllib.request.Request(f"{self.url}{path}", data, {"Authorization": f"Bearer {TOKEN}"})
        try:
            with urllib.request.urlopen(asked, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def total(self, query: str) -> int:
        """Return the number of summaries that a query finds; -1 while there is no index."""
        status, text = self.ask(f"api/search?q={quote(query)}")
        return int(json.loads(text)["total"]) if status == 200 else -1


def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition is true."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


@contextmanager
def running(harvest: Any, *command: str) -> Iterator[Served]:
    """Run a command that serves the page with a token on a free port, until the end of the block."""
    with subprocess.Popen(
        [*harvest.program, *command, "--port", "0"], stderr=subprocess.PIPE, text=True, cwd=harvest.folder,
        env={**os.environ, "HARVEST_SERVE_ADMIN_TOKEN": TOKEN},
    ) as process:  # fmt: skip
        lines: list[str] = []
        assert process.stderr is not None
        reader = threading.Thread(target=lines.extend, args=(process.stderr,))
        reader.start()
        try:
            until(lambda: any("search at " in line for line in lines) or process.poll() is not None)
            (url,) = re.findall(r"search at (http://\S+/)", "".join(lines))
            yield Served(url, lines)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)
            reader.join()


def test_root_of_the_page_is_gathered_by_the_run(harvest: Any, tree: Path) -> None:
    """A root that is added on the page of a run is gathered by it, and removed again; who asked for it is in the run's log."""
    with running(harvest, "run", "--serve") as served:
        assert served.ask("admin/roots/add", root=str(tree)) == (200, f"{tree} is added: the active run visits it\n")
        until(lambda: served.total("Ishmael") == 1)
        assert tree.as_uri() in served.ask("admin/roots")[1]
        status, text = served.ask("admin/roots/pause", root=str(tree))
        assert (status, "in use by another run of harvest" in text) == (409, True)
        assert served.ask("admin/roots/remove", root=str(tree))[0] == 200
        until(lambda: served.total("Ishmael") == 0)
        assert "None yet." in served.ask("admin/roots")[1]
        until(lambda: sum("administration: " in line for line in served.lines) == 3)
    assert f" 127.0.0.1 roots add root='{tree}': done: " in "".join(served.lines)
    assert TOKEN not in "".join(served.lines)


def test_index_is_rebuilt_from_the_page(harvest: Any, tree: Path) -> None:
    """`harvest serve` rebuilds an index by a process with the same file of settings; the page says how it ended."""
    (harvest.folder / "other.toml").write_text('data = "elsewhere"\n')
    harvest("gather", tree, "--config", "other.toml", "--quiet")
    before = harvest.folder / "elsewhere" / "index" / "main"
    made = before.stat().st_ino
    with running(harvest, "serve", "--config", "other.toml") as served:
        assert served.ask("admin/brokers/rebuild", broker="main")[0] == 200
        until(lambda: "3 summaries indexed" in served.ask("admin/brokers")[1])
        assert served.total("Ishmael") == 1
    assert before.stat().st_ino != made
