"""Definitions of Brokers: one file `NAME.toml` for each, in the folder of the setting `brokers`.

Laws:
- A wrong file makes its Broker unknown, and no other one. Every mistake is one line that names the file and the key.
- `MAIN` is there without a file; a file of its name changes it.
- A file says nothing about the order of the Brokers: it is that of their names, `MAIN` first.

Source of the checks of names: topics and indexes are named after a Broker (`streams/topology/flow.py`, `sinks/index/opensearch`).
"""

from __future__ import annotations

import difflib
import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from pydantic import Field, ValidationError, field_validator
from pydantic_core import ErrorDetails

from processors.broker.definition import GATHERED, LOCAL, MAIN, Broker, Fallback
from processors.collector import listing_of
from processors.query import QueryError
from processors.query.facets import FACETS
from processors.query.forms import LANGUAGES
from streams.config.base import Section
from streams.config.sections import AGE, DAY
from streams.config.settings import SettingsError, read_toml

ENDING = ".toml"
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
INDEX_END = re.compile(r"[a-z0-9-]+-(0|\d{8}t\d{9})")
"""What the name of an index on OpenSearch is after that of its Broker (`sinks/index/opensearch/aliases.py`)."""
MOST_SOURCES = 16
UNITS = {"m": 60, "h": 3_600, "d": DAY, "w": 7 * DAY}
_TIME = re.compile(r"([0-9]{1,12})([mhdw]?)")


class RankSection(Section):
    """How the hits of a Broker are ranked, where that differs from `search`."""

    title: float | None = Field(default=None, ge=0, le=1_000)
    """As `search.weights.title`."""
    exact: float | None = Field(default=None, ge=0, le=1_000)
    """As `search.weights.exact`."""
    freshness: float | None = Field(default=None, ge=0, le=1_000)
    """As `search.freshness`."""
    half_life: float | None = Field(default=None, gt=0, le=AGE)
    """As `search.half_life`."""
    links: float | None = Field(default=None, ge=0, le=1_000)
    """As `search.links`."""


class FallbackSection(Section):
    """Another Broker that is asked too where a search finds little."""

    broker: str = Field(min_length=1, max_length=2_000)
    """Name of a Broker that is defined here, or the URL of another gateway."""
    below: int = Field(default=10, gt=0, le=1_000)
    """It is asked if there are fewer hits than this."""


