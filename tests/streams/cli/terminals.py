"""Captures what a program writes to a terminal."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path


def on_terminal(command: Sequence[str | Path], folder: Path | None = None, *, errors: bool = False) -> bytes:
    """Run a program with a terminal as standard output, and as standard error with `errors`; return all that it wrote.

    The program has to end with exit code 0.
    """
    ours, theirs = os.openpty()
    with subprocess.Popen(command, stdout=theirs, stderr=theirs if errors else None, cwd=folder) as process:
        os.close(theirs)
        seen = bytearray()
        with suppress(OSError):  # EIO: the other end is closed
            while piece := os.read(ours, 65_536):
                seen += piece
        os.close(ours)
    assert process.returncode == 0
    return bytes(seen)
