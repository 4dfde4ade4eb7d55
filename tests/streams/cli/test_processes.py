"""The program as a process: signals, closed pipes, two at once, full disks, data folders that it must not touch."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from streams.embedded import runs
from streams.store import Store
from tests.samples.site_server import Site
from tests.streams.cli.terminals import on_terminal

pytestmark = pytest.mark.slow

SLOW = ("--pause", "0.4", "--allow", "127.0.0.0/8")
FAST = ("--pause", "0", "--allow", "127.0.0.0/8")
PATIENCE = 240.0
"""Seconds after which a process that does not come so far is a failure."""


def until(condition: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    """Wait for something that a process does."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.01)


def halfway(harvest: Any, site: Site) -> subprocess.Popen[bytes]:
    """A run that has asked the site for three things and has two answers; it waits for the third until the site goes on."""
    site.hold(2)
    process: subprocess.Popen[bytes] = harvest.start("gather", site.url, *SLOW)
    until(lambda: len(site.asked) >= 3, process)
    return process


def stopped(process: subprocess.Popen[bytes], number: signal.Signals) -> tuple[int, str]:
    """Send a signal; gives the exit code and what went to standard error."""
    process.send_signal(number)
    _, err = process.communicate(timeout=PATIENCE)
    return process.returncode, err.decode()


def run_is_finished(folder: Path) -> bool:
    """Whether the last run of a data folder came to its end."""
    with Store(folder, readonly=True) as store:
        last = runs.last(store)
    return last is not None and last.finished


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_and_continued(harvest: Any, site: Site, number: signal.Signals) -> None:
    """A run that is interrupted says so, exit code 130; the next goes on, asks for no page twice, and ends as one run."""
    process = halfway(harvest, site)
    code, err = stopped(process, number)
    assert (code, err.splitlines()[-1]) == (130, "harvest: stopped; run again to go on")
    site.go_on()
    asked = list(site.asked)
    result = harvest("gather", site.url, *FAST)
    assert "going on with the run that was interrupted" in result.stderr
    again = [path for path in site.asked[len(asked) :] if path in asked[:-1] and path != "/robots.txt"]
    assert not again
    site.asked.clear()
    (table,) = harvest.lines("gather", site.url, *FAST)
    assert table["nothing_changed"]
    assert len(site.asked) > len(asked)


