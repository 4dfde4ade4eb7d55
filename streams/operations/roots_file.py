"""Roots as a file: TOML with a table `[[root]]` for each root, parsed into plans.

    [[root]]
    url = "https://www.example.org/"
    depth = 5
    pause = 5.0
    refresh = "7d"
    deny = ["/calendar/"]

Laws:
- Whatever is wrong is one line with the file, the line in it and the option; an unknown option names the nearest known one.
- Durations are seconds, or text with a unit: "90s", "30m", "6h", "7d", "24w".
- What a file states about a root is all that there is: an option that it leaves out is that of the settings.
"""

from __future__ import annotations

import difflib
import os
import re
import stat
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError

from processors.frontier.plans.options import RootOptions
from processors.frontier.plans.rewrite import NAMES, RULES, newest
from processors.identity import file_url
from processors.schemes import SCHEMES, scheme_of
from processors.urls import canonical
from schemas.plan import MAX_PAUSE
from schemas.records import LocalMap, Plan
from streams.config.base import Section, mistake
from streams.config.sections import AGE, MOST

MAX_FILE = 16 << 20
"""Maximum bytes of a file of roots."""
UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 7 * 86_400}
_HOST = re.compile(r"(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::\d+)?/")
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)([smhdw])")
SERVER_ONLY = ("pause", "hours", "refresh_min", "hosts", "schemes", "rewrite", "map", "missing", "sitemaps", "lastmod", "feeds")
"""Options that mean nothing for files of this machine."""


class RootsFileError(ValueError):
    """A file of roots cannot be applied: the message is one line for the user."""


def _duration(value: object) -> object:
    """Return seconds for a duration with a unit; other values are left to the checks of the type."""
    if not isinstance(value, str):
        return value
    found = _DURATION.fullmatch(value.strip())
    if found is None:
        raise mistake('a duration is a number of seconds, or text with a unit: "90s", "30m", "6h", "7d", "24w"')
    seconds = float(found[1]) * UNITS[found[2]]
    return int(seconds) if seconds.is_integer() else seconds


Seconds = Annotated[int, BeforeValidator(_duration), Field(ge=0, le=AGE)]
Term = Annotated[int, BeforeValidator(_duration), Field(gt=0, le=AGE)]
Pause = Annotated[float, BeforeValidator(_duration), Field(ge=0, le=MAX_PAUSE / 1000)]


class _Strict(Section):
    model_config = ConfigDict(strict=True)


class MapSection(_Strict):
    """An element of `map`: URLs below `url` are files below `path` on this machine."""

    url: str
    path: str


class RootSection(_Strict):
    """A table `[[root]]`."""

    url: str
    """The root: a URL, or a path on this machine."""
    depth: int | None = Field(default=None, ge=-1, le=1_000_000)
    """Maximum number of links from the root; -1: no limit."""
    urls: int | None = Field(default=None, ge=0, le=MOST)
    """Maximum number of URLs; 0: no limit."""
    pause: Pause | None = None
    """Seconds between requests to a host, if that is more than `fetch.pause` and Crawl-delay; at most an hour."""
    hours: str = ""
    """When its hosts are asked: "22:00-06:00 +01:00"; without an offset, in UTC."""
    refresh: Term | None = None
    """Time until an object is requested again."""
    refresh_min: Seconds | None = None
    """That time at least, for objects that change often."""
    ttl: Term | None = None
    """Time after which an object that could not be refreshed expires."""
    hosts: list[str] = Field(default_factory=list)
    """Hosts that links may lead to: NAME, with a port unless it is the default one; `*.NAME`: all below NAME. Default: its own."""
    schemes: list[str] = Field(default_factory=list)
    """Schemes that links may have. Default: its own."""
    allow: list[str] = Field(default_factory=list)
    """RE2: links must match one of these, in their canonical URL. Default: all do."""
    deny: list[str] = Field(default_factory=list)
    """RE2: links must match none of these, which win over `allow`."""
    rewrite: list[str] = Field(default_factory=list)
    """Rules that rewrite links: session, tracking, query-order, default-document; each may name its version (`session.1`)."""
    map: list[MapSection] = Field(default_factory=list)
    """Parts of the server that are read from folders of this machine: `[{ url = "https://...", path = "/srv/..." }]`."""
    missing: Literal["", "gone", "fetch"] = ""
    """What a file that is missing in such a folder is: gone (the default), or requested from its server (fetch)."""
    sitemaps: Literal["", "auto", "yes", "no"] = ""
    """Whether sitemaps are read: those of robots.txt (auto), also /sitemap.xml (yes), none (no)."""
    lastmod: Literal["", "auto", "trust", "ignore"] = ""
    """What the dates in sitemaps mean."""
    feeds: bool | None = None
    """Whether feeds that pages name are read."""
    price: Seconds | None = None
    """Price of a request, in seconds of freshness; unset: by the settings, a quarter of `refresh`."""
    variants: int | None = Field(default=None, ge=0, le=MOST)
    """Maximum number of queries of one path of a host; 0: no limit."""


