"""The image: what it is made of, and as whom it runs."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.deploy import tools

PACKAGES = ("processors", "schemas", "sinks", "streams")


@pytest.fixture
def dockerfile(root: Path) -> str:
    """docker/Dockerfile, each instruction on one line."""
    text = (root / "docker" / "Dockerfile").read_text("utf-8")
    return re.sub(r"(?m)^#.*\n", "", text).replace("\\\n", " ")


def locked(path: Path) -> dict[str, frozenset[str]]:
    """The requirements of a lock, with their hashes."""
    text = re.sub(r"(?m)^ *#.*\n", "", path.read_text("utf-8")).replace("\\\n", " ")
    lines = (line.split("--hash=") for line in text.splitlines() if line.strip())
    return {line[0].strip(): frozenset(map(str.strip, line[1:])) for line in lines}


def test_hadolint_has_nothing_to_say(root: Path) -> None:
    """The Dockerfile keeps hadolint's rules; where it does not, it says why."""
    answer = subprocess.run([tools.HADOLINT, root / "docker" / "Dockerfile"], check=False, capture_output=True, text=True)
    assert (answer.returncode, answer.stdout) == (0, "")


def test_hadolint_hears(tmp_path: Path) -> None:
    """A bad Dockerfile is found."""
    (tmp_path / "Dockerfile").write_text("FROM debian\nRUN cd / && apt-get install curl\n")
    assert subprocess.run([tools.HADOLINT, tmp_path / "Dockerfile"], check=False, capture_output=True).returncode == 1


def test_nobody_runs_it(dockerfile: str) -> None:
    """The last stage runs as a user by number, who is not root, so that a cluster can tell."""
    last = dockerfile.rpartition("\nFROM ")[2]
    users = re.findall(r"(?m)^USER (\S+)$", last)
    assert users
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", users[-1])


def test_bases_are_pinned(dockerfile: str, pinned: re.Pattern[str], root: Path) -> None:
    """Every base is one version, the same in both stages, and has a Python that the project runs on."""
    bases = re.findall(r"(?m)^FROM (\S+)", dockerfile)
    assert len(bases) > 1
    assert len(set(bases)) == 1
    assert pinned.match(bases[0])
    assert bases[0].startswith("python:3.11.")


def test_what_is_copied_is_let_in(dockerfile: str, root: Path) -> None:
    """What the Dockerfile copies is there, and let through by .dockerignore, which lets through nothing else."""
    copies = re.findall(r"(?m)^COPY (?!--from)(.*)$", dockerfile)
    sources = {word.rstrip("/") for line in copies for word in line.split()[:-1]}
    rules = (root / ".dockerignore").read_text("utf-8").splitlines()
    assert next(rule for rule in rules if not rule.startswith("#")) == "*"
    assert {rule[1:] for rule in rules if rule.startswith("!")} == sources
    assert all((root / source).exists() for source in sources)
    assert sources >= set(PACKAGES)


def test_lock_is_of_the_root(root: Path) -> None:
    """What the image installs is what was tested: lines of the root's lock, hashes and all."""
    image, whole = locked(root / "docker" / "requirements.lock"), locked(root / "requirements.lock")
    assert not {name for name, hashes in image.items() if whole.get(name) != hashes}, "run `make lock`"


def test_lock_is_enough(root: Path) -> None:
    """Every dependency of the project is in the image's lock, and the tool that builds it; what only developers want is not."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]

    def names(requirements: list[str]) -> set[str]:
        return {canonicalize_name(Requirement(text).name) for text in requirements}

    there = names(list(locked(root / "docker" / "requirements.lock")))
    assert names(project["dependencies"]) | {"setuptools"} <= there, "run `make lock`"
    assert not (names(project["optional-dependencies"]["dev"]) - {"setuptools", "packaging"}) & there


def test_settings_of_the_image(dockerfile: str, settings_of: Any) -> None:
    """What the image sets are settings; probes ask where it listens."""
    found = settings_of(dict(re.findall(r"(HARVEST_[A-Z_]+)=(\S+)", dockerfile)))
    assert str(found.data) == "/var/lib/harvest"
    assert (found.worker.host, found.log.format) == ("0.0.0.0", "json")
    assert f"http://127.0.0.1:{found.worker.port}/livez" in dockerfile
    assert f"EXPOSE {found.worker.port}" in dockerfile


def test_version_of_the_image(dockerfile: str, root: Path) -> None:
    """The label has the version of the project."""
    version = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert f'org.opencontainers.image.version="{version}"' in dockerfile