def test_killed_and_continued(harvest: Any, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that was killed leaves nothing that the next one trips over."""
    monkeypatch.setenv("HARVEST_FAULT", "turn.catalog:3:kill")
    process = harvest.start("gather", tree)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == -signal.SIGKILL
    monkeypatch.delenv("HARVEST_FAULT")
    harvest("gather", tree)
    assert len(harvest.lines("search", "*", "--copies")) == 3
    (table,) = harvest.lines("gather", tree)
    assert table["nothing_changed"]


@pytest.mark.parametrize("point", ["log.commit", "log.write", "blob.write"])
def test_full_disk(harvest: Any, tree: Path, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    """A full disk is one clear line and exit code 1, and the next run goes on."""
    (tree / "large.txt").write_text("A whale of a file.\n" * 10_000)
    monkeypatch.setenv("HARVEST_FAULT", f"{point}:{1 if point == 'blob.write' else 5}:enospc")
    # A run that takes long tells its progress, unless it is to be quiet.
    process = harvest.start("gather", tree, "--quiet")
    _, err = process.communicate(timeout=PATIENCE)
    (line,) = err.decode().splitlines()
    assert (process.returncode, line.partition(": ")[0]) == (1, "harvest")
    assert "No space left on device" in line
    monkeypatch.delenv("HARVEST_FAULT")
    harvest("gather", tree)
    assert len(harvest.lines("search", "*", "--copies")) == 4


def test_a_second_runner(harvest: Any, tree: Path, site: Site) -> None:
    """A second runner on a data folder is one line and exit code 1; what only reads or appends runs beside the first."""
    harvest("gather", tree)
    process = halfway(harvest, site)
    result = harvest("gather", tree, code=1)
    assert result.stderr == f"harvest: harvest-data: in use by another run of harvest (process {process.pid})\n"
    assert len(harvest.lines("search", "Ishmael")) == 1
    assert "applies it" in harvest("annotate", tree / "page.html", "keywords=leviathan").stderr
    harvest("topics", "list")
    assert harvest("index", "rebuild", code=1).stderr.count("\n") == 1
    assert stopped(process, signal.SIGINT)[0] == 130
    site.go_on()
    harvest("gather", tree)
    assert len(harvest.lines("search", "leviathan")) == 1


def test_a_newer_data_folder(harvest: Any, tree: Path, tmp_path: Path) -> None:
    """A data folder of a newer version, or of another program, is one line and exit code 1, and stays as it is."""
    harvest("gather", tree)
    store = tmp_path / "harvest-data" / "store.sqlite"
    connection = apsw.Connection(str(store))
    connection.execute("PRAGMA user_version=99")
    connection.close()
    for command in (("gather", tree), ("show", "x"), ("roots", "list")):
        result = harvest(*command, code=1)
        assert result.stderr.startswith("harvest: harvest-data: written by a newer version of harvest")
        assert result.stderr.count("\n") == 1
    store.write_bytes(b"something else entirely" * 1000)
    assert harvest("gather", tree, code=1).stderr.count("\n") == 1


def test_a_data_folder_that_cannot_be_made(harvest: Any, tree: Path, tmp_path: Path) -> None:
    """A data folder in the place of a file is one line and exit code 1."""
    (tmp_path / "file").write_text("")
    assert harvest("gather", tree, "--data", "file", code=1).stderr.count("\n") == 1


def test_a_reader_that_has_enough(harvest: Any, tree: Path) -> None:
    """Whoever closes the pipe early ends the program without a word."""
    harvest("gather", tree)
    for command in (("cat", "crawl", "--json"), ("search", "*", "--json")):
        reading, writing = os.pipe()
        os.close(reading)
        process = subprocess.Popen([*harvest.program, *command], stdout=writing, stderr=subprocess.PIPE, cwd=harvest.folder)
        os.close(writing)
        _, err = process.communicate(timeout=PATIENCE)
        assert (process.returncode, err.replace(b"3 found\n", b"").replace(b"2 found\n", b"")) == (1, b"")


def test_a_reader_that_has_enough_of_summaries(harvest: Any, tree: Path) -> None:
    """Whoever closes the pipe ends `summarize` without a word too, with files still being parsed."""
    for number in range(20):
        (tree / f"{number}.txt").write_text(f"Chapter {number}\n")
    reading, writing = os.pipe()
    os.close(reading)
    command = [*harvest.program, "summarize", tree, "--jobs", "2"]
    process = subprocess.Popen(command, stdout=writing, stderr=subprocess.PIPE, cwd=harvest.folder, bufsize=0)
    os.close(writing)
    _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (1, b"")


AT_IMPORT = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from streams.cli import main
class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            os.kill(os.getpid(), signal.SIGINT)
module = sys.argv.pop(1)
assert module not in sys.modules
sys.meta_path.insert(0, Interrupts())
main()
"""
"""The program, interrupted when it imports a module for the first time."""


@pytest.mark.parametrize("module", ["typer", "streams.cli.gathering"])
def test_interrupted_while_it_begins(harvest: Any, module: str) -> None:
    """Ctrl-C during the first imports, or those of a command, is exit code 130 without a traceback."""
    command = [harvest.program[0], "-c", AT_IMPORT, module, "gather", "nothing"]
    done = subprocess.run(command, capture_output=True, cwd=harvest.folder, check=False, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (130, b"")


AT_EXIT = """
import atexit, os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))
from streams.cli import main
main()
"""
"""The program, interrupted when it has done all."""


def test_interrupted_while_it_ends(harvest: Any) -> None:
    """Ctrl-C while Python ends is exit code 130 without a traceback too."""
    command = [harvest.program[0], "-c", AT_EXIT, "--version"]
    done = subprocess.run(command, capture_output=True, cwd=harvest.folder, check=False, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (130, b"")


def test_an_output_that_is_full(harvest: Any, tree: Path) -> None:
    """Standard output that cannot be written is one line and exit code 1."""
    harvest("gather", tree)
    with Path("/dev/full").open("wb") as full:
        result = subprocess.run([*harvest.program, "cat", "crawl"], stdout=full, stderr=subprocess.PIPE, check=False)
    assert (result.returncode, result.stderr) == (1, b"harvest: No space left on device\n")
    with Path("/dev/full").open("wb") as full:
        result = subprocess.run([*harvest.program, "cat", "--help"], stdout=full, stderr=subprocess.PIPE, check=False)
    assert (result.returncode, result.stderr) == (1, b"harvest: No space left on device\n")


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_a_standard_stream_that_is_closed(closed: str, harvest: Any, tree: Path) -> None:
    """A closed stream is as good as one to nowhere: no file gets its number, and what was asked for is done."""
    commands = (("gather", str(tree)), ("search", "*"), ("cat", "crawl"), ("index", "rebuild"), ("doctor",), ("--help",))
    for command in commands:
        line = ["sh", "-c", f'exec "$@" {closed}', "sh", *harvest.program, *command]
        done = subprocess.run(line, capture_output=True, cwd=harvest.folder, check=False, timeout=PATIENCE)
        assert (done.returncode, b"Traceback" in done.stderr) == (0, False), (command, done.stderr)
    assert len(harvest.lines("search", "*", "--copies")) == 3


def test_run_as_a_service(harvest: Any, tree: Path) -> None:
    """The service gathers a root that is added beside it, and ends cleanly at SIGTERM."""
    process = harvest.start("run")
    until((harvest.folder / "harvest-data" / "index" / "main" / "meta.json").is_file, process)
    harvest("roots", "add", tree)
    until(lambda: len(harvest.lines("search", "*", "--copies")) == 3, process)
    harvest("roots", "remove", tree)
    until(lambda: not harvest.lines("search", "*", "--copies"), process)
    code, err = stopped(process, signal.SIGTERM)
    assert (code, err.splitlines()[-1]) == (0, "harvest: stopped")
    assert not harvest.lines("roots", "list")


def test_a_root_removed_behind_a_service(harvest: Any, tree: Path) -> None:
    """A root that is removed when the service was stopped takes what it had along at once, and `gather` has nothing to do."""
    process = harvest.start("run")
    until((harvest.folder / "harvest-data" / "index" / "main" / "meta.json").is_file, process)
    harvest("roots", "add", tree)
    until(lambda: len(harvest.lines("search", "*", "--copies")) == 3, process)
    assert stopped(process, signal.SIGTERM)[0] == 0
    assert "next run" not in harvest("roots", "remove", tree).stderr
    assert not harvest.lines("search", "*", "--copies")
    assert "no ROOT given, and none known" in harvest("gather", code=2).stderr


def test_a_root_removed_while_others_wait(harvest: Any, tree: Path, site: Site) -> None:
    """A run that was interrupted goes on first; where none of its roots is left, the removal waits for nobody."""
    harvest("gather", tree)
    process = halfway(harvest, site)
    assert stopped(process, signal.SIGINT)[0] == 130
    assert "harvest: the change is stored; the next run applies it" in harvest("roots", "remove", tree).stderr
    assert len(harvest.lines("search", "*", "--copies")) >= 3
    assert "next run" not in harvest("roots", "remove", site.url).stderr
    assert not harvest.lines("search", "*", "--copies")
    site.go_on()
    (table,) = harvest.lines("gather", site.url, *FAST)
    assert table["added"]


def test_a_root_removed_beside_its_run(harvest: Any, site: Site) -> None:
    """A root that was removed while it was gathered is gathered anew when it is named again, though that run was interrupted."""
    process = halfway(harvest, site)
    assert "applies it" in harvest("roots", "remove", site.url).stderr
    assert stopped(process, signal.SIGINT)[0] == 130
    site.go_on()
    assert harvest.lines("gather", site.url, *FAST)[0]["added"]


def test_gather_without_a_root_settles_removals(harvest: Any, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the last roots were removed, and that was not applied, `gather` without a ROOT applies it and says so."""
    harvest("gather", tree)
    monkeypatch.setenv("HARVEST_FAULT", "turn.begin:1:kill")
    harvest.start("roots", "remove", tree).communicate(timeout=PATIENCE)
    monkeypatch.delenv("HARVEST_FAULT")
    assert len(harvest.lines("search", "*", "--copies")) == 3
    assert "harvest: no roots are left: all their objects are removed\n" in harvest("gather").stderr
    assert not harvest.lines("search", "*", "--copies")
    assert "no ROOT given, and none known" in harvest("gather", code=2).stderr


def test_plain_progress(harvest: Any, site: Site) -> None:
    """Where standard error is no terminal, nothing is drawn: lines only."""
    process = harvest.start("gather", site.url, *FAST)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert b"\x1b" not in err


def test_progress_on_a_terminal(harvest: Any, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal progress is drawn and the table follows; NO_COLOR takes the colours away."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    ours, theirs = os.openpty()
    process = subprocess.Popen([*harvest.program, "gather", tree], stderr=theirs, stdout=theirs, cwd=harvest.folder)
    os.close(theirs)
    seen = b""
    try:
        while piece := os.read(ours, 65536):
            seen += piece
    except OSError:  # how a terminal says that nobody writes to it any more
        os.close(ours)
    assert process.wait(PATIENCE) == 0
    assert b"summaries made" in seen
    assert b"\x1b[3" not in seen


def test_a_terminal_is_not_commanded(harvest: Any, tree: Path) -> None:
    """What a file says to a terminal is shown there, escaped; a pipe gets the bytes."""
    (tree / "notes" / "a.txt").write_bytes("Red \x1b[31m, \x9b31m, left \u202e: \u00e9t\u00e9.\n".encode())
    harvest("gather", tree)
    piped = subprocess.run([*harvest.program, "show", tree / "notes" / "a.txt"], capture_output=True, check=True).stdout
    assert "\x1b[31m, \x9b31m, left \u202e: \u00e9t\u00e9".encode() in piped
    for command in ("show", "summarize"):
        seen = on_terminal([*harvest.program, command, tree / "notes" / "a.txt"])
        assert "Red \\x1b[31m, \\x9b31m, left \\u202e: \u00e9t\u00e9." in seen.decode()
        assert seen.decode().replace("\r\n", "").replace("\t", "").isprintable()


def test_the_service_ends_an_interrupted_run(harvest: Any, site: Site) -> None:
    """A run that was interrupted and that the service went on with is not gone on with once more: the next one revalidates."""
    assert stopped(halfway(harvest, site), signal.SIGINT)[0] == 130
    site.go_on()
    process = harvest.start("run", *FAST)
    until(lambda: run_is_finished(harvest.folder / "harvest-data"), process)
    assert stopped(process, signal.SIGTERM)[0] == 0
    assert "going on" not in harvest("gather", site.url, *FAST).stderr


LOST = """
import sys, time, weakref
from streams.cli import repeat_lost_interrupts

repeat_lost_interrupts()


class Thing:
    pass


def swallowed(_):
    raise KeyboardInterrupt


thing = Thing()
kept = weakref.ref(thing, swallowed)
try:
    del thing
    time.sleep(60)
except KeyboardInterrupt:
    print("heard")
"""


def test_an_interruption_that_python_swallows(root: Path) -> None:
    """Ctrl-C in the callback of a weak reference, as imports have them, is an exception that nobody gets: it comes again."""
    done = subprocess.run([sys.executable, "-c", LOST], cwd=root, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert (done.returncode, done.stdout, done.stderr) == (0, "heard\n", "")
