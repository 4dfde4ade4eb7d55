"""Files that are written whole."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_whole(path: Path, data: bytes) -> None:
    """Write a file that readers see whole or not at all; its folder is made, but not the one above it. Raises OSError."""
    path.parent.mkdir(exist_ok=True)
    number, name = tempfile.mkstemp(dir=path.parent)
    try:
        with open(number, "wb") as stream:
            stream.write(data)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
