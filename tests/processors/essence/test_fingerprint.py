"""The fingerprint of the rules covers the code that decides what an object gives, and nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from processors.essence import fingerprint
from processors.essence.fingerprint import ROOTS, closure, code_digest, rules_fingerprint
from processors.essence.stage import EssenceSettings

LOADED = """
import sys
from processors.essence import recognize, stage, summarize, unnest
recognize.preload(), summarize.preload(), unnest.unnesters()
print(*sorted(name for name in sys.modules if name.partition(".")[0] in ("processors", "schemas")))
"""


@pytest.fixture
def tree(root: Path, tmp_path: Path) -> dict[str, Path]:
    """A copy of the packages that the fingerprint reads."""
    for name in ROOTS:
        shutil.copytree(root / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    return {name: tmp_path / name for name in ROOTS}


@pytest.mark.slow
def test_each_file_of_the_closure_changes_the_fingerprint(
    tree: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One byte more in any module or data file of the closure changes the fingerprint."""
    # All files are read each time, but each content is searched for imports once.
    imported = fingerprint._imported
    monkeypatch.setattr(fingerprint, "_imported", cache(lambda source: list(imported(source))))
    before = code_digest(tree)
    for path in closure(tree):
        file = tmp_path / path
        content = file.read_bytes()
        file.write_bytes(content + b"\n")
        assert code_digest(tree) != before, path
        file.write_bytes(content)
    assert code_digest(tree) == before


def test_closure_holds_all_that_essence_imports(root: Path) -> None:
    """Every module of ours that essence loads, with all its plug-ins, is in the closure."""
    answer = subprocess.run([sys.executable, "-c", LOADED], cwd=root, check=True, capture_output=True, text=True)
    files = {path.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for path in closure({n: root / n for n in ROOTS})}
    assert set(answer.stdout.split()) <= files


def test_other_code_does_not_change_the_fingerprint(tree: dict[str, Path], tmp_path: Path) -> None:
    """Decisions of the frontier and of Brokers, and the query language, are no rules of essence."""
    before = code_digest(tree)
    for path in ("frontier/stage.py", "broker/register.py", "query/parser.py"):
        (tmp_path / "processors" / path).write_text("# changed\n")
    assert code_digest(tree) == before


@pytest.mark.parametrize(
    "path", ["processors/essence/recognize/types.toml", "processors/essence/formats/tex_fonts.py", "processors/identity.py"]
)
def test_closure_has_data_formats_and_identity(path: str, root: Path) -> None:
    """The table of types, readers of formats, and how URLs are written are in the closure."""
    assert path in closure({name: root / name for name in ROOTS})


def test_settings_change_the_fingerprint() -> None:
    """Other settings of essence have another fingerprint; equal ones have the same."""
    one, other = EssenceSettings(gatherer="a"), EssenceSettings(gatherer="a", full_text=1)
    assert rules_fingerprint(one) == rules_fingerprint(EssenceSettings(gatherer="a")) != rules_fingerprint(other)
