"""Installs Glimpse (agrep, glimpse, glimpseindex), with whose answers tests compare those of the query language.

Strategy: the programs on PATH, if they are Glimpse's; otherwise Debian's package, downloaded by apt-get and unpacked by dpkg-deb.
Neither needs root: where the machine has no package lists, or outdated ones, new lists are downloaded into a folder of our own.

Laws:
- apt-get checks the signature of the lists, and the SHA-256 of the package.
- An installation is complete or absent: it is built in a separate folder and renamed.

`python -m tests.deploy.glimpse` installs the programs into .venv/tools/glimpse; make does so before the tests.
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.deploy.tools import HOME as TOOLS
from tests.deploy.tools import ToolError

HOME = TOOLS / "glimpse"
NAMES = ("agrep", "glimpse", "glimpseindex")
OPTIONS = ("--quiet", "--option=APT::Sandbox::User=root")
"""Options of apt-get: its own user may not write into our folders, and need not, as downloads are checked."""


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
                for program in download(Path(folder)):
                    program.rename(new / program.name)
            shutil.rmtree(HOME, ignore_errors=True)
            new.rename(HOME)


def on_path() -> list[Path]:
    """Return the programs on PATH; [] if one is missing or only has the name (TRE has another agrep)."""
    found = [shutil.which(name) for name in NAMES]
    known = [Path(path) for name, path in zip(NAMES, found, strict=True) if path and f"is {name} version" in _run([path, "-V"])]
    return known if len(known) == len(NAMES) else []


def download(folder: Path) -> list[Path]:
    """Download Debian's package and return its programs, unpacked in a folder. Raises ToolError."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise ToolError(
            "Glimpse (agrep, glimpse, glimpseindex; Debian's package glimpse) is missing: install it, then run make again"
        )
    print("installing Glimpse into .venv/tools", file=sys.stderr)
    said = _run(["apt-get", *OPTIONS, "download", "glimpse"], folder)
    if not (packages := list(folder.glob("glimpse_*.deb"))):
        (folder / "lists" / "partial").mkdir(parents=True)
        own = [*OPTIONS, f"--option=Dir::State::Lists={folder}/lists", f"--option=Dir::Cache={folder}/cache"]
        said += _run(["apt-get", *own, "update"], folder) + _run(["apt-get", *own, "download", "glimpse"], folder)
        packages = list(folder.glob("glimpse_*.deb"))
    if len(packages) != 1:
        raise ToolError(f"apt-get did not bring the package glimpse:\n{said[-2000:]}")
    said = _run(["dpkg-deb", "--extract", str(packages[0]), str(folder / "unpacked")])
    programs = [folder / "unpacked" / "usr" / "bin" / name for name in NAMES]
    if not all(program.is_file() for program in programs):
        raise ToolError(f"{packages[0].name} does not have the programs {', '.join(NAMES)}\n{said[-2000:]}")
    return programs


def _run(command: Sequence[str], folder: Path | None = None) -> str:
    """Run a command in a folder and return what it printed."""
    ran = subprocess.run(
        command, check=False, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    return ran.stdout


if __name__ == "__main__":
    try:
        install()
    except ToolError as error:
        print(f"tests.deploy.glimpse: {error}", file=sys.stderr)
        sys.exit(1)
