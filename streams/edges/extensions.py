"""Loads the operator's additions to Essence from a folder and from installed packages (`processors/essence/extensions.py`).

    FOLDER/rules.toml     types, places and programs; may be missing
    FOLDER/*.py           one summarizer each: SUMMARIZER, as in the modules of processors/essence/summarize

and, of each package that the settings name, its entry points `harvest.summarizers`, each a Summarizer.

There are two steps, in two processes: `read` inspects files without running them, so that a runner knows their digest and reports
mistakes at once; `load` runs them, only in the forkserver, whose children then use them.

Laws:
- A mistake is one line that names the file or package (OwnError).
- What is loaded is what was read: a change in between is a mistake.
- All workers of one cluster must have the same additions: with others, each object is summarized anew.
- No bytecode is written beside the operator's files.
"""

from __future__ import annotations

import ast
import hashlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.metadata import Distribution, EntryPoint, PackageNotFoundError, distribution
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from processors.essence import extensions
from processors.essence.extensions import OwnError, Rules

RULES = "rules.toml"
GROUP = "harvest.summarizers"
"""Group of the entry points."""
MAX_FILE = 1 << 20
"""Maximum bytes of one file."""


class Extensions(msgspec.Struct, frozen=True, array_like=True):
    """The operator's additions: their places, and the digest of their content."""

    folder: str = ""
    packages: tuple[str, ...] = ()
    digest: str = ""

    def ordered(self) -> str:
        """Return the argument that makes a pool load them; "" for none."""
        return msgspec.json.encode(self).decode() if self.digest else ""


class _Found(msgspec.Struct, frozen=True):
    """Content of all additions."""

    rules: Rules
    modules: dict[str, str]
    """Source by path."""
    points: dict[str, EntryPoint]
    """By "package: name"."""
    digest: str


def read(folder: Path | None, packages: tuple[str, ...] = ()) -> Extensions:
    """Read the additions without running any of them. Raises OwnError."""
    if folder is None and not packages:
        return Extensions()
    return Extensions(str(folder.absolute()) if folder else "", packages, _find(folder, packages).digest)


def count_extensions(added: Extensions) -> dict[str, int]:
    """Return the numbers of types, places, programs and summarizers. Raises OwnError."""
    found = _find(Path(added.folder) if added.folder else None, added.packages)
    rules = found.rules
    return {
        "type": len(rules.types),
        "place": len(rules.places),
        "program": len(rules.programs),
        "summarizer": len(found.modules) + len(found.points),
    }


def load(added: Extensions, run: extensions.Run | None = None) -> Rules:
    """Run the additions and put them in force in this process; `run` runs programs. Returns their rules. Raises OwnError."""
    found = _find(Path(added.folder) if added.folder else None, added.packages)
    if found.digest != added.digest:
        raise OwnError(f"{added.folder or ', '.join(added.packages)}: was changed while it was loaded")
    plugins = {path: _run(path, source) for path, source in found.modules.items()}
    plugins |= {where: _loaded(where, point) for where, point in found.points.items()}
    extensions.install(found.rules, plugins, run)
    return found.rules


def _find(folder: Path | None, packages: tuple[str, ...]) -> _Found:
    digest, rules, modules = hashlib.sha256(), Rules(), dict[str, str]()
    for path in _files(folder) if folder else ():
        text = _text(path)
        digest.update(f"{path.name} {len(text)}\n{text}".encode())
        if path.name == RULES:
            rules = _rules(path, text)
            for name, program in sorted(rules.programs.items()):
                digest.update(_stamped(f"{path}: programs.{name}", program.command))
        else:
            _check(path, text)
            modules[str(path)] = text
    points = {}
    for package in packages:
        found = _package(package)
        mine = [point for point in found.entry_points if point.group == GROUP]
        if not mine:
            raise OwnError(f"{package}: no entry point {GROUP}")
        for point in sorted(mine, key=lambda p: p.name):
            points[f"{package}: {point.name}"] = point
            digest.update(f"{package} {found.version} {point.name} {point.value}\n".encode())
    return _Found(rules, modules, points, digest.hexdigest()[:16])


def _files(folder: Path) -> Iterator[Path]:
    """Yield the relevant files of a folder, in order of name. Raises OwnError."""
    try:
        found = sorted(folder.iterdir())
    except OSError as error:
        raise OwnError(f"{folder}: {error.strerror}") from error
    return (p for p in found if p.name == RULES or (p.suffix == ".py" and not p.name.startswith((".", "_"))))


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE + 1)
    except OSError as error:
        raise OwnError(f"{path}: {error.strerror}") from error
    # First of all: a truncated file may end inside a character.
    if len(data) > MAX_FILE:
        raise OwnError(f"{path}: more than {MAX_FILE:,} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise OwnError(f"{path}: not UTF-8") from error


def _rules(path: Path, text: str) -> Rules:
    try:
        return extensions.parse_rules(text)
    except OwnError as error:
        raise OwnError(f"{path}: {error}") from error


def _stamped(where: str, command: Sequence[str]) -> bytes:
    """Return a stamp that changes with the content of the files in a program's command. Raises OwnError."""
    if not os.access(command[0], os.X_OK) or not Path(command[0]).is_file():
        raise OwnError(f"{where}: {command[0]}: no program, or none that may be run")
    digest = hashlib.sha256()
    for path in map(Path, command):
        with suppress(OSError, ValueError):
            if path.is_absolute() and path.is_file():
                with path.open("rb") as file:
                    digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.digest()


def _check(path: Path, source: str) -> None:
    """Check that a file is a module with a SUMMARIZER, as far as possible without running it. Raises OwnError."""
    try:
        tree = ast.parse(source, str(path))
    except SyntaxError as error:
        raise OwnError(f"{path}:{error.lineno}: {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise OwnError(f"{path}: no Python: {error}") from error
    if not any(isinstance(node, ast.Name) and node.id == "SUMMARIZER" for node in ast.walk(tree)):
        raise OwnError(f"{path}: no SUMMARIZER")


def _package(name: str) -> Distribution:
    try:
        return distribution(name)
    except (PackageNotFoundError, ValueError) as error:
        raise OwnError(f"{name}: no such package is installed") from error


def _run(path: str, source: str) -> Any:
    """Return the SUMMARIZER of a module. Raises OwnError for whatever the module raises."""
    name = f"harvest_own_{Path(path).stem}"
    module = ModuleType(name)
    module.__file__ = path
    # Dataclasses and pickle look for the module there.
    sys.modules[name] = module
    try:
        exec(compile(source, path, "exec"), module.__dict__)  # noqa: S102 - what the operator has put there is to be run
        return module.__dict__["SUMMARIZER"]
    except Exception as error:
        raise OwnError(f"{path}: {type(error).__name__}: {error}"[:500]) from error


def _loaded(where: str, point: EntryPoint) -> Any:
    try:
        return point.load()
    except Exception as error:
        raise OwnError(f"{where}: {type(error).__name__}: {error}"[:500]) from error
