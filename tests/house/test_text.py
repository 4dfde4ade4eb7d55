"""What no file of the project says, and what every test does."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence

import pytest

Parsed = Callable[[str], Sequence[tuple[str, ast.Module]]]
Texts = Sequence[tuple[str, str]]

# Written in pieces, so that this file does not hold what it looks for.
MACHINE = re.compile(
    r"(?<![\w./*-])/(?:" + "|".join(["wor" + "k/", "roo" + r"t\b", "tm" + "p/", "hom" + "e/[a-z]", "op" + "t/"]) + ")"
)
"""Paths that exist on somebody's machine; an absolute path in running code or documentation is one that a reader lacks."""
HOSTS = ["pypi" + ".org", "python" + "hosted.org", "npm" + "js.org", "ana" + "conda.org", "--index" + "-url", "--find" + "-links"]
UNFINISHED = re.compile(r"\b(?:" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"]) + r")\b|pragma:\s*no\s*cover")
SKIPS = {"skip", "skipif", "xfail", "importorskip", "skipTest", "skipUnless", "skipIf"}


def hits(texts: Texts, found: Callable[[str], bool]) -> list[str]:
    """The lines that something is found in, as path:number: line."""
    lines = ((path, number, line) for path, text in texts for number, line in enumerate(text.splitlines(), start=1))
    return [f"{path}:{number}: {line.strip()[:100]}" for path, number, line in lines if found(line)]


def all_tests(parsed: Parsed) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Every test function, methods included, as (path:name, definition)."""
    for path, tree in parsed("tests"):
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                yield f"{path}:{node.name}", node


def test_no_machine_paths(texts: Texts) -> None:
    """No file names a path of somebody's machine."""
    ours = [(path, text) for path, text in texts if path not in ("LICENSE", "requirements.lock")]
    assert not hits(ours, lambda line: bool(MACHINE.search(line)))


def test_no_package_hosts(texts: Texts) -> None:
    """No file names a package index: where packages come from is the business of the machine."""
    assert not hits(texts, lambda line: any(host in line for host in HOSTS))


def test_nothing_is_left_for_later(texts: Texts) -> None:
    """No file holds a note of work left undone, or a line kept from measurement."""
    ours = [(path, text) for path, text in texts if path not in ("LICENSE", "requirements.lock")]
    assert not hits(ours, lambda line: bool(UNFINISHED.search(line)))


def test_no_test_is_skipped(parsed: Parsed) -> None:
    """Every test runs on every machine: none is skipped, and none is expected to fail."""
    wrong = []
    for path, tree in parsed("tests"):
        used = [n for n in ast.walk(tree) if isinstance(n, ast.Attribute) and n.attr in SKIPS]
        wrong += [f"{path}:{n.lineno}" for n in used if ast.unparse(n).startswith(("pytest.", "unittest.", "self."))]
        named = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module in ("pytest", "unittest")]
        wrong += [f"{path}:{n.lineno}" for n in named if any(alias.name in SKIPS for alias in n.names)]
    assert not wrong


def test_every_test_states_a_promise(parsed: Parsed) -> None:
    """Each test says in its docstring what it promises."""
    assert not [name for name, node in all_tests(parsed) if not ast.get_docstring(node)]


@pytest.mark.parametrize("line", ["cd /" + "work/main", "see `/" + "root`", 'open("/' + 'tmp/x")'])
def test_machine_paths_are_seen(line: str) -> None:
    """The pattern finds what it is meant to find."""
    assert MACHINE.search(line)


@pytest.mark.parametrize("line", ["/usr/share/doc", "http://example.org/" + "work/x", "the root", "a/" + "tmp/b", "/workers"])
def test_other_paths_are_let_through(line: str) -> None:
    """The pattern leaves alone what every machine has, and what is a part of something longer."""
    assert not MACHINE.search(line)
