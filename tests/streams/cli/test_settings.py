"""Settings: sources, errors, and the values that they configure."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from processors.essence.formats.container import UnnestLimits as Budgets
from processors.essence.selection import Selection
from processors.essence.stage import EssenceSettings
from processors.frontier.settings import FrontierSettings
from sinks.gateway.guard import is_loopback
from sinks.gateway.options import GatewayOptions
from streams.cli.common import Failure
from streams.cli.gateway import gateway_options
from streams.cli.wiring import embedded_settings, frontier_settings
from streams.config import sections, settings
from streams.config.serve import Serve
from streams.config.settings import SettingsError, known, load
from streams.embedded import EmbeddedSettings
from streams.fetch import FetchSettings
from streams.sandbox.values import SandboxLimits
from streams.topology.flow import TopologySettings

OF_ROOTS = {"sitemaps", "lastmod", "feeds", "price", "refresh_min"}
"""Fields of FrontierSettings that are configured in `roots`."""
OF_FRONTIER = {
    "agent",
    "confirm",
    "rules",
    "paused",
    "partitions",
    "pause",
    "edge_patience",
    "part",
    "variants",
    "whole_every",
    *OF_ROOTS,
}
"""Those that are not configured in `frontier`."""


@pytest.fixture
def toml(tmp_path: Path) -> Path:
    """A settings file."""
    path = tmp_path / "some.toml"
    path.write_text('gatherer = "file"\n[fetch]\npause = 3\npatience = 4.5\nallow = ["::1"]\n')
    return path


def test_flags_override_environment_overrides_file(toml: Path) -> None:
    """Flags override the environment, and the environment overrides the file, key by key."""
    found = load({"fetch.pause": 1.5, "data": None}, toml, {"HARVEST_FETCH_PAUSE": "2", "HARVEST_FETCH_ALLOW": "127.0.0.0/8, ::1"})
    assert (found.fetch.pause, found.fetch.patience, found.gatherer) == (1.5, 4.5, "file")
    assert found.fetch.allow == ("127.0.0.0/8", "::1")
    assert load(None, toml, {"HARVEST_FETCH_PAUSE": "2"}).fetch.pause == 2


def test_environment_names_are_unique() -> None:
    """Each setting has its own name in the environment, different from variables that are not settings."""
    names = [setting.variable for setting in known()]
    assert len(set(names)) == len(names)
    assert not settings.NOT_SETTINGS & set(names)


@pytest.mark.parametrize(
    ("text", "environ", "line"),
    [
        ("[fetch]\npausee = 1\n", {}, "some.toml: fetch.pausee: no such setting (did you mean fetch.pause?)"),
        ("colour = 1\n", {}, "some.toml: colour: no such setting"),
        ("[fetch]\npause = -1\n", {}, "some.toml: fetch.pause: input should be greater than or equal to 0, not -1"),
        ("[fetch", {}, "some.toml: not TOML"),
        ("fetch = 1\n", {}, "some.toml: fetch: input should be"),
        ("", {"HARVEST_FETCH_PAUSEE": "1"}, "HARVEST_FETCH_PAUSEE: no such setting (did you mean HARVEST_FETCH_PAUSE?)"),
        ("# long\n" * 10_000, {}, "some.toml: more than 65,536 bytes"),
        ("a = " + "[" * 20_000, {}, "some.toml: values too deep in each other"),
        ("a." * 30_000 + "a = 1", {}, "some.toml: a key of more than 50 parts"),
        ("x = {" + "''. " * 10_000 + "a = 1}", {}, "some.toml: a key of more than 50 parts"),
        ("retention = " + "9" * 10_000, {}, "some.toml: not TOML: Exceeds the limit"),
        ("retention = inf", {}, "some.toml: retention: input should be"),
        ("retention = nan", {}, "some.toml: retention: input should be"),
        ('data = "a\\u0000"', {}, "some.toml: data: a NUL can be in no setting"),
        ('[fetch]\nspool = "a\\u0000"', {}, "some.toml: fetch.spool: a NUL can be in no setting"),
        ('data = ""', {}, "some.toml: data: a folder has to be named"),
        ("", {"HARVEST_DATA": ""}, "HARVEST_DATA: a folder has to be named"),
        ("\udcff", {}, "some.toml: not TOML: 'utf-8' codec can't decode"),
        (
            '[serve]\nroot_path = "search"',
            {},
            "some.toml: serve.root_path: a path begins with / and does not end with",
        ),
        ('[serve]\nroot_path = "/search/"', {}, "some.toml: serve.root_path: a path begins with / and does not end"),
        ('[serve]\nhost = ""', {}, "some.toml: serve.host: string should have at least 1 character"),
        ("", {"HARVEST_PARTITIONS": "many"}, "HARVEST_PARTITIONS: input should be a valid integer"),
        ("", {"HARVEST_GATHERER": "two words"}, "HARVEST_GATHERER: string should match"),
    ],
    ids=itertools.count(),
)
def test_invalid_setting_is_an_error_of_one_line(tmp_path: Path, text: str, environ: dict[str, str], line: str) -> None:
    """An error in a setting is one line: source, key and problem."""
    (tmp_path / "some.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(SettingsError) as error:
        load(None, tmp_path / "some.toml", environ)
    assert line in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("setting", [s for s in known() if isinstance(s.default, int | float) and not isinstance(s.default, bool)])
@pytest.mark.parametrize("value", ["9" * 20, "inf", "nan"])
def test_numbers_have_an_upper_bound(tmp_path: Path, setting: Any, value: str) -> None:
    """Every number has an upper bound."""
    section, _, key = setting.key.rpartition(".")
    path = tmp_path / "some.toml"
    path.write_text(f"[{section}]\n{key} = {value}\n" if section else f"{key} = {value}\n")
    with pytest.raises(SettingsError, match="some.toml: " + setting.key):
        load(None, path, {})


def test_settings_file_must_be_a_regular_file(tmp_path: Path) -> None:
    """A fifo or folder as the settings file is refused; the fifo is not waited for."""
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", tmp_path):
        with pytest.raises(SettingsError, match=f"{path}: (not a file|Is a directory)"):
            load(None, path, {})


def test_fault_variable_is_not_a_setting() -> None:
    """The variable for planned faults is not read as a setting."""
    load(None, None, {"HARVEST_FAULT": "log.commit:1:kill", "PATH": "/bin"})


def test_named_settings_file_must_exist(tmp_path: Path) -> None:
    """A missing settings file is an error if it was named; the default one may be missing."""
    with pytest.raises(SettingsError, match="no such file"):
        load(None, tmp_path / "none.toml", {})
    with pytest.raises(SettingsError, match="no such file"):
        load(None, None, {"HARVEST_CONFIG": str(tmp_path / "none.toml")})


@pytest.mark.parametrize(
    ("section", "value", "left_out"),
    [
        (sections.Fetch, FetchSettings, set()),
        (sections.Select, Selection, set()),
        (sections.Budgets, Budgets, set()),
        (sections.Frontier, FrontierSettings, OF_FRONTIER),
        (sections.Sandbox, SandboxLimits, set()),
        (sections.Essence, EssenceSettings, {"gatherer", "added", "own", "packages"}),
    ],
)
def test_sections_have_the_fields_of_their_values(section: Any, value: Any, left_out: set[str]) -> None:
    """A section has the fields of the value that it configures, with the same defaults."""
    fields = {f.name: f.default for f in msgspec.structs.fields(value) if f.name not in left_out}
    assert set(section.model_fields) - left_out == set(fields)
    plain = {n: d for n, d in fields.items() if not isinstance(d, msgspec.Struct | type(msgspec.NODEFAULT))}
    assert {name: section.model_fields[name].default for name in plain} == plain


def test_gateway_options_have_the_defaults_of_their_section() -> None:
    """Without settings the gateway has its own defaults; each option is a setting."""
    found = load(None, None, {})
    assert gateway_options(found) == GatewayOptions()
    options = set(Serve.model_fields) - {"public", "token_file", "admin_token_file"}
    assert options == set(GatewayOptions._fields) - {"facets", "broker", "stream"}


def test_token_comes_from_a_file(tmp_path: Path) -> None:
    """A token that is mounted as a file is used like any other."""
    path = tmp_path / "token"
    path.write_text("a-secret-of-many-letters\n")
    found = load(None, None, {"HARVEST_SERVE_TOKEN_FILE": str(path)})
    assert gateway_options(found).token == "a-secret-of-many-letters"
    assert "many-letters" not in repr(found)


@pytest.mark.parametrize("name", ["token", "admin_token"])
@pytest.mark.parametrize(
    "value", ["fifteen-letters", "a token with spaces in it", "sixteen-letters-\u00e4", 987654321, ["some-long-secret"]]
)
def test_token_that_is_refused_is_not_shown(tmp_path: Path, name: str, value: Any) -> None:
    """A short or unsendable token is refused, and neither the error nor the settings show it."""
    path = tmp_path / "some.toml"
    path.write_text(f"[serve]\n{name} = {json.dumps(value, ensure_ascii=False)}\n")
    with pytest.raises(SettingsError, match=rf"some.toml: serve\.{name}: ") as error:
        load(None, path, {})
    assert str(value) not in str(error.value)
    with pytest.raises(SettingsError, match=f"HARVEST_SERVE_{name.upper()}: a token has at least 16 characters, all") as error:
        load(None, None, {f"HARVEST_SERVE_{name.upper()}": "hush"})
    assert "hush" not in str(error.value)
    assert "a-secret-of-many-letters" not in repr(load(None, None, {f"HARVEST_SERVE_{name.upper()}": "a-secret-of-many-letters"}))


def test_administration_has_a_token_of_its_own(tmp_path: Path) -> None:
    """It may be in a file; the token that every client has is refused for it, and is not shown."""
    path = tmp_path / "token"
    path.write_text("a-secret-of-many-letters\n")
    found = load(None, None, {"HARVEST_SERVE_ADMIN_TOKEN_FILE": str(path)})
    assert found.serve.admin_token.get_secret_value() == "a-secret-of-many-letters"
    with pytest.raises(SettingsError, match=r"serve.admin_token: .*the same as serve.token") as error:
        load({"serve.token": "a-secret-of-many-letters", "serve.admin_token_file": str(path)}, None, {})
    assert "a-secret" not in str(error.value)


@pytest.mark.parametrize(
    ("environ", "allowed"),
    [
        ({"HARVEST_SERVE_HOST": "0.0.0.0"}, False),
        ({"HARVEST_SERVE_HOST": "::"}, False),
        ({"HARVEST_SERVE_HOST": "search.example"}, False),
        ({"HARVEST_SERVE_HOST": "0.0.0.0", "HARVEST_SERVE_TOKEN": "a-secret-of-many-letters"}, True),
        ({"HARVEST_SERVE_HOST": "0.0.0.0", "HARVEST_SERVE_PUBLIC": "true"}, True),
        ({"HARVEST_SERVE_HOST": "::1"}, True),
        ({"HARVEST_SERVE_HOST": "127.0.0.2"}, True),
        ({"HARVEST_SERVE_HOST": "LOCALHOST"}, True),
    ],
)
def test_gateway_beyond_the_loopback_needs_token_or_public(environ: dict[str, str], allowed: bool) -> None:
    """An address that other machines reach is refused without a token, unless everybody may read; it is a usage error."""
    found = load(None, None, environ)
    if allowed:
        assert gateway_options(found).host == environ["HARVEST_SERVE_HOST"]
        return
    assert not is_loopback(environ["HARVEST_SERVE_HOST"])
    with pytest.raises(Failure, match=r"other machines: set serve\.token") as error:
        gateway_options(found)
    assert error.value.code == 2


def test_template_folder_of_the_gateway_must_exist(tmp_path: Path) -> None:
    """A folder of templates must exist; it is handed on as an absolute path."""
    with pytest.raises(Failure, match=r"serve\.templates: .*none: no such folder"):
        gateway_options(load(None, None, {"HARVEST_SERVE_TEMPLATES": str(tmp_path / "none")}))
    assert gateway_options(load(None, None, {"HARVEST_SERVE_TEMPLATES": str(tmp_path)})).templates == tmp_path


def test_no_settings_give_the_defaults_of_the_runner(harvest: Any) -> None:
    """Without settings the runner has its own defaults."""
    found = embedded_settings(load(None, None, {"HARVEST_GATHERER": "localhost", "HARVEST_CHILDREN": "2"}))
    assert msgspec.structs.replace(found, flow=TopologySettings()) == EmbeddedSettings()
    assert found.flow.brokers == TopologySettings().brokers


@pytest.mark.parametrize(
    ("given", "days"), [({}, 28), ({"kafka.brokers": ("k:9092",)}, 3.5), ({"kafka.brokers": ("k:9092",), "retention": 1 << 30}, 28)]
)
def test_parts_are_fetched_as_a_whole_within_the_retention(given: dict[str, Any], days: float) -> None:
    """On Kafka, where rows may be made again from the log, the log has a whole stream of each part, and all changes since."""
    found = frontier_settings(load(given, environ={}), EssenceSettings(gatherer="us"))
    assert found.whole_every == days * 86_400_000


def test_every_setting_has_a_description() -> None:
    """Each setting has a description."""
    assert not [setting.key for setting in known() if not setting.says.endswith((".", "..."))]
    assert not [each.key for each in known() if "\n" in each.says], "a row of the table in the README is one line"


def test_commands_refuse_invalid_settings(harvest: Any, tree: Path, tmp_path: Path) -> None:
    """An unknown or invalid setting ends a command with an error of one line, exit code 2, before anything is created."""
    for text, line in (
        ("[fetch]\npausee = 1\n", "harvest: harvest.toml: fetch.pausee: no such setting"),
        ('[fetch]\nallow = ["nowhere"]\n', "harvest: fetch.allow: 'nowhere' does not appear to be"),
        ('[essence.select]\noff = ["nothing"]\n', "harvest: essence.select.off: no such selection rule: nothing"),
    ):
        (tmp_path / "harvest.toml").write_text(text)
        result = harvest("gather", tree, code=2)
        assert result.stderr.startswith(line)
        assert result.stderr.count("\n") == 1
    assert not (tmp_path / "harvest-data").exists()


def test_gatherer_and_partitions_of_a_data_folder_are_fixed(harvest: Any, tree: Path) -> None:
    """The Gatherer's name and the number of partitions are fixed by the first run; other values are refused."""
    harvest("gather", tree, "--gatherer", "here", "--partitions", 2)
    assert "made by the gatherer here" in harvest("gather", tree, "--gatherer", "there", code=1).stderr
    assert "made with 2 partitions" in harvest("gather", tree, "--partitions", 3, code=1).stderr
    (table,) = harvest.lines("gather", tree)
    assert table["nothing_changed"]
    assert "gatherer-name{4}:\there" in harvest("show", tree / "page.html").stdout
