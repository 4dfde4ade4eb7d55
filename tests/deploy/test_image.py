"""The image: its content, and the user it runs as."""

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
    """The text of docker/Dockerfile, with each instruction on one line."""
    text = (root / "docker" / "Dockerfile").read_text("utf-8")
    return re.sub(r"(?m)^#.*\n", "", text).replace("\\\n", " ")


def locked(path: Path) -> dict[str, frozenset[str]]:
    """The requirements of a lock file, with their hashes."""
    text = re.sub(r"(?m)^ *#.*\n", "", path.read_text("utf-8")).replace("\\\n", " ")
    lines = (line.split("--hash=") for line in text.splitlines() if line.strip())
    return {line[0].strip(): frozenset(map(str.strip, line[1:])) for line in lines}


def test_dockerfile_passes_hadolint(root: Path) -> None:
    """The Dockerfile obeys hadolint's rules, or states the reason for an exception."""
    answer = subprocess.run([tools.HADOLINT, root / "docker" / "Dockerfile"], check=False, capture_output=True, text=True)
    assert (answer.returncode, answer.stdout) == (0, "")


def test_hadolint_rejects_a_bad_dockerfile(tmp_path: Path) -> None:
    """The check itself works: hadolint rejects a bad Dockerfile."""
    (tmp_path / "Dockerfile").write_text("FROM debian\nRUN cd / && apt-get install curl\n")
    assert subprocess.run([tools.HADOLINT, tmp_path / "Dockerfile"], check=False, capture_output=True).returncode == 1


def test_image_runs_as_a_numeric_user_other_than_root(dockerfile: str) -> None:
    """The last stage runs as a numeric user other than root, so that a cluster can verify it."""
    last = dockerfile.rpartition("\nFROM ")[2]
    users = re.findall(r"(?m)^USER (\S+)$", last)
    assert users
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", users[-1])


def test_base_images_are_pinned_and_equal(dockerfile: str, pinned: re.Pattern[str], root: Path) -> None:
    """All stages have the same base image, with a complete version and a Python that the project supports."""
    bases = re.findall(r"(?m)^FROM (\S+)", dockerfile)
    assert len(bases) > 1
    assert len(set(bases)) == 1
    assert pinned.match(bases[0])
    assert bases[0].startswith("python:3.11.")


def test_dockerignore_allows_exactly_the_copied_files(dockerfile: str, root: Path) -> None:
    """Everything that the Dockerfile copies exists and is allowed by .dockerignore, which allows nothing else."""
    copies = re.findall(r"(?m)^COPY (?!--from)(.*)$", dockerfile)
    sources = {word.rstrip("/") for line in copies for word in line.split()[:-1]}
    rules = (root / ".dockerignore").read_text("utf-8").splitlines()
    assert next(rule for rule in rules if not rule.startswith("#")) == "*"
    assert {rule[1:] for rule in rules if rule.startswith("!")} == sources
    assert all((root / source).exists() for source in sources)
    assert sources >= set(PACKAGES)


def test_lock_has_only_lines_of_the_root_lock(root: Path) -> None:
    """The image installs exactly what was tested: its lock has only lines of the root's lock, hashes included."""
    image, whole = locked(root / "docker" / "requirements.lock"), locked(root / "requirements.lock")
    assert not {name for name, hashes in image.items() if whole.get(name) != hashes}, "run `make lock`"


def test_lock_has_all_dependencies_and_no_development_tools(root: Path) -> None:
    """The image's lock has every dependency of the project and its build tool, and no development dependency."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]

    def names(requirements: list[str]) -> set[str]:
        return {canonicalize_name(Requirement(text).name) for text in requirements}

    there = names(list(locked(root / "docker" / "requirements.lock")))
    assert names(project["dependencies"]) | {"setuptools"} <= there, "run `make lock`"
    assert not (names(project["optional-dependencies"]["dev"]) - {"setuptools", "packaging"}) & there


def test_variables_of_the_image_are_valid_settings(dockerfile: str, settings_of: Any) -> None:
    """The variables of the image are settings, and its health check uses the port that it listens on."""
    found = settings_of(dict(re.findall(r"(HARVEST_[A-Z_]+)=(\S+)", dockerfile)))
    assert str(found.data) == "/var/lib/harvest"
    assert (found.worker.host, found.log.format) == ("0.0.0.0", "json")
    assert f"http://127.0.0.1:{found.worker.port}/livez" in dockerfile
    assert f"EXPOSE {found.worker.port}" in dockerfile


def test_image_label_has_the_project_version(dockerfile: str, root: Path) -> None:
    """The version label is the version of the project."""
    version = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert f'org.opencontainers.image.version="{version}"' in dockerfile
