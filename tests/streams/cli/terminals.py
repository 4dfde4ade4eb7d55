"""What a program writes to a terminal."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path


def on_terminal(command: Sequence[str | Path], folder: Path | None = None, *, errors: bool = False) -> bytes:
    """All that a program that ends well writes to a terminal that is its standard output; and its standard error, with `errors`."""
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
