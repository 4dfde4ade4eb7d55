"""What the tests of images and charts share: the tools, the files, and what they are held to."""

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

PINNED = re.compile(r"^[a-z0-9./_-]+:(v?\d+\.\d+\.\d+[a-z0-9.-]*)(@sha256:[0-9a-f]{64})?$")
"""An image that is one version: all three numbers, or a digest beside them."""


class HelmError(Exception):
    """Helm refused."""


class Helm:
    """Helm's SDK, in a child."""

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
        """What `helm lint --strict` says."""
        return list(self._ask("lint", self.chart, values))

    def template(self, values: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """The manifests that `helm template demo --namespace prod` gives. Raises HelmError."""
        return list(self._ask("template", self.chart, values))

    def notes(self, values: Mapping[str, Any] | None = None) -> str:
        """What is told after an installation."""
        return str(self._ask("notes", self.chart, values))

    def yaml(self, path: Path) -> Any:
        """A file of YAML with one document."""
        (found,) = self._ask("yaml", path)
        return found

    def close(self) -> None:
        """End the child."""
        self._child.communicate()


@pytest.fixture(scope="session", autouse=True)
def installed() -> None:
    """The tools are there; make has put them there already."""
    tools.install()


@pytest.fixture(scope="session")
def helm(installed: None, root: Path) -> Iterator[Helm]:
    """Helm, on the chart."""
    found = Helm(root / "helm" / "harvest")
    yield found
    found.close()


@pytest.fixture(scope="session")
def rendered(helm: Helm) -> dict[str, list[Manifest]]:
    """The manifests of each set of values."""
    return {name: helm.template(values) for name, values in VALUES.items()}


@pytest.fixture(scope="session")
def plain(rendered: dict[str, list[Manifest]]) -> list[Manifest]:
    """The manifests as they come."""
    return rendered["as it comes"]


@pytest.fixture(scope="session")
def full(rendered: dict[str, list[Manifest]]) -> list[Manifest]:
    """The manifests with all on."""
    return rendered["all"]


@pytest.fixture(scope="session")
def settings_of() -> Any:
    """A function from an environment to the settings that it gives; what is no setting, or no value of one, is an error."""

    def read(environ: Mapping[str, str | None]) -> Any:
        ours = {name: str(value) for name, value in environ.items() if name.startswith("HARVEST_")}
        named = {re.sub(r"_BROKERS_\w+_(QUERY|TTL)$", r"_BROKERS_NAME_\1", variable) for variable in ours}
        assert named <= {setting.variable for setting in known()}
        return load(None, None, ours)

    return read


@pytest.fixture(scope="session")
def pinned() -> re.Pattern[str]:
    """What the name of an image looks like that is one version."""
    return PINNED
