"""A machine without Chromium."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.sinks.gateway.browser import chromium


def test_missing_browser_is_an_error_that_names_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without the browser, tests fail, and say which package is missing."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(chromium.ChromiumMissingError, match=r"install the Debian package chromium$"), chromium.chromium():
        pytest.fail("there is no browser")


@pytest.mark.parametrize(("name", "package"), [("chromium", ""), ("chromium-browser", ""), ("chrome", "chromium\n")])
def test_missing_package_is_printed_for_make(name: str, package: str, root: Path, tmp_path: Path) -> None:
    """Make gets the name of the package to install if there is no browser of a known name, and no name otherwise."""
    (tmp_path / name).touch(0o755)
    command = [sys.executable, "-m", "tests.sinks.gateway.browser.chromium"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=root, env={"PATH": str(tmp_path)})
    assert done.stdout == package
