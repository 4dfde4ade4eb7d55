"""Fixtures of the image and chart tests: the checking tools, the rendered manifests, and the rules to check against."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from streams.config.settings import known, load
from tests.deploy import tools
from tests.deploy.manifests import VALUES, Manifest
from tests.servers.certificates import Authority

PINNED = re.compile(r"^[a-z0-9./_-]+:(v?\d+\.\d+\.\d+[a-z0-9.-]*)(@sha256:[0-9a-f]{64})?$")
"""An image reference with a complete version: three numbers, and optionally a digest."""


MOUNTED = re.compile(r"/run/secrets/|/etc/harvest/")
"""Where secrets are mounted."""


class HelmError(Exception):
    """Helm rejected the chart or the values."""


class Helm:
    """Helm's SDK, in a child process."""

    def __init__(self, chart: Path) -> None:
        self.chart = chart
        command = [sys.executable, str(Path(__file__).with_name("helm_child.py")), str(tools.HOME)]
        self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def _ask(self, what: str, path: Path, values: Mapping[str, Any] | None = None) -> Any:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        print(json.dumps({"what": what, "path": str(path), "values": values or {}}), file=self._child.stdin, flush=True)
        answer = json.loads(self._child.stdout.readline())
        if "error" in answer:
            raise HelmError(answer["error"])
        return answer["answer"]

    def lint(self, values: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """The messages of `helm lint --strict`."""
        return list(self._ask("lint", self.chart, values))

    def template(self, values: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """The manifests of `helm template demo --namespace prod`. Raises HelmError."""
        return list(self._ask("template", self.chart, values))

    def notes(self, values: Mapping[str, Any] | None = None) -> str:
        """The notes printed after an installation."""
        return str(self._ask("notes", self.chart, values))

    def yaml(self, path: Path) -> Any:
        """The content of a YAML file with one document."""
        (found,) = self._ask("yaml", path)
        return found

    def close(self) -> None:
        """End the child process."""
        self._child.communicate()


@pytest.fixture(scope="session", autouse=True)
def installed() -> None:
    """Install the tools if they are missing; make has normally installed them already."""
    tools.install()


@pytest.fixture(scope="session")
def helm(installed: None, root: Path) -> Iterator[Helm]:
    """Helm, for the chart of the project."""
    found = Helm(root / "helm" / "harvest")
    yield found
    found.close()


@pytest.fixture(scope="session")
def rendered(helm: Helm) -> dict[str, list[Manifest]]:
    """The manifests of each set of values, by its name."""
    return {name: helm.template(values) for name, values in VALUES.items()}


@pytest.fixture(scope="session")
def plain(rendered: dict[str, list[Manifest]]) -> list[Manifest]:
    """The manifests with the default values."""
    return rendered["as it comes"]


@pytest.fixture(scope="session")
def full(rendered: dict[str, list[Manifest]]) -> list[Manifest]:
    """The manifests with every option enabled."""
    return rendered["all"]


@pytest.fixture(scope="session")
def settings_of(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A function that loads settings from environment variables; an unknown setting or an invalid value is an error.

    A file that would be mounted from a secret is replaced by one with a content of its kind.
    """
    folder = tmp_path_factory.mktemp("secrets")
    certificate, key = Authority(folder).sign("harvest")
    (folder / "secret").write_text("secret\n")
    files = {"_FILE": folder / "secret", "_KEY": key, "": certificate}

    def mounted(name: str, value: str) -> str:
        if not MOUNTED.match(value):
            return value
        return str(next(path for end, path in files.items() if name.endswith(end)))

    def read(environ: Mapping[str, str | None]) -> Any:
        ours = {name: mounted(name, str(value)) for name, value in environ.items() if name.startswith("HARVEST_")}
        named = {re.sub(r"_BROKERS_\w+_(QUERY|TTL)$", r"_BROKERS_NAME_\1", variable) for variable in ours}
        assert named <= {setting.variable for setting in known()}
        return load(None, None, ours)

    return read


@pytest.fixture(scope="session")
def pinned() -> re.Pattern[str]:
    """The pattern of an image reference with a complete version."""
    return PINNED