class PlannedRoot(NamedTuple):
    """A root of a file: its name as written, its plan, and its line. Rules of `rewrite` without a version are in the newest one."""

    name: str
    plan: Plan
    line: int
    rewrite: tuple[str, ...] = ()
    """As written."""


def parse_roots(text: str, source: str) -> list[PlannedRoot]:
    """Return the roots of a file; `source`: its name. Raises RootsFileError."""
    try:
        tables = tomllib.loads(text)
    except RecursionError:
        raise RootsFileError(f"{source}: values too deep in each other") from None
    except ValueError as error:
        raise RootsFileError(f"{source}: not TOML: {str(error).partition(';')[0]}") from None
    lines = text.splitlines()
    for key in tables:
        if key != "root":
            raise RootsFileError(f"{source}:{_line(lines, key)}: {key}: a file of roots has tables [[root]] and nothing else")
    given = tables.get("root", [])
    if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
        raise RootsFileError(f"{source}:{_line(lines, 'root')}: root: a root is a table of its own, [[root]]")
    starts = [at for at, line in enumerate(lines) if re.match(r"\s*\[\[\s*root\s*\]\]", line)]
    found = []
    for number, table in enumerate(given):
        start = starts[number] if number < len(starts) else 0
        end = starts[number + 1] if number + 1 < len(starts) else len(lines)
        found.append(_root(table, source, lines[start:end], start))
    return found


def _root(table: Mapping[str, Any], source: str, lines: list[str], start: int) -> PlannedRoot:
    def wrong(key: str, text: str) -> RootsFileError:
        return RootsFileError(f"{source}:{start + _line(lines, key)}: {key}: {text}")

    try:
        section = RootSection.model_validate(dict(table))
        _check_realm(section)
        plan = _plan(section)
        RootOptions(plan)
    except ValidationError as error:
        raise wrong(*_explained(error)) from None
    except ValueError as error:
        key, _, text = str(error).partition(": ")
        raise wrong(key, text) from None
    return PlannedRoot(section.url, plan, start + 1, tuple(section.rewrite))


