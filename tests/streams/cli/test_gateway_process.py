"""`harvest run --serve`: the gateway as a child process of the run. Its program is a double, which answers no request."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streams.cli.gateway_process import BACK_OFF, LONGEST, GatewayProcess, gateway_command
from streams.config.settings import load
from tests.streams.cli.conftest import PROGRAM

PATIENCE = 120.0
"""Seconds that a test waits for a process before it fails."""

DOUBLE = """
import os, signal, sys
from pathlib import Path
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
Path("double.pid").write_text(str(os.getpid()))
Path("double.env").write_text(repr([os.environ.get(name) for name in ("HARVEST_KAFKA_BROKERS", "HARVEST_INDEX_URL")]))
os.write(int(sys.argv[-1].removeprefix("--ready-fd=")), b"http://double.example/\\n")
while True:
    signal.pause()
"""
FAILING = "import sys; sys.exit(1)"

RUN = f"""
import sys
import streams.cli.gateway_process as module
module.gateway_command = lambda found, config: [sys.executable, "-c", {DOUBLE!r}]
from streams.cli import main
main()
"""


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait until a condition is true."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def is_alive(process: int) -> bool:
    """Return whether a process runs: one that has ended and waits for its parent does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except (FileNotFoundError, ProcessLookupError):
        return False


class Clock:
    """A clock that moves only when it is told to."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Watched:
    """A gateway process with a clock of its own, and the lines that it has said."""

    def __init__(self, program: str) -> None:
        self.clock, self.lines = Clock(), list[str]()
        self.gateway = GatewayProcess([sys.executable, "-c", program], self.lines.append, self.clock)

    def look_until(self, lines: int) -> None:
        """Look at the process until it has said that many lines."""

        def said() -> bool:
            self.gateway.look()
            return len(self.lines) >= lines

        until(said, f"{lines} lines of {self.lines}")


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that makes a gateway process in a folder of its own; it is stopped at the end."""
    monkeypatch.chdir(tmp_path)
    made = list[Watched]()

    def make(program: str) -> Watched:
        made.append(Watched(program))
        return made[-1]

    yield make
    for each in made:
        each.gateway.stop()


def test_address_is_said_and_stop_is_in_order(watched: Any) -> None:
    """The address is said once it answers; `stop` ends it by SIGTERM, and it is not started again."""
    one = watched(DOUBLE)
    one.look_until(1)
    assert one.lines == ["search at http://double.example/; stop with Ctrl-C"]
    process = one.gateway.process
    one.gateway.stop()
    assert process.returncode == 0
    one.clock.now += 10 * LONGEST
    one.gateway.look()
    assert one.gateway.process is None
    assert len(one.lines) == 1


def test_process_that_dies_is_restarted_with_growing_delay(watched: Any) -> None:
    """A process that is killed is started again after a delay, which doubles, and begins anew after a long life."""
    one = watched(DOUBLE)
    for number, pause in enumerate((BACK_OFF, 2 * BACK_OFF, 4 * BACK_OFF)):
        one.look_until(2 * number + 1)
        one.gateway.process.kill()
        one.look_until(2 * number + 2)
        assert one.lines[-1] == f"the gateway ended with -9; started again in {pause:g} s"
        one.gateway.look()
        assert one.gateway.process is None
        one.clock.now += pause
    one.look_until(7)
    one.clock.now += LONGEST
    one.gateway.process.kill()
    one.look_until(8)
    assert one.lines[-1] == f"the gateway ended with -9; started again in {BACK_OFF:g} s"
    assert one.lines.count("search at http://double.example/; stop with Ctrl-C") == 4


@pytest.mark.parametrize("command", [[sys.executable, "-c", FAILING], ["/nowhere/python"]])
def test_process_that_cannot_start_is_said_once(watched: Any, command: list[str]) -> None:
    """A gateway that ends with an error before it ever answered, as where its port is in use, is given up, with one line."""
    one = watched("")
    one.gateway = GatewayProcess(command, one.lines.append, one.clock)
    one.look_until(1)
    one.clock.now += 10 * LONGEST
    for _ in range(3):
        one.gateway.look()
    assert one.gateway.process is None
    (line,) = one.lines
    assert line.startswith("the gateway cannot start (")
    assert line.endswith("); the run goes on without it")


def test_command_of_the_gateway(tmp_path: Path) -> None:
    """The gateway gets the folder, the address and the settings file of the run, each as one argument."""
    found = load({"data": Path("-odd"), "serve.port": 0}, None, {})
    command = gateway_command(found, tmp_path / "some.toml")
    assert command[0] == sys.executable
    assert command[command.index("serve") :] == [
        "serve",
        "--data=-odd",
        "--host=127.0.0.1",
        "--port=0",
        f"--config={tmp_path / 'some.toml'}",
    ]


@pytest.fixture
def running(harvest: Any) -> Any:
    """A run with the double as its gateway, and the double's process id."""
    log = (harvest.folder / "log").open("wb")
    environ = {**os.environ, "HARVEST_INDEX_URL": "http://search.example:9200"}
    command = [PROGRAM[0], "-c", RUN, "run", "--serve", "--port", "0"]
    with log, subprocess.Popen(command, stderr=log, cwd=harvest.folder, env=environ) as process:
        until(lambda: b"search at" in (harvest.folder / "log").read_bytes() or process.poll() is not None, "an address")
        assert process.poll() is None, (harvest.folder / "log").read_text()
        yield process, int((harvest.folder / "double.pid").read_text())
        if process.poll() is None:
            process.kill()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_gateway_ends_with_its_run(harvest: Any, running: Any, number: signal.Signals) -> None:
    """A stopped run ends its gateway in order; it had the settings of a data folder, whatever server the run was told of."""
    process, child = running
    process.send_signal(number)
    assert process.wait(PATIENCE) == 0
    assert not is_alive(child)
    lines = (harvest.folder / "log").read_text().splitlines()
    assert "harvest: search at http://double.example/; stop with Ctrl-C" in lines
    assert lines[-1] == "harvest: stopped"
    assert not [line for line in lines if "gateway" in line]
    assert (harvest.folder / "double.env").read_text() == "['', '']"


@pytest.mark.slow
def test_gateway_dies_with_a_killed_run(running: Any) -> None:
    """A run that is killed leaves no gateway behind."""
    process, child = running
    assert is_alive(child)
    process.kill()
    process.wait(PATIENCE)
    until(lambda: not is_alive(child), "the end of the gateway")


@pytest.mark.slow
def test_run_goes_on_after_its_gateway_died(harvest: Any, running: Any) -> None:
    """A killed gateway is replaced by another one, and the run goes on."""
    process, child = running
    os.kill(child, signal.SIGKILL)
    until(lambda: (harvest.folder / "log").read_text().count("search at") == 2, "a second address")
    assert process.poll() is None
    assert int((harvest.folder / "double.pid").read_text()) != child


def test_usage_errors_of_run_with_a_page(harvest: Any) -> None:
    """A port without a page, and an address that may not be served, are usage errors before anything is made."""
    assert "it goes with --serve" in harvest("run", "--port", "1", code=2).stderr
    (harvest.folder / "harvest.toml").write_text("[serve]\nhost = '0.0.0.0'\n")
    assert "set serve.token" in harvest("run", "--serve", code=2).stderr
    assert not (harvest.folder / "harvest-data").exists()
