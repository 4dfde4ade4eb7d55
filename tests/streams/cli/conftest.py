"""Fixtures that run the program: in this process where the result is the same, as a child where signals and pipes matter."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from streams.cli.app import app
from tests.samples.site_server import Site

PROGRAM = [sys.executable, "-c", "from streams.cli import main; main()"]


class Harvest:
    """The program with a working folder of its own."""

    program = PROGRAM

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *arguments: str | Path, code: int = 0) -> Result:
        """Run a command in this process and assert its exit code."""
        result = CliRunner().invoke(app, list(map(str, arguments)))
        assert result.exit_code == code, (arguments, result.exit_code, result.output, result.exception)
        assert "Traceback" not in result.stderr
        return result

    def lines(self, *arguments: str | Path) -> list[dict[str, Any]]:
        """Run a command with --json and return its output, one object per line."""
        return [json.loads(line) for line in self(*arguments, "--json").stdout.splitlines()]

    def start(self, *arguments: str | Path) -> subprocess.Popen[bytes]:
        """Start a command as a separate process."""
        command = [*PROGRAM, *map(str, arguments)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.folder)


@pytest.fixture
def harvest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Harvest:
    """The program in an empty folder, without settings from the environment."""
    for variable in [name for name in os.environ if name.startswith("HARVEST_")]:
        monkeypatch.delenv(variable)
    monkeypatch.chdir(tmp_path)
    return Harvest(tmp_path)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with an HTML page and, in a subfolder, a text file and its copy."""
    folder = tmp_path / "tree"
    (folder / "notes").mkdir(parents=True)
    (folder / "page.html").write_text("<html><title>Moby</title><body>The white whale again.</body></html>")
    (folder / "notes" / "a.txt").write_text("Call me Ishmael.\n")
    (folder / "notes" / "copy.txt").write_text("Call me Ishmael.\n")
    return folder


@pytest.fixture
def site() -> Iterator[Site]:
    """The sample site, served for one test."""
    with Site() as running:
        yield running


@pytest.fixture
def nested() -> Callable[[Mapping[str, bytes]], bytes]:
    """A function that packs files into a tar.gz within a zip; the same files give the same bytes."""

    def build(files: Mapping[str, bytes]) -> bytes:
        inner = io.BytesIO()
        with tarfile.open(fileobj=inner, mode="w:gz") as tar:
            for name, body in files.items():
                member = tarfile.TarInfo(name)
                member.size = len(body)
                tar.addfile(member, io.BytesIO(body))
        outer = io.BytesIO()
        with zipfile.ZipFile(outer, "w") as archive:
            archive.writestr("inner.tar.gz", inner.getvalue())
        return outer.getvalue()

    return build
