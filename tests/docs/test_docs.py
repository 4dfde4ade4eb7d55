"""READMEs match the code: generated lists are current, named files exist, and sessions print the output that they show."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from processors.essence.extensions import parse_rules
from streams.brokers import read_definitions
from streams.cli.app import app
from streams.config.settings import load
from streams.topology.flow import TopologySettings, topology
from tests.bench.__main__ import GROUPS
from tests.docs.generate import FILE, PAGES, PARTS, SESSION, commands, filled, masked, played, sessions
from tests.samples import make_corpus

ANEW = "run `python -m tests.docs.generate`, read what it changed, and commit it"


@pytest.fixture
def pages(root: Path) -> dict[str, str]:
    """Every Markdown file of the repository that is not ignored, by its path."""
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-co", "--exclude-standard", "*.md"], capture_output=True, text=True, check=True
    )
    return {name: (root / name).read_text("utf-8") for name in listed.stdout.splitlines()}


@pytest.fixture
def page(pages: dict[str, str]) -> str:
    """The root README."""
    return pages["README.md"]


@pytest.mark.slow(30)
def test_sessions_print_the_output_shown(pages: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands in the READMEs print the output shown, except for times, versions and measurements."""
    for variable in [name for name in os.environ if name.startswith("HARVEST_")]:
        monkeypatch.delenv(variable)
    monkeypatch.chdir(tmp_path)
    make_corpus.write(tmp_path / "corpus")
    for name in PAGES:
        found = played(pages[name], tmp_path)
        assert masked("".join(SESSION.findall(found))) == masked("".join(SESSION.findall(pages[name]))), ANEW


@pytest.mark.parametrize("path", PARTS)
def test_generated_parts_match_the_code(pages: dict[str, str], path: str) -> None:
    """Generated parts of READMEs match the code: flow, topics, commands, rules, settings, fault points, metrics, files."""
    assert filled(pages[path], PARTS[path]) == pages[path], ANEW


def test_missing_marks_are_an_error() -> None:
    """A README without its marks is an error, not a README without its tables."""
    with pytest.raises(ValueError, match="marks around flow"):
        filled("# Harvest\n", PARTS["README.md"])


def test_named_make_targets_exist(page: str, root: Path) -> None:
    """README.md names `make demo` and `make test`, and every make target that it names exists."""
    targets = set(re.findall(r"(?m)^(\w+):", (root / "Makefile").read_text("utf-8")))
    named = set(re.findall(r"(?m)(?:^    |`)make (\w+)", page))
    assert {"demo", "test"} <= named <= targets


def test_all_benchmark_groups_are_listed(pages: dict[str, str]) -> None:
    """tests/README.md lists all groups of `make bench`, in their order."""
    table = pages["tests/README.md"].partition("\n| group |")[2].partition("\n\n")[0]
    assert re.findall(r"(?m)^\| `([\w-]+)` \|", table) == list(GROUPS)


def test_named_commands_exist(pages: dict[str, str]) -> None:
    """Every `harvest COMMAND` that a README names exists."""
    there = {command.split()[1] for command in re.findall(r"`(harvest [a-z]+)", commands())}
    for name, text in pages.items():
        named = set(re.findall(r"(?m)(?:`|^\$ |^)harvest ([a-z]+)\b", text))
        assert named <= there, name


def test_named_options_exist(pages: dict[str, str]) -> None:
    """Every option that a page with sessions names belongs to some command."""
    from typer.main import get_command

    def options(command: object) -> set[str]:
        found = {option for param in getattr(command, "params", ()) for option in param.opts}
        return found.union(*map(options, getattr(command, "commands", {}).values()))

    text = re.sub(r"(?s)<!-- .*? -->", "", "".join(pages[name] for name in PAGES))
    assert set(re.findall(r"(?<![\w=-])--[a-z][a-z-]*", text)) <= options(get_command(app))


def test_all_topics_are_named(pages: dict[str, str]) -> None:
    """schemas/README.md names every topic."""
    assert all(
        topic.name in pages["schemas/README.md"]
        for topic in topology(TopologySettings()).topics
        if not topic.name.endswith(".ticks")
    )


