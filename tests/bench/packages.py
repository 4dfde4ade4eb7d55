"""Fetches packages with files of other projects by name, with the machine's own clients, and keeps them between runs.

There are no addresses here: apt provides those of Debian's sources, pip and Maven have their own. The code of a package is not
run, except for what pip needs to learn about a source distribution that it downloads.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, cast

from tests.bench.figures import BenchError

TIME = 600
"""Maximum seconds for one package."""
TARGETS = ("indextargets", "--format", "deb-src $(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages")
MAVEN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
MARK = ".complete"


def _run(command: Sequence[str | Path], folder: Path) -> str:
    """Run a client and return its output. Raises BenchError."""
    try:
        done = subprocess.run(
            command, cwd=folder, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=TIME
        )
    except subprocess.CalledProcessError as error:
        raise BenchError(f"{' '.join(map(str, command))}: {(error.stdout + error.stderr).strip()[-1_000:]}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BenchError(f"{command[0]}: {error}") from error
    return done.stdout


def _apt(folder: Path) -> list[str]:
    """The apt-get command with a separate source list: the machine's repositories as deb-src."""
    state = folder / "apt"
    made = state / "sources.list"
    common = {
        "Dir::Etc::sourcelist": made,
        "Dir::Etc::sourceparts": "-",
        "Dir::State::lists": state / "lists",
        "Dir::Cache": state / "cache",
    }
    command = ["apt-get", "--quiet", *(word for key, value in common.items() for word in ("-o", f"{key}={value}"))]
    if not made.is_file():
        for name in ("lists/partial", "cache/archives/partial"):
            (state / name).mkdir(parents=True, exist_ok=True)
        lines = sorted(set(_run(["apt-get", *TARGETS], folder).splitlines()))
        if not lines:
            raise BenchError("apt knows no packages: run apt-get update first")
        made.write_text("\n".join(lines) + "\n")
        try:
            _run([*command, "update"], state)
        except BenchError:
            made.unlink()
            raise
    return command


def debian_source(folder: Path, name: str) -> Path:
    """Fetch the upstream archive of a Debian source package. Raises BenchError."""
    found = list(folder.glob(f"{name}_*.tar.*"))
    if not found:
        _run([*_apt(folder), "source", "--download-only", "--tar-only", name], folder)
        found = list(folder.glob(f"{name}_*.tar.*"))
    if not found:
        raise BenchError(f"apt-get source {name} brought no archive")
    return max(found)


def sdist(folder: Path, requirement: str) -> Path:
    """Fetch a source distribution ("name==version") from pip's index. Raises BenchError."""
    name, _, version = requirement.partition("==")
    # The archive is named as the project chooses, or by PEP 625.
    pattern = f"{re.sub('[-_.]+', '[-_.]', name)}-{version}.tar.gz"
    if not list(folder.glob(pattern)):
        pip = [sys.executable, "-m", "pip", "--quiet", "download", "--no-deps", "--no-binary", ":all:"]
        _run([*pip, requirement], folder)
    found = list(folder.glob(pattern))
    if not found:
        raise BenchError(f"pip download {requirement} brought no {pattern}")
    return found[0]


def jar(folder: Path, artefact: str) -> Path:
    """Fetch a jar by its coordinates (group:name:version[:jar:classifier]) with Maven. Raises BenchError."""
    _, name, version, *rest = artefact.split(":")
    path = folder / f"{'-'.join([name, version, *rest[1:]])}.jar"
    if not path.is_file():
        if shutil.which("mvn") is None:
            raise BenchError("Maven (mvn) is wanted for jars, and is not there: install the package maven")
        _run(["mvn", "-B", "-q", MAVEN, f"-Dartifact={artefact}", f"-DoutputDirectory={folder}"], folder)
    if not path.is_file():
        raise BenchError(f"Maven brought no {path.name}")
    return path


def opened(archive: Path, folder: Path, parts: Sequence[str] = ("",)) -> Path:
    """Extract the files whose names begin with one of `parts`; a tarball's top folder is stripped.

    Files of a complete earlier run are kept. Nothing is written outside the folder (PEP 706); links are skipped. Raises BenchError.
    """
    target, mark = folder / archive.name, complete(folder, archive.name)
    if mark.is_file():
        return target
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    try:
        (_unzip if zipfile.is_zipfile(archive) else _untar)(archive, target, tuple(parts))
    except (OSError, tarfile.TarError, zipfile.BadZipFile) as error:
        raise BenchError(f"{archive}: {error}") from error
    mark.touch()
    return target


def complete(folder: Path, name: str) -> Path:
    """The path of the mark of a complete extraction. It is beside the folder, so that it is none of its files.

    Its name begins differently from that of the archive, so that it does not match the pattern of archives.
    """
    return folder.parent / f"{MARK}-{name}"


def _unzip(archive: Path, target: Path, parts: tuple[str, ...]) -> None:
    with zipfile.ZipFile(archive) as packed:
        for name in packed.namelist():
            if name.startswith(parts):
                packed.extract(name, target)


def _untar(archive: Path, target: Path, parts: tuple[str, ...]) -> None:
    with tarfile.open(archive) as packed:
        for member in packed:
            name = member.name.removeprefix("./").partition("/")[2]
            if member.isfile() and name.startswith(parts):
                _put(packed, member, target / name, target)


def _put(packed: tarfile.TarFile, member: tarfile.TarInfo, place: Path, target: Path) -> None:
    """Write a file of a tarball. Python has extraction filters only from 3.11.4 on, so the path is checked here."""
    if not place.resolve().is_relative_to(target.resolve()):
        raise tarfile.ExtractError(f"{member.name} lies outside")
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("wb") as file, cast("IO[bytes]", packed.extractfile(member)) as body:
        shutil.copyfileobj(body, file)


def files(folder: Path) -> list[Path]:
    """All files below a folder, sorted by path, without links."""
    found = (Path(above) / name for above, _, names in os.walk(folder) for name in names)
    return sorted(path for path in found if path.is_file() and not path.is_symlink())
