"""Settings: `harvest.toml`, the environment, flags, in rising priority, merged key by key.

Laws:
- An unknown key in any source is an error in one line that names the source and the nearest key.
- Each setting has one name, `section.key`; its environment variable is HARVEST_SECTION_KEY (a test ensures that these are
  distinct).
- This module imports no edge or processor, so that every command can read its settings; a test compares the sections with the
  values that they become, names and defaults alike.

Sizes are bytes; times are seconds, except those documented as ms.
"""

from __future__ import annotations

import difflib
import os
import re
import socket
import stat
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args, get_origin

import msgspec
from pydantic import BaseModel, Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, InitSettingsSource, PydanticBaseSettingsSource

from streams.config.base import NAMED, Section, mistake, refuse_nul
from streams.config.blobs import Blobs
from streams.config.feed import FeedSection
from streams.config.registry import RegistrySection
from streams.config.routing import RoutingSection
from streams.config.sections import (
    AGE,
    DAY,
    Essence,
    Fetch,
    Frontier,
    Index,
    Kafka,
    Log,
    RootDefaults,
    Sandbox,
    Search,
    Worker,
)
from streams.config.serve import Serve
from streams.config.watch import WatchSection

FILE = "harvest.toml"
PREFIX = "HARVEST_"
NOT_SETTINGS = frozenset({"HARVEST_FAULT", "HARVEST_CONFIG"})
"""Environment variables that have the prefix of settings, but are none."""
HIDDEN = re.compile(
    r"serve\.(admin_)?token|registry\.(token|servers)|routing\.servers|kafka\.registry|kafka\.security(\..*)?"
    r"|index(\.(url|.*password.*))?|blobs(\.(url|secret_key.*|options.*))?"
)
"""Settings whose values are never shown, not even wrong ones: secrets, and what a secret may have been mistaken for."""

UNNAMED = "a folder has to be named (.: the working folder)"
"""Error for an empty folder name, most likely an unset shell variable."""
UNTEXT = "the name of a data folder is text (UTF-8)"
"""Error for a folder name that is not UTF-8: the libraries of log and index do not accept it."""
MAX_FILE = 65_536
MAX_PARTS = 50
"""Maximum number of parts of a key: no setting has more than three, and the parsing time of a key grows with their square."""
_QUOTED = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'')
_RUNS = re.compile(r"[\w. \t-]+")


def is_text(given: str) -> bool:
    """Return whether an argument or environment variable is UTF-8: Python represents other bytes as surrogates."""
    try:
        given.encode()
    except UnicodeEncodeError:
        return False
    return True


MOVED = "Brokers are defined by files NAME.toml in the folder of this setting: harvest broker create NAME --query QUERY"
"""Error for a definition among the settings, as versions before had them."""


class SettingsError(ValueError):
    """A setting is unknown or wrong: the message is one line for the user."""


def host_name() -> str:
    """Return the name of this machine, which is the default name of a Gatherer."""
    return socket.gethostname() or "localhost"


def cores() -> int:
    """Return the default number of parser processes: the number of cores, 2 at most."""
    return min(2, os.cpu_count() or 1)