def test_settings_file_of_the_readme_takes_effect(pages: dict[str, str], tmp_path: Path) -> None:
    """The settings file shown in streams/config/README.md is valid, and each value takes effect."""
    (example,) = re.findall(r"(?ms)^```toml\n(# harvest\.toml.*?)^```$", pages["streams/config/README.md"])
    (tmp_path / "harvest.toml").write_text(example)
    found = load({}, tmp_path / "harvest.toml", {})
    assert tomllib.loads(example) == {"retention": found.retention, "fetch": {"pause": found.fetch.pause}}


def test_definition_of_a_broker_is_one(pages: dict[str, str], tmp_path: Path) -> None:
    """The definition of a Broker in `streams/config` is one without a mistake, where the Brokers that it names are there."""
    (text,) = re.findall(r"(?ms)^```toml\n(title = .*?)^```", pages["streams/config/README.md"])
    (tmp_path / "reports.toml").write_text(text)
    for name in ("nidr", "abstracts"):
        (tmp_path / f"{name}.toml").touch()
    assert read_definitions(tmp_path, ("en",)).mistakes == ()


def test_program_rules_of_the_readme_take_effect(pages: dict[str, str]) -> None:
    """The program rules shown in processors/essence/README.md can be appended to the rules before them and take effect."""
    page = pages["processors/essence/README.md"]
    (program,) = re.findall(r"(?ms)^```toml\n(\[programs\..*?)^```$", page)
    rules = parse_rules(dict(FILE.findall(page))["own/rules.toml"] + program)
    assert {name: (one.command, one.seconds) for name, one in rules.programs.items()} == {
        "Recipe": (("/usr/local/bin/recipe2soif",), 10.0)
    }


def test_links_to_files_resolve(pages: dict[str, str], root: Path) -> None:
    """Every link to a file leads to an existing file."""
    for name, text in pages.items():
        targets = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", text)
        assert not [t for t in targets if not (root / name).parent.joinpath(t).exists()], name


FOLDERS = ("processors", "streams", "streams/embedded", "streams/telemetry", "tests")


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_module_is_named_in_its_readme(pages: dict[str, str], root: Path, folder: str) -> None:
    """The README of a folder names each of its modules and subpackages."""
    text = pages[f"{folder}/README.md"]
    modules = [p.name for p in (root / folder).glob("*.py") if p.name != "__init__.py"]
    folders = [f"{p.parent.name}/" for p in (root / folder).glob("*/__init__.py")]
    assert not [name for name in modules + folders if name not in text]


def test_named_modules_exist(pages: dict[str, str], root: Path) -> None:
    """Every module that these READMEs name in backticks exists, relative to the README or to the root."""
    for folder in (".", *FOLDERS[:-1]):
        text = pages[str(Path(folder, "README.md"))]
        named = set(re.findall(r"`([\w/]+\.(?:py|avsc|toml))`", text)) - {"harvest.toml"}
        assert not [n for n in named if not ((root / folder / n).exists() or (root / n).exists())], folder


def test_prose_is_wrapped(pages: dict[str, str]) -> None:
    """Prose is wrapped at the line length of the code; tables and code blocks may be wider."""
    for folder in (".", *FOLDERS):
        text = re.sub(r"(?ms)^```.*?^```$", "", pages[str(Path(folder, "README.md"))])
        assert not [line for line in text.splitlines() if len(line) > 132 and not line.startswith("|")], folder


def test_sessions_cover_the_main_tasks(pages: dict[str, str]) -> None:
    """The sessions cover the main tasks: gather, search, show, why, rejections, annotations, rebuilding the index."""
    ran = {command.split()[1] for command in sessions("".join(pages[name] for name in PAGES)) if command.startswith("harvest ")}
    assert ran >= {"gather", "search", "show", "why", "rejected", "annotate", "index", "roots"}


def test_changelog_has_the_current_version(pages: dict[str, str], root: Path) -> None:
    """The change log has a section for the project's version or for unreleased changes."""
    version = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert any(f"\n## [{name}]" in pages["CHANGELOG.md"] for name in ("Unreleased", version))
