"""Rules of imports between packages, and of purity of processors."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

Parsed = Callable[[str], Sequence[tuple[str, ast.Module]]]

OURS = {"schemas", "processors", "sinks", "streams"}
MAY_IMPORT = {
    "schemas": {"schemas"},
    "processors": {"schemas", "processors"},
    "sinks": {"schemas", "processors", "sinks"},
    "streams": OURS,
}

IMPURE = {
    "clock": {"time", "sched", "zoneinfo"},
    "network": {
        "socket",
        "ssl",
        "select",
        "selectors",
        "asyncio",
        "aiohttp",
        "requests",
        "ftplib",
        "http",
        "urllib.request",
        "smtplib",
    },
    "Kafka": {"kafka", "aiokafka", "confluent_kafka", "faust"},
    "logger": {"logging", "structlog"},
    "processes": {"subprocess", "multiprocessing", "threading", "concurrent", "signal"},
    "chance": {"random", "secrets", "uuid"},
    "files and state": {"shutil", "pathlib", "glob", "apsw", "sqlite3", "fsspec"},
}
"""Modules that a processor must not import, by their effect."""
IMPURE_NAMES = {
    *("os.environ", "os.environb", "os.getenv", "os.getpid", "os.listdir", "os.scandir", "os.stat", "os.walk", "os.urandom"),
    *("datetime.now", "datetime.utcnow", "datetime.today", "date.today", "sys.argv", "sys.stdin", "sys.stdout", "sys.stderr"),
}
IMPURE_CALLS = {"open", "print", "input", "exec", "eval"}
"""Built-in functions with external effects, or that execute text as code."""

HEAVY = {
    *("lxml", "selectolax", "pypdfium2", "pdfminer", "magic", "libarchive", "py3langid", "numpy", "cchardet"),
    *("tantivy", "aiohttp", "uvloop", "ada_url", "brotli"),
    *("faust", "aiokafka", "confluent_kafka", "rocksdict", "opensearchpy", "testcontainers", "docker", "prometheus_client"),
}
"""Parsers, indexes and servers, which `harvest --help` does not need."""
HELP = """
import sys
from streams.cli import main
sys.argv = ["harvest", "--help"]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print("|" + " ".join(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def imports(tree: ast.AST) -> Iterator[str]:
    """Yield the modules that a source imports; for `from a import b` both a and a.b, since b may be a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def dotted(node: ast.AST) -> str:
    """Return `a.b` for the expression a.b, where a may itself be an attribute; empty for everything else."""
    if not isinstance(node, ast.Attribute):
        return ""
    owner = node.value.id if isinstance(node.value, ast.Name) else getattr(node.value, "attr", "")
    return f"{owner}.{node.attr}"


def touches(tree: ast.Module) -> Iterator[str]:
    """Yield the impure modules, attributes and built-in functions that a source uses."""
    banned = set().union(*IMPURE.values())
    defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    yield from (name for name in imports(tree) if any(name == b or name.startswith(f"{b}.") for b in banned))
    yield from (name for name in imports(tree) if name in IMPURE_NAMES)
    for node in ast.walk(tree):
        if dotted(node) in IMPURE_NAMES:
            yield dotted(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in IMPURE_CALLS - defined:
            yield f"{node.func.id}()"


@pytest.mark.parametrize("package", sorted(MAY_IMPORT))
def test_dependencies_point_one_way(package: str, parsed: Parsed) -> None:
    """Schemas <- processors <- sinks, streams; sinks never import streams; nobody imports the tests."""
    forbidden = (OURS | {"tests"}) - MAY_IMPORT[package]
    wrong = {(path, name) for path, tree in parsed(package) for name in imports(tree) if name.partition(".")[0] in forbidden}
    assert not wrong


def test_processors_are_pure(parsed: Parsed) -> None:
    """A processor uses no Kafka, clock, network, environment, logger, process, file path, or randomness."""
    wrong = {(path, what) for path, tree in parsed("processors") for what in touches(tree)}
    assert not wrong


@pytest.mark.parametrize(
    "source",
    [
        *("import time", "from time import time", "import os.path, socket", "import os\nos.environ['A']", "from os import environ"),
        *("import datetime\ndatetime.datetime.now()", "from datetime import datetime\ndatetime.now()", "open('a')"),
        *("import urllib.request", "from urllib import request", "def f():\n    import subprocess"),
    ],
)
def test_impure_code_is_detected(source: str) -> None:
    """Each kind of impure code is detected, anywhere in a source."""
    assert list(touches(ast.parse(source)))


@pytest.mark.parametrize(
    "source", ["import datetime", "from urllib.parse import quote", "x.open()", "def open(): ...\nopen()", "import timeit_"]
)
def test_pure_code_is_accepted(source: str) -> None:
    """Code that only resembles impure code is accepted."""
    assert not list(touches(ast.parse(source)))


def test_help_imports_nothing_heavy(root: Path) -> None:
    """`harvest --help` imports no parser, index or server library, so that it answers at once."""
    answer = subprocess.run([sys.executable, "-c", HELP], check=True, capture_output=True, text=True, cwd=root)
    text, _, modules = answer.stdout.rpartition("|")
    assert "gather" in text
    assert not HEAVY & set(modules.split())