class Settings(BaseSettings):
    """All settings."""

    model_config = {
        "extra": "forbid",
        "frozen": True,
        "use_attribute_docstrings": True,
        "allow_inf_nan": False,
        "hide_input_in_errors": True,
    }

    data: Path = Path("harvest-data")
    """The data folder."""
    gatherer: str = Field(default_factory=host_name, min_length=1, max_length=200, pattern=r"^[!-~]+$")
    """Name of the Gatherer, part of every OID; default: the host's name, stored in the data folder by its first run."""
    partitions: int = Field(default=1, gt=0, lt=4_096)
    """Partitions of each topic; fixed once the data folder is created."""
    children: int = Field(default_factory=cores, gt=0, le=256)
    """Sandboxed parser processes; default: one a core, 2 at most."""
    retention: float = Field(default=7 * DAY, ge=0, le=AGE)
    """Age at which records of the log, and their bodies, are deleted: `harvest why` shows events up to this age. In a data folder
    nothing is deleted that a stage has not read."""
    roots: RootDefaults = RootDefaults()
    fetch: Fetch = Fetch()
    essence: Essence = Essence()
    frontier: Frontier = Frontier()
    sandbox: Sandbox = Sandbox()
    kafka: Kafka = Kafka()
    brokers: Path | None = None
    """Folder of the files NAME.toml that define Brokers (`harvest broker`); default: `brokers` in the data folder."""
    blobs: Blobs = Blobs()
    index: Index = Index()
    search: Search = Search()
    feed: FeedSection = FeedSection()
    routing: RoutingSection = RoutingSection()
    registry: RegistrySection = RegistrySection()
    worker: Worker = Worker()
    serve: Serve = Serve()
    watch: WatchSection = WatchSection()
    log: Log = Log()

    @field_validator("*", mode="before")
    @classmethod
    def _no_nul(cls, value: object) -> object:
        return refuse_nul(value)

    @field_validator("brokers", mode="before")
    @classmethod
    def _folder(cls, value: object) -> object:
        if isinstance(value, Mapping):
            raise mistake(MOVED)
        return value

    @field_validator("data", "brokers", mode="before")
    @classmethod
    def _named(cls, value: object) -> object:
        if value == "":
            raise ValueError(UNNAMED)
        if not is_text(str(value)):
            raise ValueError(UNTEXT)
        return value


class Setting(msgspec.Struct, frozen=True):
    """One setting: its name, whether it is a list, its default and its description."""

    key: str
    many: bool
    default: Any
    says: str

    @property
    def variable(self) -> str:
        """Name of the environment variable."""
        return PREFIX + self.key.replace(".", "_").upper()


def known(model: type[BaseModel] = Settings, above: str = "") -> Iterator[Setting]:
    """Yield every setting, in order."""
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and get_origin(kind) is None and issubclass(kind, Section):
            yield from known(kind, f"{above}{name}.")
        else:
            many = get_origin(kind) is tuple and bool(get_args(kind))
            says = " ".join((field.description or "").split())
            yield Setting(above + name, many, None if field.default_factory else field.default, says)


