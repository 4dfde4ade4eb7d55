"""The READMEs held to the code: what lists code is not stale, what names files names files, and sessions print what they show."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from processors.essence.extensions import parse_rules
from streams.cli.app import app
from streams.config.settings import load
from streams.topology.flow import TopologySettings, topology
from tests.bench.__main__ import GROUPS
from tests.docs.generate import FILE, PAGES, PARTS, SESSION, commands, filled, masked, played, sessions
from tests.samples import make_corpus

ANEW = "run `python -m tests.docs.generate`, read what it changed, and commit it"


@pytest.fixture
def pages(root: Path) -> dict[str, str]:
    """Every Markdown file that is tracked or about to be, by its path."""
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-co", "--exclude-standard", "*.md"], capture_output=True, text=True, check=True
    )
    return {name: (root / name).read_text("utf-8") for name in listed.stdout.splitlines()}


@pytest.fixture
def page(pages: dict[str, str]) -> str:
    """README.md."""
    return pages["README.md"]


@pytest.mark.slow
def test_sessions(pages: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands in the READMEs print what these show, but for times, versions and measurements."""
    for variable in [name for name in os.environ if name.startswith("HARVEST_")]:
        monkeypatch.delenv(variable)
    monkeypatch.chdir(tmp_path)
    make_corpus.write(tmp_path / "corpus")
    for name in PAGES:
        found = played(pages[name], tmp_path)
        assert masked("".join(SESSION.findall(found))) == masked("".join(SESSION.findall(pages[name]))), ANEW


@pytest.mark.parametrize("path", PARTS)
def test_generated_parts(pages: dict[str, str], path: str) -> None:
    """What a README lists of the code is what the code has: the flow, topics, commands, rules, settings, fault points."""
    assert filled(pages[path], PARTS[path]) == pages[path], ANEW


def test_marks_must_be_there() -> None:
    """A README whose marks are gone is an error, not a README without its tables."""
    with pytest.raises(ValueError, match="marks around flow"):
        filled("# Harvest\n", PARTS["README.md"])


def test_two_commands(page: str, root: Path) -> None:
    """The commands that README.md begins with are targets of the Makefile, and every target that it names is one."""
    targets = set(re.findall(r"(?m)^(\w+):", (root / "Makefile").read_text("utf-8")))
    named = set(re.findall(r"(?m)(?:^    |`)make (\w+)", page))
    assert {"demo", "test"} <= named <= targets


def test_benchmarks_that_are_named(pages: dict[str, str]) -> None:
    """tests/README.md names the groups of `make bench`, all of them."""
    table = pages["tests/README.md"].partition("\n| group |")[2].partition("\n\n")[0]
    assert re.findall(r"(?m)^\| `(\w+)` \|", table) == list(GROUPS)


def test_commands_that_are_named(pages: dict[str, str]) -> None:
    """A `harvest COMMAND` that a README names is a command of the program."""
    there = {command.split()[1] for command in re.findall(r"`(harvest [a-z]+)", commands())}
    for name, text in pages.items():
        named = set(re.findall(r"(?m)(?:`|^\$ |^)harvest ([a-z]+)\b", text))
        assert named <= there, name


def test_options_that_are_named(pages: dict[str, str]) -> None:
    """An option that a page with sessions names is one that some command has."""
    from typer.main import get_command

    def options(command: object) -> set[str]:
        found = {option for param in getattr(command, "params", ()) for option in param.opts}
        return found.union(*map(options, getattr(command, "commands", {}).values()))

    text = re.sub(r"(?s)<!-- .*? -->", "", "".join(pages[name] for name in PAGES))
    assert set(re.findall(r"(?<![\w=-])--[a-z][a-z-]*", text)) <= options(get_command(app))


def test_topics_that_are_named(pages: dict[str, str]) -> None:
    """schemas/README.md names every topic."""
    assert all(
        topic.name in pages["schemas/README.md"]
        for topic in topology(TopologySettings()).topics
        if not topic.name.endswith(".ticks")
    )


def test_settings_file(pages: dict[str, str], tmp_path: Path) -> None:
    """The settings file in streams/config/README.md is one that is read, and says what it seems to say."""
    (example,) = re.findall(r"(?ms)^```toml\n(# harvest\.toml.*?)^```$", pages["streams/config/README.md"])
    (tmp_path / "harvest.toml").write_text(example)
    found = load({}, tmp_path / "harvest.toml", {})
    assert tomllib.loads(example) == {"retention": found.retention, "fetch": {"pause": found.fetch.pause}}


def test_rules_of_ones_own(pages: dict[str, str]) -> None:
    """The rules for a program in processors/essence/README.md fit the rules before them, and say what they seem to say."""
    page = pages["processors/essence/README.md"]
    (program,) = re.findall(r"(?ms)^```toml\n(\[programs\..*?)^```$", page)
    rules = parse_rules(dict(FILE.findall(page))["own/rules.toml"] + program)
    assert {name: (one.command, one.seconds) for name, one in rules.programs.items()} == {
        "Recipe": (("/usr/local/bin/recipe2soif",), 10.0)
    }


def test_links(pages: dict[str, str], root: Path) -> None:
    """A link to a file leads to one."""
    for name, text in pages.items():
        targets = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", text)
        assert not [t for t in targets if not (root / name).parent.joinpath(t).exists()], name


FOLDERS = ("processors", "streams", "streams/embedded", "streams/telemetry", "tests")


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_module_is_told(pages: dict[str, str], root: Path, folder: str) -> None:
    """The README of a folder says of each module, and of each folder in it, what it is."""
    text = pages[f"{folder}/README.md"]
    modules = [p.name for p in (root / folder).glob("*.py") if p.name != "__init__.py"]
    folders = [f"{p.parent.name}/" for p in (root / folder).glob("*/__init__.py")]
    assert not [name for name in modules + folders if name not in text]


def test_files_that_are_named(pages: dict[str, str], root: Path) -> None:
    """A module that these READMEs name in backticks is there, beside them or from the root."""
    for folder in (".", *FOLDERS[:-1]):
        text = pages[str(Path(folder, "README.md"))]
        named = set(re.findall(r"`([\w/]+\.(?:py|avsc|toml))`", text)) - {"harvest.toml"}
        assert not [n for n in named if not ((root / folder / n).exists() or (root / n).exists())], folder


def test_length_of_lines(pages: dict[str, str]) -> None:
    """Prose is wrapped like the code; tables and blocks of code may be wider."""
    for folder in (".", *FOLDERS):
        text = re.sub(r"(?ms)^```.*?^```$", "", pages[str(Path(folder, "README.md"))])
        assert not [line for line in text.splitlines() if len(line) > 132 and not line.startswith("|")], folder


def test_sessions_are_there(pages: dict[str, str]) -> None:
    """The sessions show the main job: gathering, searching, showing, why, rejections, annotations, a rebuilt index."""
    ran = {command.split()[1] for command in sessions("".join(pages[name] for name in PAGES)) if command.startswith("harvest ")}
    assert ran >= {"gather", "search", "show", "why", "rejected", "annotate", "index", "roots"}


def test_changelog(pages: dict[str, str], root: Path) -> None:
    """The change log has the version of the project, or what is not released yet."""
    version = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert any(f"\n## [{name}]" in pages["CHANGELOG.md"] for name in ("Unreleased", version))
