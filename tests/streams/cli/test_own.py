"""Own summarizers from a folder, a package and a program, as an operator uses them."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

RULES = """
[types.Recipe]
media = "text/x-recipe"
text = true
suffixes = ["recipe"]

[[places]]
url = "*/kitchen/*"
type = "Recipe"
"""
SUMMARIZER = """
from processors.essence.summarize import Summarizer


def run(facts, body, found):
    for line in body.read(65_536).decode().splitlines():
        found.add("ingredients", line)


SUMMARIZER = Summarizer(types=("Recipe",), run=run)
"""
Put = Callable[..., Path]


@pytest.fixture
def put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Put:
    """A function that writes a folder of rules and summarizers and sets it in the environment."""
    folder = tmp_path / "own"

    def made(**files: str) -> Path:
        folder.mkdir(exist_ok=True)
        for name, text in files.items():
            (folder / name.replace("__", ".")).write_text(text)
        monkeypatch.setenv("HARVEST_ESSENCE_OWN", str(folder))
        return folder

    return made


@pytest.fixture
def kitchen(tmp_path: Path) -> Path:
    """A tree with two recipes, one of them recognized by its folder alone, and a plain text."""
    folder = tmp_path / "tree"
    (folder / "kitchen").mkdir(parents=True)
    (folder / "cake.recipe").write_text("flour\neggs\n")
    (folder / "kitchen" / "soup").write_text("carrots\nsalt\n")
    (folder / "plain.txt").write_text("flour\n")
    return folder


def _types(harvest: Any, tree: Path) -> dict[str, str]:
    return {line["url"].rpartition("/")[2]: line["type"] for line in harvest.lines("summarize", tree)}


def test_own_folder_adds_a_type_and_its_changes_apply(harvest: Any, put: Put, kitchen: Path) -> None:
    """A search finds the attributes of an own summarizer; the next run repeats the summaries only after the summarizer changed."""
    put(rules__toml=RULES, recipe__py=SUMMARIZER)
    harvest("gather", kitchen, "--quiet")
    hits = {hit["url"].rpartition("/")[2]: hit["type"] for hit in harvest.lines("search", "type:Recipe")}
    assert hits == {"cake.recipe": "Recipe", "soup": "Recipe"}
    assert [hit["type"] for hit in harvest.lines("search", "ingredients:flour")] == ["Recipe"]
    (table,) = harvest.lines("gather", kitchen, "--quiet")
    assert table["nothing_changed"]
    put(recipe__py=SUMMARIZER.replace('"ingredients"', '"parts"'))
    harvest("gather", kitchen, "--quiet")
    assert len(harvest.lines("search", "parts:flour")) == 1
    assert not harvest.lines("search", "ingredients:flour")


def test_removed_own_folder_restores_builtin_types(harvest: Any, put: Put, kitchen: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the setting is removed, the next run summarizes with the built-in types again."""
    put(rules__toml=RULES, recipe__py=SUMMARIZER)
    harvest("gather", kitchen, "--quiet")
    monkeypatch.delenv("HARVEST_ESSENCE_OWN")
    harvest("gather", kitchen, "--quiet")
    assert not harvest.lines("search", "type:Recipe")


def test_program_summarizes_or_rejects(harvest: Any, put: Put, kitchen: Path) -> None:
    """A program may summarize a type; if it fails, the file is rejected with its message."""
    folder = put(rules__toml=RULES + f'[programs.Recipe]\ncommand = ["{kitchen.parent}/own/recipe.sh"]\n', recipe__sh="")
    (folder / "recipe.sh").write_text(
        "#!/bin/sh\nread first\n"
        'if [ "$first" = carrots ]; then echo no carrots >&2; exit 1; fi\n'
        'printf "@RECIPE { -\\nfirst{%d}:\\t%s\\n}\\n" ${#first} "$first"\n'
    )
    (folder / "recipe.sh").chmod(0o755)
    found = {line["url"].rpartition("/")[2]: line for line in harvest.lines("summarize", kitchen)}
    assert found["cake.recipe"]["attributes"]["first"] == ["flour"]
    assert found["soup"]["type"] == "Recipe"
    assert found["soup"]["attributes"]["reason"] == ["Recipe: recipe.sh: it ended with 1: no carrots"]


