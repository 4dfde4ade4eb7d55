"""Fingerprint of the rules of essence: the code that determines the output for an object, and the settings.

The code is the closure of what `stage.py` imports from `processors` and `schemas`, read from the sources, with every plug-in of
`summarize` and `unnest`, and the data files beside those modules. Objects that were summarized under another fingerprint are
summarized again, so a file outside the closure must not influence the output; a test compares the closure with the modules that
are really imported.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from importlib import resources
from importlib.resources.abc import Traversable

import msgspec

from processors.essence.member import EssenceSettings

ENTRY = "processors.essence.stage"
PLUGINS = ("processors.essence.listings", "processors.essence.summarize", "processors.essence.unnest")
"""Packages whose modules are found by listing them."""
ROOTS = ("processors", "schemas")
DATA = (".toml", ".tsv", ".txt")
"""Suffixes of data files; the Avro schemas have an evolution of their own (`schemas/history`)."""

_IMPORT = re.compile(
    r"^[ \t]*(?:from[ ]+((?:processors|schemas)[\w.]*)[ ]+import[ ]+(\([^)]*\)|[^\n#]*)|import[ ]+((?:processors|schemas)[\w.]*))"
    r"|[\"']((?:processors|schemas)\.[\w.]+)[\"']",
    re.MULTILINE,
)
"""An import from this project, or the name of one of its modules in a string: `import_module("processors...")`."""


def code_digest(roots: Mapping[str, Traversable]) -> bytes:
    """Return the digest of the closure. `roots`: the folder of each package of `ROOTS`."""
    digest = hashlib.sha256()
    for name, content in sorted(closure(roots).items()):
        digest.update(f"{name}\n{len(content)}\n".encode() + content)
    return digest.digest()


def closure(roots: Mapping[str, Traversable]) -> Mapping[str, bytes]:
    """Return the files that determine the output for an object, by their paths from the root of the project."""
    tree = {path: file for name, folder in roots.items() for path, file in _files(folder, name)}
    waiting = [ENTRY, *(_module(path) for path in tree if path.endswith(".py") and _module(path).startswith(PLUGINS))]
    found: dict[str, bytes] = {}
    while waiting:
        name = waiting.pop()
        for path in _sources(name, tree):
            if path not in found:
                found[path] = tree[path].read_bytes()
                waiting += _imported(found[path].decode())
    folders = {path.rpartition("/")[0] for path in found}
    beside = (path for path in tree if path.endswith(DATA) and path.rpartition("/")[0] in folders - {"schemas"})
    return found | {path: tree[path].read_bytes() for path in beside}


def _files(folder: Traversable, path: str) -> Iterator[tuple[str, Traversable]]:
    for inner in folder.iterdir():
        if inner.is_dir() and inner.name != "__pycache__":
            yield from _files(inner, f"{path}/{inner.name}")
        elif inner.name.endswith((".py", *DATA)):
            yield f"{path}/{inner.name}", inner


def _module(path: str) -> str:
    """Return the name of the module in a file."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _sources(name: str, tree: Mapping[str, Traversable]) -> Iterator[str]:
    """Yield the files of a module, if it is one: its own, and those of its parent packages, which are imported before it."""
    path = name.replace(".", "/")
    if f"{path}.py" in tree:
        yield f"{path}.py"
    while path:
        if f"{path}/__init__.py" in tree:
            yield f"{path}/__init__.py"
        path = path.rpartition("/")[0]


def _imported(source: str) -> Iterator[str]:
    """Yield the names that a source imports from this project; some are names of functions, not of modules."""
    for package, names, module, text in _IMPORT.findall(source):
        yield package or module or text
        yield from (f"{package}.{part.split()[0]}" for part in names.strip("()").split(",") if package and part.split())


@cache
def _code() -> bytes:
    return code_digest({name: resources.files(name) for name in ROOTS})


@lru_cache(maxsize=8)
def rules_fingerprint(settings: EssenceSettings) -> str:
    """Return 12 hex digits that change with the code of essence and with its settings."""
    return hashlib.sha256(_code() + msgspec.json.encode(settings, order="sorted")).hexdigest()[:12]
