"""Operator extensions of Essence: types and names, types by place, summarizers, programs.

Rules are data (`rules.toml`):

    [types.Recipe]                        # a new type: fields as in types.toml, except `program` and `claims`
    media = "text/x-recipe"
    text = true
    suffixes = ["recipe"]

    [types.Python]                        # an existing type: the listed values come before those of types.toml
    suffixes = ["sage"]

    [[places]]                            # the type of everything at a place, whatever its name: shell patterns for whole URLs
    url = "http://example.org/logs/*"
    type = "ChangeLog"

    [programs.Recipe]                     # the program that summarizes a type: reads the file on standard input, prints SOIF
    command = ["/usr/local/bin/recipe2soif"]

    [programs.PDF]
    command = ["/usr/local/bin/refs"]
    beside = true                         # it adds to the attributes that the type's own summarizer finds

Laws:
- A mistake raises OwnError with one line that names the faulty rule or plug-in; nothing is installed then.
- An operator's types come before those of `recognize/types.toml`, and a place before the type that the source states, but none of
  them wins over content that contradicts it.
- An operator's summarizer or program replaces the one of the type, unless it is declared `beside`: then it reads files of that type
  and of types that extend it, after the type's own summarizer. A program that fails, or prints no valid SOIF, rejects the file, as
  a summarizer does that encounters damage.
"""

from __future__ import annotations

import fnmatch
import re
import tomllib
from collections.abc import Callable, Mapping
from functools import partial
from typing import BinaryIO, NamedTuple

import msgspec

from processors.essence import recognize, summarize
from processors.essence.recognize import Table, TypeRule
from processors.essence.summarize import Facts, Found, Summarizer, SummaryError
from schemas.soif import SoifError, parse

MAX_SECONDS = 50.0
"""Largest time limit of a program, in seconds: it must end before the parent stops waiting for the child that runs the program."""
UNSUITED = frozenset({"reason", "contents", "encoding"})
"""Attributes that only the walk sets; they are ignored in the output of a program."""


class OwnError(ValueError):
    """An operator's extension is invalid. The message is one line."""


