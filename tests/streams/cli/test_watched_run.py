"""`harvest run` notices changes in local roots, and takes times of the settings that were changed since."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.samples.site_server import Site

PATIENCE = 240.0
"""Seconds that a test waits for a hit before it fails."""


@contextmanager
def running(harvest: Any, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run the service; it is killed at the end."""
    process: subprocess.Popen[bytes] = harvest.start("run", *arguments)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def until(condition: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    """Wait until a condition is true while the process runs."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.1)


def found(harvest: Any, word: str, *names: str) -> Callable[[], bool]:
    """Return a condition: a word leads to the files of these names, and to no others."""
    return lambda: sorted(Path(hit["url"]).name for hit in harvest.lines("search", word)) == sorted(names)


@pytest.mark.slow(40)
@pytest.mark.parametrize("method", ["events", "poll"])
def test_service_finds_what_is_written_moved_and_removed(
    harvest: Any, tree: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """A file that is written, changed, moved and removed below a root is found, found anew and gone, on both kinds of watching."""
    monkeypatch.setenv("HARVEST_WATCH_METHOD", method)
    harvest("gather", tree, "--quiet")
    with running(harvest) as process:
        (tree / "new.txt").write_text("a capybara\n")
        until(found(harvest, "capybara", "new.txt"), process)
        (tree / "new.txt").write_text("a dormouse\n")
        until(found(harvest, "dormouse", "new.txt"), process)
        until(found(harvest, "capybara"), process)
        (tree / "new.txt").rename(tree / "notes" / "moved.txt")
        until(found(harvest, "dormouse", "moved.txt"), process)
        (tree / "deep" / "er").mkdir(parents=True)
        (tree / "deep" / "er" / "e.txt").write_text("an echidna\n")
        until(found(harvest, "echidna", "e.txt"), process)
        (tree / "notes" / "moved.txt").unlink()
        (tree / "deep" / "er" / "e.txt").unlink()
        until(found(harvest, "dormouse"), process)
        until(found(harvest, "echidna"), process)


@pytest.mark.slow(30)
def test_no_change_is_lost_to_a_kill(harvest: Any, tree: Path) -> None:
    """What changes just before the service is killed, and while none runs, is found by the next one."""
    harvest("gather", tree, "--quiet")
    (tree / "old.txt").write_text("a badger\n")
    with running(harvest) as process:
        until(found(harvest, "badger", "old.txt"), process)
        (tree / "last.txt").write_text("a capybara\n")
        process.send_signal(signal.SIGKILL)
        process.wait()
    (tree / "old.txt").unlink()
    (tree / "page.html").write_text("<title>Dormouse</title>")
    with running(harvest) as process:
        until(found(harvest, "capybara", "last.txt"), process)
        until(found(harvest, "dormouse", "page.html"), process)
        until(found(harvest, "badger"), process)


@pytest.mark.slow(20)
def test_root_added_beside_the_service_is_watched(harvest: Any, tree: Path) -> None:
    """A root that is added while the service runs is gathered, and its changes are noticed."""
    harvest("gather", tree / "notes", "--quiet")
    with running(harvest) as process:
        harvest("roots", "add", tree)
        until(found(harvest, "whale", "page.html"), process)
        (tree / "new.txt").write_text("a capybara\n")
        until(found(harvest, "capybara", "new.txt"), process)


@pytest.mark.slow(10)
def test_root_that_is_to_be_gathered_is_visited_once(harvest: Any, tree: Path) -> None:
    """A root that was added before the service starts is gathered once: watching it causes no second visit."""
    harvest("roots", "add", tree)
    with running(harvest) as process:
        line = next(line for line in iter(process.stderr.readline, b"") if b"idle, watching 1 root" in line)  # type: ignore[union-attr]
        assert line.startswith(b"harvest: idle, watching 1 root")
        harvest("search", "whale")
    assert sum(line["value"]["kind"] == "seeded" for line in harvest.lines("cat", "crawl")) == 1


@pytest.mark.slow(10)
def test_service_without_roots_says_how_to_add_one(harvest: Any, tree: Path) -> None:
    """A service that knows no root names the command that adds one, which it then gathers."""
    with running(harvest) as process:
        line = next(line for line in iter(process.stderr.readline, b"") if b"no root is known" in line)  # type: ignore[union-attr]
        assert b"harvest roots add" in line
        harvest("roots", "add", tree)
        until(found(harvest, "whale", "page.html"), process)


@pytest.mark.slow(20)
def test_service_names_removals_in_doubt(harvest: Any, tree: Path) -> None:
    """A root that becomes empty is named with the command that accepts this beside the service, which then removes it."""
    (tree / "notes" / "copy.txt").unlink()
    harvest("gather", tree / "notes", "--quiet")
    with running(harvest) as process:
        (tree / "notes" / "a.txt").unlink()
        line = next(line for line in iter(process.stderr.readline, b"") if b"removal in doubt" in line)  # type: ignore[union-attr]
        assert b"harvest roots add --accept-removals file://" in line
        assert found(harvest, "Ishmael", "a.txt")()
        harvest("roots", "add", "--accept-removals", tree / "notes")
        until(found(harvest, "Ishmael"), process)


@pytest.mark.slow(20)
def test_service_takes_the_refresh_of_the_settings(harvest: Any, tree: Path, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """`roots.refresh` changed later holds for the roots that a service knows, local ones and others."""
    harvest("gather", tree, site.url, "--pause", "0", "--allow", "127.0.0.0/8", "--quiet")
    monkeypatch.setenv("HARVEST_ROOTS_REFRESH", "4321")
    with running(harvest, "--pause", "0", "--allow", "127.0.0.0/8") as process:
        until(lambda: [root["refresh"] for root in harvest.lines("roots", "list")] == [4321, 4321], process)


def test_gather_takes_the_refresh_of_the_settings(harvest: Any, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`roots.refresh` changed later holds from a `gather` without a ROOT on, but for a root with a refresh of its own."""
    (tree.parent / "roots.toml").write_text('[[root]]\nurl = "tree/notes"\nrefresh = "7d"\n')
    harvest("roots", "apply", tree.parent / "roots.toml")
    harvest("gather", tree, "--quiet")
    monkeypatch.setenv("HARVEST_ROOTS_REFRESH", "4321")
    harvest("gather", "--quiet")
    assert {root["url"][-6:]: root["refresh"] for root in harvest.lines("roots", "list")} == {"/tree/": 4321, "notes/": 7 * 86_400}
