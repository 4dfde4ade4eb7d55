import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import processors.essence.summarize
from processors.essence.summarize import Found, modules, summarizers
from tests.docs.types_table import with_table

MODULES = {name.rpartition(".")[2]: name for name in modules()}


@pytest.mark.parametrize("module", MODULES)
def test_every_summarizer_gives_its_golden_summary(
    module: str, samples: Path, golden: Callable[..., dict[str, Any]], regenerate: bool
) -> None:
    """Every summarizer has a golden sample of a type that it serves, and gives the expected summary beside it."""
    found = [p for p in samples.glob(f"{module}.*") if p.suffix != ".json"]
    assert len(found) == 1, f"tests/samples/summarize/{module}.EXTENSION is missing, or there are several"
    sample, expected = found[0], samples / f"{module}.json"
    known = json.loads(expected.read_text("utf-8")) if expected.exists() else {"name": sample.name}
    made = golden(sample, known["name"], known.get("stated", ""))
    if regenerate:
        expected.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", "utf-8")
    assert made == json.loads(expected.read_text("utf-8"))
    assert summarizers()[made["type"]].run.__module__ == MODULES[module]


@pytest.mark.parametrize("module", MODULES)
def test_second_file_compiles_no_pattern(
    module: str, samples: Path, summary: Callable[..., Found], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second file of a type compiles no pattern, whatever its name: that takes longer than a small file does."""
    sample = next(p for p in samples.glob(f"{module}.*") if p.suffix != ".json")
    name = Path(json.loads((samples / f"{module}.json").read_text("utf-8"))["name"])
    summary(os.fsencode(name), sample.read_bytes())
    compiled: list[str] = []
    monkeypatch.setattr(re._compiler, "compile", lambda pattern, _: compiled.append(pattern))  # type: ignore[attr-defined]
    summary(os.fsencode(name.with_stem(f"{name.stem}-2")), sample.read_bytes())
    assert compiled == []


def test_readme_table_of_types_is_current(regenerate: bool) -> None:
    """The README's table of types equals the one generated from rules and plug-ins."""
    path = Path(processors.essence.summarize.__file__).with_name("README.md")
    if regenerate:
        path.write_text(with_table(path.read_text("utf-8")), "utf-8")
    assert path.read_text("utf-8") == with_table(path.read_text("utf-8"))