class BrokerSection(Section):
    """What a file says of its Broker."""

    title: str = Field(default="", max_length=200)
    """Title for people."""
    sources: tuple[str, ...] = Field(default=(GATHERED,), alias="from", min_length=1, max_length=MOST_SOURCES)
    """What it is made from: `summaries` (the Gatherer's database), `broker:NAME`, URLs of streams that the Gatherer collects."""
    query: str = Field(default="", max_length=4_000)
    """The summaries that it accepts, as a query; empty: all."""
    ttl: int | None = Field(default=None, gt=0, le=AGE)
    """The longest time-to-live that its summaries state: seconds, or 30m, 12h, 3d, 8w; default: their own."""
    languages: tuple[str, ...] | None = None
    """As `search.languages`, which is the default."""
    facets: tuple[str, ...] = ()
    """Facets that its pages show, in this order; none: all."""
    rank: RankSection = RankSection()
    fallback: FallbackSection | None = None
    stream: bool = False
    """Whether its archive is kept ready as one stream, for other Gatherers and Brokers."""

    @field_validator("ttl", mode="before")
    @classmethod
    def _time(cls, value: object) -> object:
        return seconds(value)

    @field_validator("sources")
    @classmethod
    def _known_kinds(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for source in value:
            if not (source == GATHERED or source.startswith(LOCAL) or listing_of(source)):
                raise ValueError(f"no source: {source!r:.80} (a source is {GATHERED}, {LOCAL}NAME or the URL of a stream)")
        return _distinct(value)

    @field_validator("languages")
    @classmethod
    def _stemmed(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        for language in value or ():
            if language not in LANGUAGES:
                raise ValueError(f"no stems are known for {language!r:.40}; known: {', '.join(sorted(LANGUAGES))}")
        return value

    @field_validator("facets")
    @classmethod
    def _counted(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for facet in value:
            if facet not in FACETS:
                raise ValueError(f"no such facet: {facet!r:.40} (there are {', '.join(FACETS)})")
        return _distinct(value)


class Mistake(NamedTuple):
    """A mistake in a definition: the name of the Broker that its file is for, and one line that names file and key."""

    broker: str
    line: str


class Definitions(NamedTuple):
    """The Brokers that are defined without a mistake, `MAIN` first unless its file is wrong, and all mistakes."""

    brokers: tuple[Broker, ...]
    mistakes: tuple[Mistake, ...] = ()
    files: Mapping[str, Path] = {}
    """The file of each Broker that has one, wrong ones too."""


def seconds(value: object) -> object:
    """Return the seconds of a time such as 12h; anything else unchanged, for the check of its type. Raises ValueError."""
    if isinstance(value, bool):
        raise ValueError("a time is a number of seconds, or as 12h, 3d, 8w")  # noqa: TRY004 - pydantic reports ValueErrors
    if not isinstance(value, str):
        return value
    given = _TIME.fullmatch(value.strip())
    if given is None:
        raise ValueError("a time is a number of seconds, or as 12h, 3d, 8w")
    return int(given[1]) * UNITS.get(given[2], 1)


def read_definitions(folder: Path, languages: Sequence[str], *, named: bool = False) -> Definitions:
    """Return the Brokers that the files of a folder define, and the mistakes of all files.

    `languages`: those of Brokers that name none. A folder that is not there has no files; if it was `named`, that is a mistake.
    """
    try:
        found = sorted(path for path in folder.iterdir() if path.suffix.lower() == ENDING and not path.name.startswith("."))
    except OSError as error:
        # A data folder that is a file has no definitions; what is wrong with it is told by those who open it.
        is_missing = isinstance(error, FileNotFoundError | NotADirectoryError) and not folder.exists()
        wrong_folder = Mistake("", f"brokers: {folder}: {'no such folder' if is_missing else error.strerror}")
        return Definitions((Broker(languages=tuple(languages)),), (wrong_folder,) if named or not is_missing else ())
    files, mistakes = _names(found)
    defined = {MAIN: Broker(languages=tuple(languages))}
    for name, path in files.items():
        try:
            defined[name] = _broker(name, path, languages)
        except DefinitionError as error:
            defined.pop(name, None)
            mistakes += [Mistake(name, f"{path}: {line}") for line in error.lines]
    mistakes += [Mistake(name, f"{files[name]}: {line}") for name, line in _wrong_relations(defined, {MAIN, *files})]
    wrong = {mistake.broker for mistake in mistakes}
    ordered = sorted(defined, key=lambda name: (name != MAIN, name))
    brokers = tuple(defined[name] for name in ordered if name not in wrong)
    return Definitions(brokers, tuple(sorted(mistakes)), files)


def copy_definitions(source: Path, target: Path) -> None:
    """Copy the files of a folder that another one has not, for the readers of an index that was made there. Raises OSError."""
    for path in source.glob(f"*{ENDING}") if source != target else ():
        copy = target / path.name
        if path.is_file() and not copy.exists():
            target.mkdir(exist_ok=True)
            shutil.copyfile(path, copy)


class DefinitionError(ValueError):
    """A definition is wrong: each of its mistakes in a line that begins with the key."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__("; ".join(lines))
        self.lines = lines


def name_mistake(name: str) -> str:
    """Return what is wrong with the name of a Broker, after which topics and indexes are named; "" if nothing is."""
    if not NAME.fullmatch(name):
        return "a Broker's name has at most 40 small letters, digits and hyphens, and begins with no hyphen"
    end = INDEX_END.fullmatch(name)
    return f"a name may not end in -{end[1]}, as the indexes of a server do" if end else ""


def checked(name: str, values: Mapping[str, Any], languages: Sequence[str]) -> Broker:
    """Return the Broker that the values of a file define. Raises DefinitionError with all mistakes of the keys."""
    try:
        section = BrokerSection.model_validate(values)
    except ValidationError as error:
        raise DefinitionError([_sentence(fault) for fault in error.errors()]) from None
    rank = tuple((key, float(value)) for key, value in section.rank.model_dump().items() if value is not None)
    fallback = None if section.fallback is None else Fallback(section.fallback.broker, section.fallback.below)
    broker = Broker(
        name,
        section.query,
        section.ttl,
        tuple(languages) if section.languages is None else section.languages,
        section.title,
        section.sources,
        section.facets,
        rank,
        fallback,
        section.stream,
    )
    try:
        broker.filter()
    except QueryError as error:
        raise DefinitionError([f"query: {error.line(section.query)}"]) from None
    return broker


def _broker(name: str, path: Path, languages: Sequence[str]) -> Broker:
    try:
        values = read_toml(path)
    except FileNotFoundError:
        raise DefinitionError(["no such file"]) from None  # a link to nowhere
    except SettingsError as error:
        raise DefinitionError([str(error).removeprefix(f"{path}: ")]) from None
    return checked(name, values, languages)


def _names(found: Sequence[Path]) -> tuple[dict[str, Path], list[Mistake]]:
    """Return the files by the names of their Brokers, and the mistakes in names."""
    files: dict[str, Path] = {}
    mistakes: list[Mistake] = []
    known: dict[str, Path] = {}
    for path in found:
        same = known.setdefault(path.name.lower(), path)
        if same != path:
            both = ((same, path), (path, same))
            mistakes += [Mistake(one.stem, f"{one}: two files of one name: {other.name}") for one, other in both]
        elif (wrong := name_mistake(path.stem)) or path.suffix != ENDING:
            mistakes.append(Mistake(path.stem, f"{path}: {wrong or f'the name of a definition ends in {ENDING}'}"))
        if not name_mistake(path.stem):
            files.setdefault(path.stem, path)
    return files, mistakes


def _wrong_relations(defined: Mapping[str, Broker], names: set[str]) -> Iterator[tuple[str, str]]:
    """Yield the Brokers whose sources or fallback are not there, or that are made from themselves."""
    for name, broker in defined.items():
        for source in broker.local_sources:
            if source not in names:
                yield name, f"from: {LOCAL}{source}: no such Broker{_nearest(source, names)}"
        if circle := _circle(defined, name):
            yield name, f"from: a circle: {' from '.join(circle)}"
        other = broker.fallback.broker if broker.fallback else ""
        if other == name:
            yield name, "fallback.broker: a Broker cannot be its own fallback"
        elif other and other not in names and not _is_url(other):
            yield name, f"fallback.broker: {other}: no such Broker{_nearest(other, names)}"


def _circle(defined: Mapping[str, Broker], name: str) -> list[str]:
    """Return the names from a Broker back to itself by its sources; none if it is not made from itself."""
    waiting, seen = [[name]], set[str]()
    while waiting:
        path = waiting.pop()
        for source in defined[path[-1]].local_sources if path[-1] in defined else ():
            if source == name:
                return [*path, name]
            if source not in seen:
                seen.add(source)
                waiting.append([*path, source])
    return []


def _sentence(fault: ErrorDetails) -> str:
    key = ".".join(str(part) for part in fault["loc"] if not isinstance(part, int))
    if fault["type"] == "extra_forbidden":
        return f"{key}: no such key{_nearest(key, keys())}"
    text = fault["msg"].removeprefix("Value error, ")
    shown = "" if fault["type"] in ("value_error", "missing") else f", not {fault['input']!r:.60}"
    return f"{key}: {text[:1].lower()}{text[1:]}{shown}"


def keys() -> tuple[str, ...]:
    """Return the keys of a definition: `title`, ..., `rank.title`, ..."""
    inner: dict[str, type[Section]] = {"rank": RankSection, "fallback": FallbackSection}
    own = [field.alias or name for name, field in BrokerSection.model_fields.items()]
    return (*own, *(f"{table}.{key}" for table, section in inner.items() for key in section.model_fields))


def _nearest(name: str, names: Sequence[str] | set[str]) -> str:
    close = difflib.get_close_matches(name, sorted(names), 1)
    return f" (did you mean {close[0]}?)" if close else ""


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _distinct(value: tuple[str, ...]) -> tuple[str, ...]:
    for number, one in enumerate(value):
        if one in value[:number]:
            raise ValueError(f"{one} is named twice")
    return value


def values_of(broker: Broker) -> dict[str, Any]:
    """Return the keys of the file that would define a Broker."""
    fallback = broker.fallback and {"broker": broker.fallback.broker, "below": broker.fallback.below}
    values = {"title": broker.title, "from": broker.sources, "query": broker.query, "ttl": broker.ttl}
    more = {"languages": broker.languages, "facets": broker.facets, "stream": broker.stream}
    return values | more | {"rank": dict(broker.rank), "fallback": fallback}


def definition_text(values: Mapping[str, Any]) -> str:
    """Return a definition as a file; keys without a value are left out."""
    given = {key: value for key, value in values.items() if value}
    lines = [f"{key} = {_toml(value)}" for key, value in given.items() if not isinstance(value, Mapping)]
    for key, table in given.items():
        if isinstance(table, Mapping):
            lines += [f"[{key}]", *(f"{inner} = {_toml(value)}" for inner, value in table.items())]
    return "".join(f"{line}\n" for line in lines)


def _toml(value: object) -> str:
    """Return a text, number, truth value or list of them in TOML, which writes these as JSON does, but for DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
