"""Installs Glimpse (agrep, glimpse, glimpseindex), with whose answers tests compare those of the query language.

Strategy: the programs on PATH, if they are Glimpse's; otherwise those of Debian's package, which is unpacked, not installed.

Law: an installation is complete or absent: it is built in a separate folder and renamed.

`python -m tests.deploy.glimpse` installs the programs into .venv/tools/glimpse; make does so before the tests.
"""

from __future__ import annotations

import fcntl
import shutil
import sys
import tempfile
from pathlib import Path

from tests.deploy.debian import run, unpack
from tests.deploy.tools import HOME as TOOLS
from tests.deploy.tools import ToolError

HOME = TOOLS / "glimpse"
NAMES = ("agrep", "glimpse", "glimpseindex")


def installed() -> bool:
    """Whether all programs are there."""
    return all((HOME / name).is_file() for name in NAMES)


def install() -> None:
    """Install the programs if they are missing. Raises ToolError."""
    TOOLS.mkdir(parents=True, exist_ok=True)
    with (TOOLS.parent / "glimpse.lockfile").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if installed():
            return
        with tempfile.TemporaryDirectory(dir=TOOLS) as folder:
            new = Path(folder, "glimpse")
            new.mkdir()
            if present := on_path():
                for program in present:
                    (new / program.name).symlink_to(program)
            else:
                print("installing Glimpse into .venv/tools", file=sys.stderr)
                for program in unpack("glimpse", [f"usr/bin/{name}" for name in NAMES], Path(folder)):
                    program.rename(new / program.name)
            shutil.rmtree(HOME, ignore_errors=True)
            new.rename(HOME)


def on_path() -> list[Path]:
    """Return the programs on PATH; [] if one is missing or only has the name (TRE has another agrep)."""
    found = [shutil.which(name) for name in NAMES]
    known = [Path(path) for name, path in zip(NAMES, found, strict=True) if path and f"is {name} version" in run([path, "-V"])]
    return known if len(known) == len(NAMES) else []


if __name__ == "__main__":
    try:
        install()
    except ToolError as error:
        print(f"tests.deploy.glimpse: {error}", file=sys.stderr)
        sys.exit(1)
