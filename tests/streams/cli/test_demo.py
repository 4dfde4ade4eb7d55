"""The last step of `make demo`: the page, until Ctrl-C. The program is a double."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PATIENCE = 120.0
"""Seconds that a test waits for a process before it fails."""

DOUBLE = f"""#!{sys.executable}
import signal, sys
from pathlib import Path
signal.signal(signal.SIGINT, lambda *_: (Path("stopped").write_text("in order"), sys.exit(0)))
Path("arguments").write_text(" ".join(sys.argv[1:]))
while not Path("fail").exists():
    signal.pause()
sys.exit(1)
"""
SERVE = """
from pathlib import Path
from tests import demo
demo.HARVEST = Path("double").absolute()
demo.serve(Path("data"))
print("over", flush=True)
"""


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    """The command that serves with the double, which is in the folder of the test."""
    (tmp_path / "double").write_text(DOUBLE)
    (tmp_path / "double").chmod(0o755)
    root = Path(__file__).resolve().parents[3]
    return ["env", f"PYTHONPATH={root}", sys.executable, "-c", SERVE]


def test_page_of_the_demonstration_ends_with_ctrl_c(tmp_path: Path, command: list[str]) -> None:
    """Ctrl-C reaches page and demonstration: the page ends in order, and so does the demonstration."""
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, start_new_session=True) as process:
        end = time.monotonic() + PATIENCE
        while not (tmp_path / "arguments").exists():
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGINT)
        out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert (tmp_path / "arguments").read_text() == "serve --data data --port 0"
    assert (tmp_path / "stopped").read_text() == "in order"
    assert out.decode().splitlines()[-2:] == ["$ .venv/bin/harvest serve --data data --port 0", "over"]


def test_page_that_fails_ends_the_demonstration(tmp_path: Path, command: list[str]) -> None:
    """A page that ends with an error is an error of the demonstration."""
    (tmp_path / "fail").touch()
    result = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=PATIENCE)
    assert "DemoError: harvest serve ended with 1" in result.stderr
    assert "over" not in result.stdout
