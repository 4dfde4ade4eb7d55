"""Programs run for a sealed child: their output, their restrictions and their failures."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streams.sandbox import seccomp
from streams.sandbox.programs import EXIT_LOST

CHILD = """
import io, json, os, sys
from streams.sandbox.programs import Command, ProgramError, Programs
from streams.sandbox.values import SandboxLimits

asked = json.loads(sys.stdin.read())
programs = Programs()
programs.commands = {name: Command(tuple(c), s, tuple(r)) for name, (c, s, r) in asked["commands"].items()}
if asked["begin"]:
    programs.begin(SandboxLimits(**asked["limits"]))
for name, body in asked["runs"]:
    if name == "KILL":
        children = open(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read().split()
        os.kill(int(children[0]), 9)
        continue
    try:
        said = programs.run(name, {"NAME": "soup", "TYPE": name}, io.BytesIO(body.encode())).decode()
        print(json.dumps(["printed", said]), flush=True)
    except ProgramError as error:
        print(json.dumps(["failed", str(error)]), flush=True)
"""
Play = Callable[..., list[list[str]]]


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """A function that takes shell scripts and runs of (name, body), and returns the result of each run."""

    def played(runs: list[tuple[str, str]], begin: bool = True, limits: Any = None, **scripts: str) -> list[list[str]]:
        commands: dict[str, Any] = {}
        for name, text in scripts.items():
            path = tmp_path / f"{name}.sh"
            path.write_text(f"#!/bin/sh\n{text}\n")
            path.chmod(0o755)
            commands[name] = ([str(path), "{}"], 10.0 if name != "slow" else 0.5, [])
        asked = {"commands": commands, "begin": begin, "limits": limits or {}, "runs": runs}
        command = [sys.executable, "-c", CHILD]
        done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, check=False, timeout=60)
        ended = [["ended", str(done.returncode)]] if done.returncode else []
        return [*(json.loads(line) for line in done.stdout.splitlines()), *ended]

    return played


def test_program_gets_its_file_and_environment(play: Play) -> None:
    """A program gets the file on standard input and as a path, and its properties in the environment; programs run in turn."""
    made = play(
        [("a", "flour"), ("b", "salt"), ("a", "")], a="cat; cat < $1; echo; echo $HARVEST_NAME $HARVEST_TYPE", b="wc -c < $1"
    )
    assert made == [["printed", "flourflour\nsoup a\n"], ["printed", "4\n"], ["printed", "\nsoup a\n"]]


def test_failures_of_programs_are_reported(play: Play) -> None:
    """An exit status with the last error line, a signal, a timeout and too much output are reported; the next program runs."""
    scripts = {
        "status": "echo first >&2; echo no salt >&2; exit 3",
        "signal": "kill -SEGV $$",
        "slow": "sleep 60 & sleep 60",
        "flood": "yes",
        "good": "echo good",
    }
    made = play([(name, "") for name in scripts], **scripts)
    assert made == [
        ["failed", "it ended with 3: no salt"],
        ["failed", "it was ended by SIGSEGV"],
        ["failed", "its time is over (0.5 s)"],
        ["failed", "it printed more than 4,194,304 bytes"],
        ["printed", "good\n"],
    ]


def test_processes_of_a_program_end_with_it(play: Play, tmp_path: Path) -> None:
    """A process that the program leaves behind is killed."""
    sign = "4711.25"
    assert play([("a", "")], a=f"sleep {sign} & echo done") == [["printed", "done\n"]]
    end = time.monotonic() + 20
    while _runs("sleep", sign) and time.monotonic() < end:
        time.sleep(0.05)
    assert not _runs("sleep", sign)


def _runs(*arguments: str) -> bool:
    wanted = "\0".join(arguments).encode()
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if wanted in place.read_bytes():
                return True
        except OSError:
            continue
    return False


def test_program_is_restricted(play: Play, tmp_path: Path) -> None:
    """A program writes no file, reads only programs and its own input, and has no network, namespace or signals to others."""
    secret, leak = tmp_path.parent / f"{tmp_path.name}.secret", tmp_path / "leak"
    secret.write_text("secret")
    tries = {
        "write": f"(echo x > {leak}) 2>/dev/null",
        "remove": f"rm -f {tmp_path}/a.sh 2>/dev/null",
        "read": f"cat {secret} > /dev/null 2>&1",
        "list": "ls / > /dev/null 2>&1",
        "signal": "kill -0 $PPID 2>/dev/null",
        "socket": f"{sys.executable} -c 'import socket; socket.socket()' 2>/dev/null",
        "space": "unshare --user true 2>/dev/null",
        "session": "setsid true 2>/dev/null",
        "group": f"{sys.executable} -c 'import os; os.setpgid(0, 0)' 2>/dev/null",
    }
    allowed = {"null": "echo x > /dev/null", "own": f"cat {tmp_path}/a.sh > /dev/null", "fork": "(true; true) | cat"}
    script = "\n".join(f"if {what}; then echo {name}; fi" for name, what in (tries | allowed).items())
    assert play([("a", "")], a=script) == [["printed", "null\nown\nfork\n"]]
    assert not leak.exists()
    assert secret.read_text() == "secret"


def test_program_has_the_memory_limit_of_a_child(play: Play) -> None:
    """A program has the memory limit of a child."""
    hungry = "head -c 200000000 /dev/zero | tail -c 150000000 | wc -c"
    (small,) = play([("a", "")], a=hungry, limits={"memory": 64 << 20})
    (large,) = play([("a", "")], a=hungry, limits={"memory": 512 << 20})
    assert large == ["printed", "150000000\n"]
    assert small != large


def test_missing_or_killed_runner(play: Play) -> None:
    """Without a runner no program can be run; a child whose runner was killed exits, so that another replaces it."""
    assert play([("a", "")], begin=False, a="true") == [["failed", "no program can be run here"]]
    assert play([("a", ""), ("KILL", ""), ("a", "")], a="true") == [["printed", ""], ["ended", str(EXIT_LOST)]]


@pytest.mark.parametrize("machine", seccomp.MACHINES.values(), ids=seccomp.MACHINES)
def test_calls_of_programs_are_refused_to_children(machine: seccomp.Machine) -> None:
    """Each call allowed to a program is refused to a child, under its own name; none of them is a network call."""
    assert set(seccomp.REFUSED) > seccomp.SPAWNING
    assert not {"socket", "connect", "bind", "unshare", "mount", "ptrace", "io_uring_setup"} & seccomp.SPAWNING
    assert seccomp.program(machine, 1, spawning=True) != seccomp.program(machine, 1)
