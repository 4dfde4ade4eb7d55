"""Python: the docstring of the module, classes, functions, imports, `__author__` and `__version__`.

Uses the parser of Python itself, and regular expressions where it fails (Python 2, templates) or a file is large.
"""

from __future__ import annotations

import ast
import re
import warnings
from typing import BinaryIO

from processors.essence.formats.text import read_text
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize._text import first_sentence
from processors.essence.summarize.source._source import MAX_SOURCE, add_all, add_comments, hash_comments, purpose

MAX_PARSED = 131_072
"""Characters of the longest source that is parsed: 30 ms."""

_DOCSTRING = re.compile(r"\A(?:\s++|#[^\n]*+\n|(?!))*+[rRuU]?(\"\"\"|''')(.*?)\1", re.DOTALL)
_CLASS = re.compile(r"^class[ \t]+(\w{1,100})", re.MULTILINE)
_FUNCTION = re.compile(r"^[ \t]*(?:async[ \t]+)?def[ \t]+(\w{1,100})", re.MULTILINE)
_IMPORT = re.compile(r"^(?:import|from)[ \t]+([\w.]{1,100})", re.MULTILINE)
_SAYS = re.compile(r"^__(author|version)__(?:[ \t]*:[ \t]*str)?[ \t]*=[ \t]*(['\"])([^'\"\\\n]{1,200})\2", re.MULTILINE)


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add description and abstract (of the docstring), classes, functions, imports, author, version and comments."""
    text = read_text(body, facts.charset, MAX_SOURCE)
    tree = _parse(text)
    docstring = _by_tree(tree, found) if tree else _by_lines(text, found)
    if docstring:
        found.add("description", purpose(docstring) or first_sentence(docstring))
        found.add("abstract", docstring)
    for name, _, value in _SAYS.findall(text):
        add_all(found, name, [value])
    add_comments(found, hash_comments(text[:65_536]))


def _parse(text: str) -> ast.Module | None:
    """Return the syntax tree of a source; None if the source is too long, or Python rejects it."""
    if len(text) > MAX_PARSED:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    # Deep nesting raises MemoryError or RecursionError here, long before memory is short.
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def _by_tree(tree: ast.Module, found: Found) -> str:
    """Add the names that a module defines and imports; return its docstring."""
    classes, functions, imports = [], [], []
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            classes.append(node.name)
            methods = (n for n in node.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
            functions += [n.name for n in methods if not n.name.startswith("_")]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            functions.append(node.name)
        elif isinstance(node, ast.Import):
            imports += [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            imports.append(node.module)
    _add(found, classes, functions, imports)
    return ast.get_docstring(tree) or ""


def _by_lines(text: str, found: Found) -> str:
    """Same as `_by_tree`, by regular expressions, for a source without a syntax tree."""
    functions = (f for f in _FUNCTION.findall(text) if not f.startswith("_"))
    _add(found, _CLASS.findall(text), list(functions), _IMPORT.findall(text))
    docstring = _DOCSTRING.match(text[:65_536])
    return docstring[2].strip() if docstring else ""


def _add(found: Found, classes: list[str], functions: list[str], imports: list[str]) -> None:
    add_all(found, "classes", classes)
    add_all(found, "functions", functions)
    add_all(found, "imports", imports)


SUMMARIZER = Summarizer(types=("Python",), run=run)
