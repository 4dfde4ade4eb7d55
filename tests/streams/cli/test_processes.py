"""The program as a process: signals, closed pipes, concurrent runs, full disks, foreign data folders."""

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
"""Seconds that a test waits for a process before it fails."""


def until(condition: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    """Wait until a condition is true while the process runs."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.01)


def halfway(harvest: Any, site: Site) -> subprocess.Popen[bytes]:
    """Start a run with two answers from the site; it waits for the third until `site.go_on` is called."""
    site.hold(2)
    process: subprocess.Popen[bytes] = harvest.start("gather", site.url, *SLOW)
    until(lambda: len(site.asked) >= 3, process)
    return process


def stopped(process: subprocess.Popen[bytes], number: signal.Signals) -> tuple[int, str]:
    """Send a signal; return the exit code and the standard error."""
    process.send_signal(number)
    _, err = process.communicate(timeout=PATIENCE)
    return process.returncode, err.decode()


def run_is_finished(folder: Path) -> bool:
    """Whether the last run of a data folder is finished."""
    with Store(folder, readonly=True) as store:
        last = runs.last(store)
    return last is not None and last.finished


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_run_is_continued(harvest: Any, site: Site, number: signal.Signals) -> None:
    """An interrupted run says so, exit code 130; the next continues it, fetches no page twice, and ends as one run."""
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


def test_killed_run_is_completed_by_the_next(harvest: Any, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next run after a killed one completes its work."""
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
def test_full_disk_is_an_error_and_next_run_continues(
    harvest: Any, tree: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """A full disk is an error of one line, exit code 1, and the next run continues."""
    (tree / "large.txt").write_text("A whale of a file.\n" * 10_000)
    monkeypatch.setenv("HARVEST_FAULT", f"{point}:{1 if point == 'blob.write' else 5}:enospc")
    # With --quiet, since a long run reports its progress.
    process = harvest.start("gather", tree, "--quiet")
    _, err = process.communicate(timeout=PATIENCE)
    (line,) = err.decode().splitlines()
    assert (process.returncode, line.partition(": ")[0]) == (1, "harvest")
    assert "No space left on device" in line
    monkeypatch.delenv("HARVEST_FAULT")
    harvest("gather", tree)
    assert len(harvest.lines("search", "*", "--copies")) == 4


def test_second_runner_is_refused(harvest: Any, tree: Path, site: Site) -> None:
    """A second runner on a data folder is an error of one line, exit code 1; reads and appends work beside the first."""
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


def test_newer_or_foreign_data_folder_is_not_changed(harvest: Any, tree: Path, tmp_path: Path) -> None:
    """A data folder of a newer version or another program is an error of one line, exit code 1, and is not changed."""
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


def test_file_in_place_of_data_folder_is_an_error(harvest: Any, tree: Path, tmp_path: Path) -> None:
    """A file in place of the data folder is an error of one line, exit code 1."""
    (tmp_path / "file").write_text("")
    assert harvest("gather", tree, "--data", "file", code=1).stderr.count("\n") == 1


def test_closed_pipe_ends_the_program_silently(harvest: Any, tree: Path) -> None:
    """If the reader closes the pipe early, the program ends without a message."""
    harvest("gather", tree)
    for command in (("cat", "crawl", "--json"), ("search", "*", "--json")):
        reading, writing = os.pipe()
        os.close(reading)
        process = subprocess.Popen([*harvest.program, *command], stdout=writing, stderr=subprocess.PIPE, cwd=harvest.folder)
        os.close(writing)
        _, err = process.communicate(timeout=PATIENCE)
        assert (process.returncode, err.replace(b"3 found\n", b"").replace(b"2 found\n", b"")) == (1, b"")


def test_closed_pipe_ends_summarize_silently(harvest: Any, tree: Path) -> None:
    """If the reader closes the pipe, `summarize` ends without a message too, while files are still being parsed."""
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
"""Runs the program, which gets SIGINT when it first imports the module given as argument."""


@pytest.mark.parametrize("module", ["typer", "streams.cli.gathering"])
def test_interrupt_during_imports_exits_with_130(harvest: Any, module: str) -> None:
    """Ctrl-C during the first imports, or the imports of a command, gives exit code 130 without a traceback."""
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
"""Runs the program, which gets SIGINT when it exits."""


def test_interrupt_at_exit_exits_with_130(harvest: Any) -> None:
    """Ctrl-C while Python exits gives exit code 130 without a traceback."""
    command = [harvest.program[0], "-c", AT_EXIT, "--version"]
    done = subprocess.run(command, capture_output=True, cwd=harvest.folder, check=False, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (130, b"")


def test_unwritable_standard_output_is_an_error_of_one_line(harvest: Any, tree: Path) -> None:
    """A write error on standard output is an error of one line, exit code 1."""
    harvest("gather", tree)
    with Path("/dev/full").open("wb") as full:
        result = subprocess.run([*harvest.program, "cat", "crawl"], stdout=full, stderr=subprocess.PIPE, check=False)
    assert (result.returncode, result.stderr) == (1, b"harvest: No space left on device\n")
    with Path("/dev/full").open("wb") as full:
        result = subprocess.run([*harvest.program, "cat", "--help"], stdout=full, stderr=subprocess.PIPE, check=False)
    assert (result.returncode, result.stderr) == (1, b"harvest: No space left on device\n")


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_closed_standard_stream_acts_as_dev_null(closed: str, harvest: Any, tree: Path) -> None:
    """A closed standard stream acts as /dev/null: no other file gets its descriptor, and the command succeeds.

    All commands run with all three closed; with one, those that start processes, open an index or import next to nothing.
    """
    commands = [("gather", str(tree)), ("search", "*"), ("--help",)]
    if closed.count("&-") == 3:
        commands[2:2] = [("cat", "crawl"), ("index", "rebuild"), ("doctor",)]
    for command in commands:
        line = ["sh", "-c", f'exec "$@" {closed}', "sh", *harvest.program, *command]
        done = subprocess.run(line, capture_output=True, cwd=harvest.folder, check=False, timeout=PATIENCE)
        assert (done.returncode, b"Traceback" in done.stderr) == (0, False), (command, done.stderr)
    assert len(harvest.lines("search", "*", "--copies")) == 3


def test_service_gathers_added_root_and_ends_at_sigterm(harvest: Any, tree: Path) -> None:
    """The service gathers a root that is added while it runs, and ends with exit code 0 at SIGTERM."""
    process = harvest.start("run")
    until((harvest.folder / "harvest-data" / "index" / "main" / "meta.json").is_file, process)
    harvest("roots", "add", tree)
    until(lambda: len(harvest.lines("search", "*", "--copies")) == 3, process)
    harvest("roots", "remove", tree)
    until(lambda: not harvest.lines("search", "*", "--copies"), process)
    code, err = stopped(process, signal.SIGTERM)
    assert (code, err.splitlines()[-1]) == (0, "harvest: stopped")
    assert not harvest.lines("roots", "list")


def test_root_removed_after_the_service_stopped_is_removed_at_once(harvest: Any, tree: Path) -> None:
    """`roots remove` after the service has stopped removes the objects of the root at once, and nothing is left to gather."""
    process = harvest.start("run")
    until((harvest.folder / "harvest-data" / "index" / "main" / "meta.json").is_file, process)
    harvest("roots", "add", tree)
    until(lambda: len(harvest.lines("search", "*", "--copies")) == 3, process)
    assert stopped(process, signal.SIGTERM)[0] == 0
    assert "next run" not in harvest("roots", "remove", tree).stderr
    assert not harvest.lines("search", "*", "--copies")
    assert "no ROOT given, and none known" in harvest("gather", code=2).stderr


def test_removal_waits_for_an_interrupted_run(harvest: Any, tree: Path, site: Site) -> None:
    """An interrupted run takes precedence over a removal; once its last root is removed, the removal is applied at once."""
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


def test_root_removed_during_its_run_is_gathered_again(harvest: Any, site: Site) -> None:
    """A root that was removed while it was gathered is gathered anew when it is given again, though that run was interrupted."""
    process = halfway(harvest, site)
    assert "applies it" in harvest("roots", "remove", site.url).stderr
    assert stopped(process, signal.SIGINT)[0] == 130
    site.go_on()
    assert harvest.lines("gather", site.url, *FAST)[0]["added"]


def test_gather_without_root_applies_removals(harvest: Any, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the removal of the last roots was not applied, `gather` without a ROOT applies it and says so."""
    harvest("gather", tree)
    monkeypatch.setenv("HARVEST_FAULT", "turn.begin:1:kill")
    harvest.start("roots", "remove", tree).communicate(timeout=PATIENCE)
    monkeypatch.delenv("HARVEST_FAULT")
    assert len(harvest.lines("search", "*", "--copies")) == 3
    assert "harvest: no roots are left: all their objects are removed\n" in harvest("gather").stderr
    assert not harvest.lines("search", "*", "--copies")
    assert "no ROOT given, and none known" in harvest("gather", code=2).stderr


def test_progress_without_terminal_is_plain_lines(harvest: Any, site: Site) -> None:
    """If standard error is no terminal, progress consists of plain lines without escape sequences."""
    process = harvest.start("gather", site.url, *FAST)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert b"\x1b" not in err


def test_progress_on_a_terminal_respects_no_color(harvest: Any, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal progress is drawn and the table follows; NO_COLOR switches the colors off."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    ours, theirs = os.openpty()
    process = subprocess.Popen([*harvest.program, "gather", tree], stderr=theirs, stdout=theirs, cwd=harvest.folder)
    os.close(theirs)
    seen = b""
    try:
        while piece := os.read(ours, 65536):
            seen += piece
    except OSError:  # EIO: the terminal has no more writers
        os.close(ours)
    assert process.wait(PATIENCE) == 0
    assert b"summaries made" in seen
    assert b"\x1b[3" not in seen


def test_control_characters_are_escaped_on_a_terminal(harvest: Any, tree: Path) -> None:
    """Control characters of a file are escaped on a terminal; a pipe gets the bytes."""
    (tree / "notes" / "a.txt").write_bytes("Red \x1b[31m, \x9b31m, left \u202e: \u00e9t\u00e9.\n".encode())
    harvest("gather", tree)
    piped = subprocess.run([*harvest.program, "show", tree / "notes" / "a.txt"], capture_output=True, check=True).stdout
    assert "\x1b[31m, \x9b31m, left \u202e: \u00e9t\u00e9".encode() in piped
    for command in ("show", "summarize"):
        seen = on_terminal([*harvest.program, command, tree / "notes" / "a.txt"])
        assert "Red \\x1b[31m, \\x9b31m, left \\u202e: \u00e9t\u00e9." in seen.decode()
        assert seen.decode().replace("\r\n", "").replace("\t", "").isprintable()


def test_run_finished_by_the_service_is_not_continued(harvest: Any, site: Site) -> None:
    """An interrupted run that the service has finished is not continued again: the next run revalidates."""
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


def test_discarded_interrupt_is_repeated(root: Path) -> None:
    """Python discards a KeyboardInterrupt in a weak reference callback, as imports have them; it is raised again."""
    done = subprocess.run([sys.executable, "-c", LOST], cwd=root, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert (done.returncode, done.stdout, done.stderr) == (0, "heard\n", "")