def _explained(error: ValidationError) -> tuple[str, str]:
    """Return the option that an error concerns, and what is wrong with it; an unknown option comes first."""
    fault = min(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
    path = [str(part) for part in fault["loc"] if isinstance(part, str)]
    if fault["type"] == "extra_forbidden":
        return path[-1], f"no such option ({_nearest(path[-1], MapSection.model_fields if path[1:] else RootSection.model_fields)})"
    if fault["type"] == "missing":
        return path[0] if path[1:] else "root", f"{path[-1]} is missing"
    if fault["type"] == "plain":
        return path[0], fault["msg"]
    if fault["type"] == "model_type":
        return path[0], 'a mapped folder is { url = "https://...", path = "/srv/..." }'
    if fault["type"] == "value_error":
        return path[0], fault["msg"].partition(", ")[2]
    return path[0], f"{fault['msg'][:1].lower()}{fault['msg'][1:]}, not {fault['input']!r:.60}"


def _nearest(name: str, names: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, names, 1)
    return f"did you mean {close[0]}?" if close else f"there are {', '.join(names)}"


def _line(lines: list[str], key: str) -> int:
    """Return the number of the first line that sets a key, from 1 on; 1 if none is found."""
    setting = re.compile(rf"(?<![\w.-])[\"']?{re.escape(key)}[\"']?\s*[=.]|\[\[?\s*{re.escape(key)}\b")
    return next((at for at, line in enumerate(lines, 1) if setting.search(line)), 1)


def _check_realm(section: RootSection) -> None:
    """Raise ValueError for an option that means nothing for files of this machine."""
    if "://" in section.url and scheme_of(section.url.lower()).realm == "network":
        return
    for name in SERVER_ONLY:
        if name in section.model_fields_set:
            raise ValueError(f"{name}: is an option of servers, and {section.url[:100]} is on this machine")


def _plan(section: RootSection) -> Plan:
    """Return the plan of a table. Raises ValueError with the name of the wrong option first."""
    return Plan(
        depth=section.depth,
        urls=section.urls,
        pause=None if section.pause is None else round(section.pause * 1000),
        hours=" ".join(section.hours.split()),
        refresh=section.refresh,
        refresh_min=section.refresh_min,
        ttl=section.ttl,
        hosts=tuple(map(_host, section.hosts)),
        schemes=tuple(map(_scheme, section.schemes)),
        allow=tuple(section.allow),
        deny=tuple(section.deny),
        rewrite=tuple(map(_rule, section.rewrite)),
        map=tuple(map(_map, section.map)),
        missing=section.missing,
        sitemaps=section.sitemaps,
        lastmod=section.lastmod,
        feeds=section.feeds,
        price=section.price,
        variants=section.variants,
    )


def _host(text: str) -> str:
    """Return a pattern of hosts in the canonical form of names. Raises ValueError."""
    name = text.removeprefix("*.")
    found = canonical(f"http://{name}/") if not re.search(r"[/*@?#\s]", name) else None
    if found is None or not _HOST.fullmatch(found.partition("://")[2]):
        raise ValueError(f"hosts: {text[:100]!r} is not a host (www.example.org, www.example.org:8080, *.example.org)")
    return ("*." if text.startswith("*.") else "") + found.partition("://")[2].rstrip("/")


def _scheme(text: str) -> str:
    names = [name for name, scheme in SCHEMES.items() if scheme.realm == "network"]
    if text not in names:
        raise ValueError(f"schemes: {text[:40]!r} is none that can be gathered from servers ({', '.join(names)})")
    return text


def _rule(text: str) -> str:
    if text in RULES:
        return text
    try:
        return newest(text)
    except KeyError:
        raise ValueError(f"rewrite: {text[:40]!r} is no rule ({_nearest(text, NAMES)})") from None


def _map(section: MapSection) -> LocalMap:
    prefix = canonical(section.url)
    if prefix is None or scheme_of(prefix).realm != "network" or not prefix.endswith("/") or "?" in prefix:
        raise ValueError(f"map: {section.url[:100]!r} is not the URL of a folder of a server, which ends with a slash")
    if not os.path.isabs(section.path) or "\0" in section.path:
        raise ValueError(f"map: {section.path[:100]!r} is not an absolute path")
    return LocalMap(url=prefix, folder=file_url(os.fsencode(os.path.normpath(section.path)), folder=True))


def read_roots(path: Path) -> list[PlannedRoot]:
    """Return the roots of a file. Raises RootsFileError and OSError; anything but a regular file is refused at once."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise RootsFileError(f"{path}: not a file")
        data = stream.read(MAX_FILE + 1)
    if len(data) > MAX_FILE:
        raise RootsFileError(f"{path}: more than {MAX_FILE:,} bytes")
    try:
        return parse_roots(data.decode(), str(path))
    except UnicodeDecodeError:
        raise RootsFileError(f"{path}: not UTF-8") from None


def table() -> str:
    """Return the options of a root as a Markdown table, which the README of this folder contains."""
    rows = [
        f"| `{name}` | {(field.description or '').replace('|', chr(92) + '|')} |"
        for name, field in RootSection.model_fields.items()
    ]
    return "\n".join(["| option | what it is |", "| --- | --- |", *rows, ""])
