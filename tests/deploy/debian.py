"""Debian's packages as files: downloaded by apt-get and unpacked into a folder by dpkg-deb.

Strategy: nothing is installed, so neither root is needed nor does a package start a service. Where the machine has no package
lists, or outdated ones, new lists are downloaded into the folder.

Law: apt-get checks the signature of the lists, and the SHA-256 of the package.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.deploy.tools import ToolError

OPTIONS = ("--quiet", "--option=APT::Sandbox::User=root")
"""Options of apt-get: its own user may not write into our folders, and need not, as downloads are checked."""


def unpack(package: str, programs: Sequence[str], folder: Path) -> list[Path]:
    """Download a package and return its programs (paths in the package), unpacked in a folder. Raises ToolError."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        names = ", ".join(Path(program).name for program in programs)
        raise ToolError(f"Debian's package {package} ({names}) is missing: install it, then run make again")
    said = run(["apt-get", *OPTIONS, "download", package], folder)
    if not (packages := list(folder.glob(f"{package}_*.deb"))):
        (folder / "lists" / "partial").mkdir(parents=True)
        own = [*OPTIONS, f"--option=Dir::State::Lists={folder}/lists", f"--option=Dir::Cache={folder}/cache"]
        said += run(["apt-get", *own, "update"], folder) + run(["apt-get", *own, "download", package], folder)
        packages = list(folder.glob(f"{package}_*.deb"))
    if len(packages) != 1:
        raise ToolError(f"apt-get did not bring the package {package}:\n{said[-2000:]}")
    said = run(["dpkg-deb", "--extract", str(packages[0]), str(folder / "unpacked")])
    found = [folder / "unpacked" / program for program in programs]
    if not all(program.is_file() for program in found):
        raise ToolError(f"{packages[0].name} does not have {', '.join(programs)}\n{said[-2000:]}")
    return found


def run(command: Sequence[str], folder: Path | None = None) -> str:
    """Run a command in a folder and return what it printed."""
    ran = subprocess.run(
        command, check=False, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    return ran.stdout
