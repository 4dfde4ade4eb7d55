"""Servers of Gopher and news from Debian's packages: unpacked, not installed, so that no service of the machine starts or changes.

Strategy: a package is unpacked with those libraries that it depends on and that the machine lacks. The programs run with
LD_LIBRARY_PATH on the folder.

Law: an installation is complete or absent: it is built in a separate folder and renamed.

`python -m tests.servers.debian_servers` unpacks all into .venv/servers; make does so before the tests.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.deploy.debian import run, unpack
from tests.deploy.tools import ToolError
from tests.servers.artefacts import HOME as SERVERS


class Package(NamedTuple):
    """What is unpacked for a server."""

    packages: tuple[str, ...]
    programs: tuple[str, ...]
    """Programs of the first package whose libraries must be there."""


PACKAGES = {
    "gophernicus": Package(("gophernicus",), ("usr/sbin/gophernicus",)),
    "pygopherd": Package(("pygopherd", "python3-simpletal"), ("usr/sbin/pygopherd",)),
    "inn": Package(("inn2", "inn2-inews"), ("usr/lib/news/bin/innd", "usr/lib/news/bin/nnrpd", "usr/lib/news/bin/makedbz")),
}
MISSING = re.compile(r"^\s*(\S+) => not found", re.MULTILINE)


def installed(name: str) -> Path:
    """Return the folder of a server, a root of its packages' paths; unpacks them if they are missing. Raises ToolError."""
    home = SERVERS / name
    SERVERS.mkdir(parents=True, exist_ok=True)
    with (SERVERS / f"{name}.lockfile").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not home.is_dir():
            with tempfile.TemporaryDirectory(dir=SERVERS) as folder:
                _unpack(PACKAGES[name], Path(folder, "new"), Path(folder))
                Path(folder, "new").chmod(0o755)
                Path(folder, "new").rename(home)
    return home


def libraries(home: Path) -> str:
    """Return LD_LIBRARY_PATH for the programs of an unpacked server."""
    return os.pathsep.join(sorted({str(path.parent) for path in home.rglob("lib*.so.*")}))


@contextmanager
def public_folder() -> Iterator[Path]:
    """Yield a folder of the system's temporary folder that every user can read; those of pytest are closed to other users."""
    with tempfile.TemporaryDirectory(prefix="harvest-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def _unpack(package: Package, home: Path, work: Path) -> None:
    for name in package.packages:
        _add(name, home, work)
    needed = list(_needed(work, package.packages))
    while missing := _missing(package.programs, home):
        if not needed:
            raise ToolError(f"{package.packages[0]}: libraries are missing: {', '.join(sorted(missing))}")
        _add(needed.pop(0), home, work)


def _add(name: str, home: Path, work: Path) -> None:
    """Unpack a package into a folder that may have others."""
    (work / name).mkdir()
    unpack(name, [], work / name)
    shutil.copytree(work / name / "unpacked", home, symlinks=True, dirs_exist_ok=True)


def _needed(work: Path, packages: Sequence[str]) -> Iterator[str]:
    """Yield the libraries that packages depend on, of alternatives the first."""
    for name in packages:
        (file,) = (work / name).glob(f"{name}_*.deb")
        for entry in run(["dpkg-deb", "--field", str(file), "Depends"]).split(","):
            library = entry.split("|")[0].strip().partition(" ")[0].partition(":")[0]
            # Every machine that runs Python has the C library, and another one would not fit the machine's loader.
            if library.startswith("lib") and library != "libc6":
                yield library


def _missing(programs: Sequence[str], home: Path) -> set[str]:
    """Return the libraries that programs lack."""
    environment = os.environ | {"LD_LIBRARY_PATH": libraries(home)}
    found: set[str] = set()
    for program in programs:
        if (home / program).read_bytes()[:4] == b"\x7fELF":
            told = subprocess.run(["ldd", home / program], check=False, env=environment, stdout=subprocess.PIPE, text=True).stdout
            found.update(MISSING.findall(told))
    return found


if __name__ == "__main__":
    try:
        for server in PACKAGES:
            installed(server)
    except ToolError as error:
        print(f"tests.servers.debian_servers: {error}", file=sys.stderr)
        sys.exit(1)