def load(flags: Mapping[str, Any] | None = None, config: Path | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """Load the settings; `flags` by setting name, None if a flag was not given. Raises SettingsError."""
    environ = os.environ if environ is None else environ
    given = {key: value for key, value in (flags or {}).items() if value is not None}
    sources = {"flags": _nested(given), "environment": _environment(environ), **_file(config, environ)}

    class Loaded(Settings):
        @classmethod
        def settings_customise_sources(
            cls, settings_cls: type[BaseSettings], *_: PydanticBaseSettingsSource, **__: PydanticBaseSettingsSource
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            return tuple(InitSettingsSource(settings_cls, values) for values in sources.values())

    try:
        found = Loaded()
    except ValidationError as error:
        raise SettingsError(_sentence(error, sources)) from error
    return Settings.model_construct(_fields_set=found.model_fields_set, **dict(found))


def _nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key, value in flat.items():
        *path, last = key.split(".")
        at = tree
        for name in path:
            at = at.setdefault(name, {})
        at[last] = value
    return tree


def _environment(environ: Mapping[str, str]) -> dict[str, Any]:
    settings = {setting.variable: setting for setting in known()}
    found: dict[str, Any] = {}
    for variable, value in environ.items():
        if not variable.startswith(PREFIX) or variable in NOT_SETTINGS:
            continue
        if variable.startswith(f"{PREFIX}BROKERS_"):
            raise SettingsError(f"{variable}: {MOVED.replace('this setting', f'{PREFIX}BROKERS')}")
        if variable not in settings:
            raise SettingsError(f"{variable}: no such setting{_nearest(variable, settings)}")
        setting = settings[variable]
        found[setting.key] = [v for v in map(str.strip, value.split(",")) if v] if setting.many else value
    return _nested(found)


def _file(config: Path | None, environ: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return the settings of the file, by its name; the default file may be missing."""
    named = config or (Path(environ["HARVEST_CONFIG"]) if environ.get("HARVEST_CONFIG") else None)
    path = named or Path(FILE)
    try:
        return {str(path): read_toml(path)}
    except FileNotFoundError:
        if named is None:
            return {}
        raise SettingsError(f"{path}: no such file") from None


def read_toml(path: Path) -> dict[str, Any]:
    """Return the values of a file that somebody wrote. Raises FileNotFoundError, or SettingsError with one line."""
    try:
        text = _read(path).decode()
        if any(sum(bool(part.strip()) for part in run.split(".")) > MAX_PARTS for run in _RUNS.findall(_QUOTED.sub("s", text))):
            raise SettingsError(f"{path}: a key of more than {MAX_PARTS} parts")
        return tomllib.loads(text)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}") from error
    except RecursionError:
        raise SettingsError(f"{path}: values too deep in each other") from None
    except SettingsError:
        raise
    except ValueError as error:
        # Malformed, not UTF-8, or a number of thousands of digits; what follows ";" is Python's advice to programmers.
        raise SettingsError(f"{path}: not TOML: {str(error).partition(';')[0]}") from error


def _read(path: Path) -> bytes:
    """Return the content of a settings file, or raise OSError or SettingsError.

    A non-regular file (a pipe, say) is refused without waiting for it, and a file of more than MAX_FILE bytes is not read to its
    end.
    """
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise SettingsError(f"{path}: not a file")
        text = stream.read(MAX_FILE + 1)
    if len(text) > MAX_FILE:
        raise SettingsError(f"{path}: more than {MAX_FILE:,} bytes")
    return text


def _sentence(error: ValidationError, sources: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the first error as a line: its source, its key, and what is wrong with it."""
    fault = error.errors()[0]
    path = [str(part) for part in fault["loc"] if not isinstance(part, int) and part != "[key]"]
    plain = fault.get("ctx", {})
    if plain.get(NAMED):
        path.append(plain[NAMED])
    key = ".".join(path)
    where = next((name for name, values in sources.items() if _has(values, path)), "")
    at = f"{where}: {key}" if where not in ("flags", "environment", "") else key
    if where == "environment":
        at = PREFIX + re.sub(r"[.-]", "_", key).upper()
    if fault["type"] == "extra_forbidden":
        return f"{at}: no such setting{_nearest(key, {setting.key: None for setting in known()})}"
    if fault["type"] == "plain":
        return f"{at}: {plain['text']}"
    shown = "" if HIDDEN.fullmatch(key) else f", not {fault['input']!r:.60}"
    text = fault["msg"].removeprefix("Value error, ")
    return f"{at}: {text[:1].lower()}{text[1:]}{shown}"


def _has(values: Any, path: list[str]) -> bool:
    for name in path:
        if not isinstance(values, Mapping) or name not in values:
            return False
        values = values[name]
    return True


def _nearest(key: str, names: Mapping[str, Any]) -> str:
    close = difflib.get_close_matches(key, names, 1)
    return f" (did you mean {close[0]}?)" if close else ""


def table() -> str:
    """Return the settings as a Markdown table, which `streams/README.md` contains."""
    rows = [f"| `{s.key}` | {_shown(s.default)} | {s.says} |" for s in known()]
    return "\n".join(["| setting | default | what it is |", "| --- | --- | --- |", *rows, ""])


def _shown(default: Any) -> str:
    if default is None:
        return ""
    if isinstance(default, tuple):
        return " ".join(f"`{value}`" for value in default)
    return f"{default:,}" if isinstance(default, int) and not isinstance(default, bool) else f"{default}"