class OwnType(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A type in `rules.toml`; the fields are those of TypeRule."""

    media: str = ""
    extends: str = ""
    text: bool | None = None
    stated: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    starts: tuple[str, ...] = ()
    inside: str = ""
    sure: bool | None = None
    patterns: tuple[str, ...] = ()
    plain: bool | None = None


_NAME = re.compile("[A-Za-z][A-Za-z0-9]{0,63}")
_LISTS = ("stated", "suffixes", "names", "starts", "patterns")
_FIXED = ("media", "extends", "text", "inside", "sure", "plain")


class TypedPlace(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The type of everything whose URL matches a shell pattern."""

    url: str
    type: str


class Program(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A program that reads a file and prints SOIF, as Essence's summarizers were (seed 003)."""

    command: tuple[str, ...]
    """The program and its arguments; "{}" in an argument is replaced by a path under which the program may open the file."""
    seconds: float = 20.0
    """Wall-clock time limit for one file, in seconds."""
    reads: tuple[str, ...] = ()
    """Folders and files that the program may read besides those of the system and its own folder."""
    beside: bool = False
    """True: the program adds to the attributes of the type's own summarizer; False: it replaces that summarizer."""


class Rules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole `rules.toml`."""

    types: Mapping[str, OwnType] = {}
    places: tuple[TypedPlace, ...] = ()
    programs: Mapping[str, Program] = {}


Run = Callable[[str, Facts, BinaryIO], bytes]
"""Runs the program of a type on the body of a file and returns what it printed. Raises SummaryError."""


def parse_rules(text: str) -> Rules:
    """Parse and check the text of a `rules.toml`. Raises OwnError."""
    try:
        rules = msgspec.convert(tomllib.loads(text), Rules)
    except (ValueError, RecursionError) as error:
        # msgspec reports "... - at `$.types[...].text`"; errors of TOML have a line and a column.
        raise OwnError(str(error).replace("`$.", "`")) from error
    for name, program in rules.programs.items():
        if not program.command or not program.command[0].startswith("/"):
            raise OwnError(f"programs.{name}: the command begins with the whole path of a program")
        if any(not path.startswith("/") for path in program.reads):
            raise OwnError(f"programs.{name}: what it reads is named by whole paths")
        if not 0 < program.seconds <= MAX_SECONDS:
            raise OwnError(f"programs.{name}: seconds are above 0, and {MAX_SECONDS:g} at the most")
    table(rules)
    return rules


def table(rules: Rules) -> Table:
    """Return the recognition rules, including those of the operator. Raises OwnError."""
    merged = _merged(rules)
    for what, name in [
        *((f"types.{n}", name) for n, t in merged.items() for name in (t.extends, t.inside) if name),
        *((f"places: {p.url}", p.type) for p in rules.places),
        *((f"programs.{n}", n) for n in rules.programs),
    ]:
        if name not in merged:
            raise OwnError(f"{what}: there is no type {name}")
    try:
        return Table(merged, [(re.compile(fnmatch.translate(p.url)), p.type) for p in rules.places])
    except (re.error, ValueError, OverflowError) as error:
        raise OwnError(f"types: a pattern or signature makes no sense: {error}") from error


def _merged(rules: Rules) -> dict[str, TypeRule]:
    shipped = recognize.shipped().rules
    new = {name: _new(name, own) for name, own in rules.types.items() if name not in shipped}
    return {**new, **{name: _extended(name, rule, rules.types.get(name)) for name, rule in shipped.items()}}


def _new(name: str, own: OwnType) -> TypeRule:
    if not _NAME.fullmatch(name):
        raise OwnError(f"types.{name[:60]}: the name of a type is letters and digits")
    if not own.media:
        raise OwnError(f"types.{name}: a type that is new has a media type (media)")
    said = {field: value for field in (*_FIXED, *_LISTS) if (value := getattr(own, field)) not in ("", None)}
    return _checked(name, TypeRule(**said))


def _extended(name: str, rule: TypeRule, own: OwnType | None) -> TypeRule:
    if own is None:
        return rule
    if changed := [field for field in _FIXED if getattr(own, field) not in ("", None)]:
        raise OwnError(f"types.{name}: {changed[0]} cannot be changed, the type is there already")
    return _checked(name, msgspec.structs.replace(rule, **{f: (*getattr(own, f), *getattr(rule, f)) for f in _LISTS}))


def _checked(name: str, rule: TypeRule) -> TypeRule:
    """Return the rule after checking that all its patterns and signatures are valid. Raises OwnError."""
    for pattern in (*rule.names, *rule.patterns):
        try:
            re.compile(pattern)
            pattern.encode("latin-1")
        except (re.error, ValueError, OverflowError) as error:
            raise OwnError(f"types.{name}: {pattern[:60]!r} is no pattern: {error}") from error
    for text in rule.starts:
        try:
            recognize.signature(text, rule.media)
        except ValueError as error:
            raise OwnError(f"types.{name}: {text[:60]!r} is no signature: one character stands for one byte") from error
    if not all((*rule.suffixes, *rule.starts)):
        raise OwnError(f"types.{name}: an empty suffix or signature would claim every file")
    return rule


class Claimed(NamedTuple):
    """An operator's summarizers: replacements by type, and those that add to a type's own summarizer."""

    instead: dict[str, Summarizer]
    beside: list[Summarizer]


def claimed(plugins: Mapping[str, object], rules: Rules, run: Run) -> Claimed:
    """Collect the summarizers of plug-ins (keyed by their origin) and of programs. Raises OwnError."""
    types, found, source = _merged(rules), Claimed({}, []), dict[str, str]()
    for name, program in rules.programs.items():
        made = Summarizer(types=(name,), run=partial(_by_program, run, name), beside=program.beside)
        if program.beside:
            found.beside.append(made)
        else:
            found.instead[name], source[name] = made, "a program"
    for where, plugin in plugins.items():
        if not isinstance(plugin, Summarizer):
            raise OwnError(f"{where}: SUMMARIZER is a {type(plugin).__name__}, not a Summarizer")
        for name in plugin.types:
            if name not in types:
                raise OwnError(f"{where}: there is no type {name} (rules.toml can name it)")
            if not plugin.beside and name in found.instead:
                raise OwnError(f"{where}: {source[name]} summarizes {name} already")
            if not plugin.beside:
                found.instead[name], source[name] = plugin, where
        if plugin.beside:
            found.beside.append(plugin)
    return found


def install(rules: Rules, plugins: Mapping[str, object], run: Run | None = None) -> None:
    """Put rules and plug-ins in force in this process. `run`: executes programs. Raises OwnError."""
    found = claimed(plugins, rules, run or _nowhere)
    made = table(rules)
    summarize.use(found.instead, found.beside)
    recognize.use(made)


def uninstall() -> None:
    """Restore the rules and summarizers of this package alone."""
    summarize.use({})
    recognize.use(None)


def _nowhere(name: str, facts: Facts, body: BinaryIO) -> bytes:
    raise SummaryError(f"{facts.type}: no program can be run here")


def _by_program(run: Run, name: str, facts: Facts, body: BinaryIO, found: Found) -> None:
    """Run a program and add the attributes of the SOIF templates that it printed."""
    printed = run(name, facts, body)
    try:
        templates = parse(printed)
    except SoifError as error:
        raise SummaryError(f"{facts.type}: the program gave no SOIF: {error}") from error
    for template in templates:
        for attribute in template.attributes:
            name = attribute.name.lower()
            if name not in UNSUITED:
                found.add(name, _text(attribute.value))


def _text(value: bytes) -> str | bytes:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value
