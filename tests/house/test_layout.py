"""Layout of the repository: top level, folders and their READMEs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

TOP = {
    *("streams", "processors", "schemas", "sinks", "docker", "helm", "tests"),
    *("pyproject.toml", "README.md", "LICENSE", "Makefile", "CHANGELOG.md", "requirements.lock"),
}
"""Allowed names at the top level, except dot files."""
PACKAGES = ("processors", "schemas", "sinks", "streams")


def packages(root: Path) -> list[str]:
    """Return the paths of the project's Python packages."""
    return sorted(str(p.parent.relative_to(root)) for name in PACKAGES for p in (root / name).rglob("__init__.py"))


def test_top_level_is_the_agreed_one(root: Path, tracked: Sequence[Path]) -> None:
    """The top level has only the agreed folders and the files that conventions require there."""
    names = {path.relative_to(root).parts[0] for path in tracked}
    assert {name for name in names if not name.startswith(".")} <= TOP


def test_every_python_file_is_in_a_package_or_in_tests(root: Path, tracked: Sequence[Path]) -> None:
    """Code is in one of the four packages or in tests/; a folder of code has an __init__.py, except in tests/."""
    code = [path for path in tracked if path.suffix == ".py"]
    assert {path.relative_to(root).parts[0] for path in code} <= {*PACKAGES, "tests"}
    bare = {path.parent for path in code if "tests" not in path.parts and not (path.parent / "__init__.py").is_file()}
    assert not bare


def test_only_packages_have_an_init_file(root: Path, tracked: Sequence[Path]) -> None:
    """tests/, docker/ and helm/ are not packages: in the root, docker/ would shadow the Docker client."""
    inits = [path.relative_to(root).parts for path in tracked if path.name == "__init__.py"]
    wrong = [parts for parts in inits if parts[0] not in PACKAGES and parts[:2] != ("tests", "samples")]
    assert not wrong


def test_every_folder_says_what_lives_there(root: Path) -> None:
    """Each package and tests/ has a README.md that begins with what lives there and what does not."""
    wrong = []
    for folder in [*packages(root), "tests"]:
        readme = root / folder / "README.md"
        start = re.split(r"(?m)^##|^\|", readme.read_text("utf-8"))[0].lower() if readme.is_file() else ""
        says = [re.search(words, start) for words in (r"^# ", r"\b(lives?|here|holds?)\b", r"\b(not|no|nothing|neither)\b")]
        if not all(says):
            wrong.append(folder)
    assert not wrong


def test_tables_of_modules_are_complete(root: Path, tracked: Sequence[Path]) -> None:
    """A README's table of files lists every module of its folder, and only existing ones."""
    wrong = []
    for readme in (path for path in tracked if path.name == "README.md"):
        text = readme.read_text("utf-8")
        if re.search(r"(?m)^\| (file|module) \|", text):
            rows = "".join(row.split("|")[1] for row in text.splitlines() if row.startswith("| `"))
            modules = {path.name for path in tracked if path.parent == readme.parent and path.suffix == ".py"}
            named = set(re.findall(r"`(\w+(?:\.py)?)`", rows))
            gone = {name for name in named if name.endswith(".py")} - modules
            # Test modules need no row: their names and docstrings describe them.
            plain = ("__",) if "tests" not in readme.relative_to(root).parts else ("__", "test_", "conftest")
            missing = {name for name in modules - named if name[:-3] not in named and not name.startswith(plain)}
            wrong += [f"{readme.relative_to(root)}: {name}" for name in sorted(gone | missing)]
    assert not wrong
