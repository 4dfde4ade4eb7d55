"""The architecture: no circles, parts of Essence apart, folders of a size, one place for the topology, Brokers and schemes."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

Parsed = Callable[[str], Sequence[tuple[str, ast.Module]]]

PACKAGES = ("schemas", "processors", "sinks", "streams")
ESSENCE = "processors.essence."
APART = ("recognize", "unnest", "summarize")
"""Parts of Essence that import `formats`, and never one another."""
MOST = 25
"""Modules of a folder at the most."""
LARGE = ("processors/essence/summarize/source", "processors/essence/summarize/text", "processors/essence/unnest/containers")
"""Folders of one format a file, which have as many as there are formats."""
DRAWS = {
    "streams/config/topology.py",
    "streams/embedded/runner.py",
    "streams/kafka/worker/worker.py",
    "streams/topology/asyncapi.py",
}
"""Modules that draw the topology, each from settings: for commands, both runners, and asyncapi.json, which has the defaults."""


@pytest.fixture(scope="module")
def modules(parsed: Parsed) -> Mapping[str, ast.Module]:
    """The modules of the project by their names."""
    return {_name(path): tree for package in PACKAGES for path, tree in parsed(package)}


def _name(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _imported(tree: ast.Module, modules: Mapping[str, ast.Module]) -> Iterator[str]:
    """Yield the modules of ours that a source imports when it runs, inside of functions too."""
    types = {id(inner) for node in ast.walk(tree) if _is_for_types(node) for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if id(node) in types:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module in modules:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            yield from inner & modules.keys() or {str(node.module)}


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the groups of modules that import each other, directly or by way of others."""
    reached: dict[str, set[str]] = {}
    for start in graph:
        seen, waiting = set[str](), [*graph[start]]
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                waiting += graph.get(name, ())
        reached[start] = seen
    groups = {
        tuple(sorted({name, *(other for other in seen if name in reached[other])}))
        for name, seen in reached.items()
        if name in seen
    }
    return [list(group) for group in sorted(groups)]


def test_no_circle_of_imports(modules: Mapping[str, ast.Module]) -> None:
    """No module imports itself by way of others."""
    assert circles({name: {*_imported(tree, modules)} for name, tree in modules.items()}) == []


def test_circles_are_found() -> None:
    """Two modules that import each other by way of a third are reported as one circle; a mere chain is not."""
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]
    assert circles({"a": {"b"}, "b": {"c"}, "c": set()}) == []


def test_parts_of_essence_do_not_import_each_other(modules: Mapping[str, ast.Module]) -> None:
    """Recognition, unnesting and summarizing import formats, and never one another; formats import none of them."""
    wrong = []
    for name, tree in modules.items():
        part = name.removeprefix(ESSENCE).partition(".")[0] if name.startswith(ESSENCE) else ""
        for other in _imported(tree, modules) if part in (*APART, "formats") else ():
            beside = other.removeprefix(ESSENCE).partition(".")[0] if other.startswith(ESSENCE) else ""
            wrong += [(name, other)] if beside in APART and beside != part else []
    assert wrong == []


def test_folders_are_small(root: Path) -> None:
    """A folder has few enough modules to be seen at once, unless it has one for each format."""
    sizes = {p.parent.relative_to(root).as_posix(): 0 for name in PACKAGES for p in (root / name).rglob("__init__.py")}
    for folder in sizes:
        sizes[folder] = len([path for path in (root / folder).glob("*.py") if path.name != "__init__.py"])
    assert {folder: size for folder, size in sizes.items() if size > MOST and folder not in LARGE} == {}


def test_topology_is_drawn_from_settings(parsed: Parsed) -> None:
    """The topology is drawn in four places, each time from settings; everything else is given it."""
    calls = [
        (path, len(node.args))
        for path, tree in (each for package in PACKAGES for each in parsed(package))
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "topology"
    ]
    assert {path for path, _ in calls} == DRAWS
    assert {count for _, count in calls} == {1}


def test_broker_main_is_named_once(parsed: Parsed) -> None:
    """The name of the Broker that is always there is written in one place."""
    named = [
        path
        for path, tree in (each for package in PACKAGES for each in parsed(package))
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.fullmatch(r"(?:[a-z]+\.)?main(?:\.[a-z]+)?", node.value)
    ]
    assert [path for path in named if path != "streams/cli/__init__.py"] == ["processors/broker/definition.py"]


def test_schemes_are_decided_by_the_table(parsed: Parsed) -> None:
    """Nothing tests the scheme of a URL by its text but the table, and those who read and write URLs of files."""
    scheme = re.compile(r"(?:file|https?):/{0,3}")
    wrong = set()
    for path, tree in (each for package in ("processors", "sinks", "streams") for each in parsed(package)):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("startswith", "removeprefix"):
                texts = [
                    c.value for a in node.args for c in ast.walk(a) if isinstance(c, ast.Constant) and isinstance(c.value, str)
                ]
                if any(scheme.fullmatch(text) for text in texts):
                    wrong.add(path)
    assert {path for path in wrong if "/summarize/" not in path} == {
        "processors/identity.py",
        "processors/urls.py",
        "streams/fetch/adapters/places.py",
    }
