"""Text that is forbidden in all files of the project, and obligations of every test."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence

import pytest

Parsed = Callable[[str], Sequence[tuple[str, ast.Module]]]
Texts = Sequence[tuple[str, str]]

# Split, so that this file does not contain the text that it forbids.
MACHINE = re.compile(
    r"(?<![\w./*-])/(?:" + "|".join(["wor" + "k/", "roo" + r"t\b", "tm" + "p/", "hom" + "e/[a-z]", "op" + "t/"]) + ")"
)
"""Paths of a particular machine: absolute paths in code or documentation do not exist elsewhere."""
HOSTS = ["pypi" + ".org", "python" + "hosted.org", "npm" + "js.org", "ana" + "conda.org", "--index" + "-url", "--find" + "-links"]
UNFINISHED = re.compile(r"\b(?:" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"]) + r")\b|pragma:\s*no\s*cover")
SKIPS = {"skip", "skipif", "xfail", "importorskip", "skipTest", "skipUnless", "skipIf"}


def hits(texts: Texts, found: Callable[[str], bool]) -> list[str]:
    """Return the lines in which a match is found, as path:number: line."""
    lines = ((path, number, line) for path, text in texts for number, line in enumerate(text.splitlines(), start=1))
    return [f"{path}:{number}: {line.strip()[:100]}" for path, number, line in lines if found(line)]


def all_tests(parsed: Parsed) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Yield every test function, methods included, as (path:name, definition)."""
    for path, tree in parsed("tests"):
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                yield f"{path}:{node.name}", node


def test_no_machine_paths(texts: Texts) -> None:
    """No file has a path of a particular machine."""
    ours = [(path, text) for path, text in texts if path not in ("LICENSE", "requirements.lock")]
    assert not hits(ours, lambda line: bool(MACHINE.search(line)))


def test_no_package_hosts(texts: Texts) -> None:
    """No file names a package index: the source of packages is configured on the machine."""
    assert not hits(texts, lambda line: any(host in line for host in HOSTS))


def test_no_unfinished_work_is_noted(texts: Texts) -> None:
    """No file has a note of unfinished work, or a line excluded from coverage."""
    ours = [(path, text) for path, text in texts if path not in ("LICENSE", "requirements.lock")]
    assert not hits(ours, lambda line: bool(UNFINISHED.search(line)))


def test_no_test_is_skipped(parsed: Parsed) -> None:
    """Every test runs on every machine: none is skipped or expected to fail."""
    wrong = []
    for path, tree in parsed("tests"):
        used = [n for n in ast.walk(tree) if isinstance(n, ast.Attribute) and n.attr in SKIPS]
        wrong += [f"{path}:{n.lineno}" for n in used if ast.unparse(n).startswith(("pytest.", "unittest.", "self."))]
        named = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module in ("pytest", "unittest")]
        wrong += [f"{path}:{n.lineno}" for n in named if any(alias.name in SKIPS for alias in n.names)]
    assert not wrong


def test_every_test_states_a_promise(parsed: Parsed) -> None:
    """Each test states its promise in its docstring."""
    assert not [name for name, node in all_tests(parsed) if not ast.get_docstring(node)]


@pytest.mark.parametrize("line", ["cd /" + "work/main", "see `/" + "root`", 'open("/' + 'tmp/x")'])
def test_machine_paths_are_found(line: str) -> None:
    """The pattern finds the paths of particular machines."""
    assert MACHINE.search(line)


@pytest.mark.parametrize("line", ["/usr/share/doc", "http://example.org/" + "work/x", "the root", "a/" + "tmp/b", "/workers"])
def test_other_paths_are_ignored(line: str) -> None:
    """The pattern ignores paths that every machine has, and parts of longer words."""
    assert not MACHINE.search(line)
