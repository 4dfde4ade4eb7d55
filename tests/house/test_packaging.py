"""Installation: four packages with their data, and exactly the locked versions."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PACKAGES = ("processors", "schemas", "sinks", "streams")
PICTURES = {"sinks/gateway/search.png"}
BUILD = "import sys; from setuptools.build_meta import build_wheel; build_wheel(sys.argv[1])"


@pytest.fixture(scope="module")
def project(root: Path) -> dict[str, Any]:
    """The parsed pyproject.toml."""
    return tomllib.loads((root / "pyproject.toml").read_text("utf-8"))


def locked(root: Path) -> Iterator[tuple[Requirement, int]]:
    """Yield the requirements of the lock, each with its number of hashes."""
    text = re.sub(r"(?m)^ *#.*\n", "", (root / "requirements.lock").read_text("utf-8")).replace("\\\n", " ")
    for line in filter(None, map(str.strip, text.splitlines())):
        requirement, *hashes = line.split("--hash=sha256:")
        yield Requirement(requirement), len(hashes)


def package_files(root: Path) -> set[str]:
    """Return the paths of the files of the four packages, without the pictures of READMEs."""
    paths = (path for name in PACKAGES for path in (root / name).rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(root).as_posix() for path in paths} - PICTURES


@pytest.mark.parametrize("name", PACKAGES)
def test_import_names_belong_to_this_tree(name: str, root: Path) -> None:
    """No other installed distribution owns one of our import names, and they are imported from this tree."""
    owners = importlib.metadata.packages_distributions().get(name, [])
    assert set(owners) <= {"harvest"}
    assert Path(str(importlib.import_module(name).__file__)).parent == root / name


def test_no_distribution_has_package_tests(root: Path) -> None:
    """No installed distribution has a package `tests`, which would shadow the folder of that name."""
    assert list(importlib.import_module("tests").__path__) == [str(root / "tests")]


def test_package_list_equals_tree(project: dict[str, Any], root: Path) -> None:
    """The packages listed in pyproject.toml are those in the tree."""
    there = (path.parent.relative_to(root) for name in PACKAGES for path in (root / name).rglob("__init__.py"))
    assert project["tool"]["setuptools"]["packages"] == sorted(".".join(path.parts) for path in there)


def test_wheel_holds_every_file_of_the_packages(root: Path, tmp_path: Path) -> None:
    """A wheel has all files that the packages need: sources, schemas, tables and the py.typed marker."""
    for name in PACKAGES:
        shutil.copytree(root / name, tmp_path / "tree" / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(root / name, tmp_path / "tree" / name)
    subprocess.run([sys.executable, "-c", BUILD, tmp_path], check=True, capture_output=True, cwd=tmp_path / "tree")
    (wheel,) = tmp_path.glob("harvest-*.whl")
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert held == package_files(tmp_path / "tree")
    assert {f"{name}/py.typed" for name in PACKAGES} <= held


def test_lock_is_exact_and_hashed(root: Path) -> None:
    """Every line of the lock has one version and at least one hash."""
    loose = [str(r) for r, hashes in locked(root) if not hashes or [s.operator for s in r.specifier] != ["=="]]
    assert not loose


def test_lock_satisfies_pyproject(project: dict[str, Any], root: Path) -> None:
    """Every dependency of pyproject.toml is in the lock, with a version inside its range."""
    lock = {canonicalize_name(r.name): r for r, _ in locked(root)}
    wanted = [*project["project"]["dependencies"], *project["project"]["optional-dependencies"]["dev"]]
    missing = []
    for requirement in map(Requirement, wanted):
        pinned = lock.get(canonicalize_name(requirement.name))
        if pinned is None or not requirement.specifier.contains(next(iter(pinned.specifier)).version):
            missing.append(str(requirement))
    assert not missing, "run `make lock`"


def test_installed_versions_equal_lock(root: Path) -> None:
    """The installed versions are exactly those of the lock."""
    here = [r for r, _ in locked(root) if (r.marker or Marker("python_version > '3'")).evaluate()]
    wrong = {
        str(r): importlib.metadata.version(r.name) for r in here if not r.specifier.contains(importlib.metadata.version(r.name))
    }
    assert not wrong


def test_build_server_runs_the_tests_and_nothing_else(root: Path) -> None:
    """.ci/run is executable and ends in `make test`."""
    script = root / ".ci" / "run"
    commands = [line for line in script.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    assert script.stat().st_mode & 0o111
    assert commands[-1] == "exec make test"
    assert all(line.startswith(("set ", "cd ")) for line in commands[:-1])


@pytest.fixture
def pythons(tmp_path: Path) -> Callable[..., str]:
    """Function that returns the choice of `make python` with fake programs of these names on PATH ("" for a too old one)."""

    def chosen(root: Path, *given: str, **said: str) -> str:
        for name, built in said.items():
            program = tmp_path / name.replace("_", ".")
            program.write_text(f"#!/bin/sh\necho {built}\n" if built else "#!/bin/sh\nexit 1\n")
            program.chmod(0o755)
        # Interpreters of this machine are hidden by fake ones that are too old.
        for name in ("python3", "python3.14", "python3.13", "python3.12", "python3.11"):
            if not (program := tmp_path / name).exists():
                program.write_text("#!/bin/sh\nexit 1\n")
                program.chmod(0o755)
        path = f"{tmp_path}:{os.environ['PATH']}"
        command = ["make", "--silent", "--no-print-directory", "python", f"USUAL={tmp_path / 'usual'}", *given]
        done = subprocess.run(command, cwd=root, env={**os.environ, "PATH": path}, check=True, capture_output=True, text=True)
        return done.stdout.strip().removeprefix(f"{tmp_path}/")

    return chosen


@pytest.mark.parametrize(
    ("said", "given", "choice"),
    [
        ({"python3": "plain", "usual": "optimized"}, (), "usual"),
        ({"python3": "plain", "python3_12": "optimized", "usual": "optimized"}, (), "python3.12"),
        ({"python3": "optimized", "python3_12": "optimized"}, (), "python3"),
        ({"python3": "plain", "python3_12": "plain", "usual": "plain"}, (), "python3"),
        ({"python3": "", "python3_11": "plain"}, (), "python3.11"),
        ({"python3": "optimized", "python3_12": "plain"}, ("PYTHON=python3.12",), "python3.12"),
        ({"python3": "optimized", "python3_12": ""}, ("PYTHON=python3.12",), ""),
        ({"python3": ""}, (), ""),
    ],
)
def test_install_chooses_suitable_python(
    said: dict[str, str], given: tuple[str, ...], choice: str, pythons: Callable[..., str], root: Path
) -> None:
    """The requested Python is chosen, else the first one built with optimization, else the first one new enough."""
    assert pythons(root, *given, **said) == choice


def test_check_works_on_real_python(root: Path) -> None:
    """The check of an interpreter works on a real one."""
    command = ["make", "--silent", "--no-print-directory", "python", f"PYTHON={sys.executable}"]
    done = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == sys.executable