def test_package_contributes_only_if_named(
    harvest: Any, put: Put, kitchen: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An installed package contributes summarizers only if the settings name it."""
    put(rules__toml=RULES)
    site = tmp_path / "site"
    info = site / "kitchen_tools-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "kitchen_tools.py").write_text(SUMMARIZER)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: kitchen-tools\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[harvest.summarizers]\nrecipe = kitchen_tools:SUMMARIZER\n")
    monkeypatch.syspath_prepend(site)
    cake = kitchen / "cake.recipe"
    (line,) = harvest.lines("summarize", cake)
    assert "ingredients" not in line["attributes"]
    monkeypatch.setenv("HARVEST_ESSENCE_PACKAGES", "kitchen-tools")
    (line,) = harvest.lines("summarize", cake)
    assert line["attributes"]["ingredients"] == ["flour", "eggs"]


def test_hostile_summarizer_rejects_its_file_only(harvest: Any, put: Put, kitchen: Path) -> None:
    """If a summarizer opens a file or ends its process, its file is rejected with the reason, and all others are summarized."""
    put(rules__toml=RULES, recipe__py=SUMMARIZER.replace("    for line", '    open("/etc/hostname").read()\n    for line'))
    found = {line["url"].rpartition("/")[2]: line for line in harvest.lines("summarize", kitchen)}
    assert found["cake.recipe"]["attributes"]["reason"] == [
        "Recipe: PermissionError: [Errno 1] Operation not permitted: '/etc/hostname'"
    ]
    put(recipe__py=SUMMARIZER.replace("    for line", "    import os\n    os._exit(5)\n    for line"))
    found = {line["url"].rpartition("/")[2]: line for line in harvest.lines("summarize", kitchen)}
    assert found["cake.recipe"]["attributes"]["reason"] == ["crashed: the parser left with status 5"]
    assert found["plain.txt"]["type"] == "RawText"


def test_small_files_share_a_child_without_side_effects(harvest: Any, put: Put, tmp_path: Path) -> None:
    """Small files share a child: each gives its summary, in order, and one that crashes the child does not affect the others."""
    put(
        rules__toml=RULES,
        recipe__py=SUMMARIZER.replace(
            "    for line", "    import os\n    facts.name == b'41.recipe' and os._exit(5)\n    for line"
        ),
    )
    tree = tmp_path / "tree"
    tree.mkdir()
    for number in range(10, 70):
        (tree / f"{number}.recipe").write_text(f"egg {number}\n" * (9_000 if number == 30 else 1))
    found = harvest.lines("summarize", tree, "--jobs", 2)
    assert [line["attributes"]["file-name"] for line in found] == [[f"{number}.recipe"] for number in range(10, 70)]
    reasons = {line["attributes"]["file-name"][0]: line["attributes"].get("reason") for line in found}
    assert {name: reason for name, reason in reasons.items() if reason} == {"41.recipe": ["crashed: the parser left with status 5"]}
    # The same files, given one by one.
    named = harvest.lines("summarize", *sorted(tree.iterdir()), "--jobs", 2)
    assert [line["url"] for line in named] == [line["url"] for line in found]


@pytest.mark.slow
def test_members_that_time_out_do_not_affect_others(
    harvest: Any, put: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Members that time out do not affect the others: `summarize` gives the same reason for each of them as `gather`."""
    put(
        rules__toml=RULES, recipe__py=SUMMARIZER.replace("    for line", "    while facts.name < b'2':\n        pass\n    for line")
    )
    monkeypatch.setenv("HARVEST_SANDBOX_DEADLINE", "2")
    tree = tmp_path / "tree"
    tree.mkdir()
    with tarfile.open(tree / "all.tar", "w") as archive:
        for number in range(5):
            info = tarfile.TarInfo(f"{number}.recipe")
            info.size = 4
            archive.addfile(info, io.BytesIO(b"salt"))
    given = {line["url"]: line["attributes"].get("reason") for line in harvest.lines("summarize", tree)}
    harvest("gather", tree, "--quiet")
    kept = {line["value"]["url"]: line["value"]["attributes"].get("reason") for line in harvest.lines("cat", "summaries")}
    assert given == kept
    reasons = sorted((url.rpartition("#")[2][:1], reason) for url, reason in given.items() if reason and "#" in url)
    assert reasons == [(str(number), ["timed out (deadline)"]) for number in range(2)]
    assert len(given) == 6


MISTAKES = [
    ({"rules__toml": "[kinds]"}, 2, "rules.toml: Object contains unknown field `kinds`"),
    ({"rules__toml": '[programs.C]\ncommand = ["/nowhere/x"]'}, 2, "rules.toml: programs.C: /nowhere/x: no program"),
    ({"a__py": "x = ("}, 2, "a.py:1: '(' was never closed"),
    ({"a__py": "x" + "é" * (1 << 19)}, 2, "a.py: more than 1,048,576 bytes"),
    ({"a__py": "x = 1"}, 2, "a.py: no SUMMARIZER"),
    ({"a__py": "SUMMARIZER = 1"}, 1, "a.py: SUMMARIZER is a int, not a Summarizer"),
    ({"a__py": "import nowhere\nSUMMARIZER = 1"}, 1, "a.py: ModuleNotFoundError: No module named 'nowhere'"),
    ({"a__py": SUMMARIZER}, 1, "a.py: there is no type Recipe"),
]


@pytest.mark.parametrize(("files", "code", "said"), MISTAKES)
def test_mistake_in_own_file_is_an_error_of_one_line(
    harvest: Any, put: Put, kitchen: Path, files: dict[str, str], code: int, said: str
) -> None:
    """A mistake in an own file is an error of one line that names the file, and nothing is summarized."""
    put(**files)
    result = harvest("summarize", kitchen, code=code)
    assert said in result.stderr
    assert (result.stdout, result.stderr.count("\n")) == ("", 1)
    assert said in harvest("gather", kitchen, "--quiet", code=code).stderr


def test_missing_folder_or_package_is_an_error(harvest: Any, kitchen: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing folder or package is an error of one line, exit code 2."""
    monkeypatch.setenv("HARVEST_ESSENCE_OWN", "nowhere")
    assert "nowhere: No such file or directory" in harvest("summarize", kitchen, code=2).stderr
    monkeypatch.delenv("HARVEST_ESSENCE_OWN")
    monkeypatch.setenv("HARVEST_ESSENCE_PACKAGES", "no-such-package")
    assert "no-such-package: no such package is installed" in harvest("summarize", kitchen, code=2).stderr
    monkeypatch.setenv("HARVEST_ESSENCE_PACKAGES", "pytest")
    assert "pytest: no entry point harvest.summarizers" in harvest("summarize", kitchen, code=2).stderr


def test_doctor_reports_own_summarizers(harvest: Any, put: Put) -> None:
    """`harvest doctor` counts the own types, places, programs and summarizers, or names the mistake in them."""
    put(rules__toml=RULES, recipe__py=SUMMARIZER)
    assert "own summarizers: 1 type, 1 place, 0 programs, 1 summarizer" in harvest("doctor").stdout
    put(recipe__py="SUMMARIZER = 1")
    result = harvest("doctor", code=1)
    assert "recipe.py: SUMMARIZER is a int, not a Summarizer" in result.stdout
