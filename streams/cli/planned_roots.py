"""A file of roots compared with the known ones, and the options of a root as such a file has them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from msgspec.structs import asdict, replace

from processors.identity import file_path
from schemas.records import LocalMap, Plan, Root
from streams.cli.common import USAGE, Failure, note, printable
from streams.cli.rootnames import gathered_root, known_as
from streams.operations.roots_file import UNITS, PlannedRoot, RootsFileError, read_roots

if TYPE_CHECKING:
    from streams.cli.commands.roots import RootsState
    from streams.config.settings import Settings

LIMITS = ("depth", "urls", "ttl", "refresh")
"""Options that the Root has too."""
TIMES = ("refresh", "refresh_min", "ttl", "price")


class Change(NamedTuple):
    """What a file changes about one root. `kind` "": nothing."""

    kind: Literal["added", "changed", "removed", ""]
    root: Root
    plan: Plan
    detail: str = ""

    @property
    def line(self) -> str:
        """The change as one line."""
        return f"{self.kind} {self.root.url}{': ' if self.detail else ''}{self.detail}"


def planned(file: Path, settings: Settings, before: RootsState) -> list[tuple[Root, Plan]]:
    """Return the roots of a file with their plans; `before`: the known roots with theirs. Raises Failure."""
    try:
        listed = read_roots(file)
    except RootsFileError as error:
        raise Failure(str(error), USAGE) from None
    except OSError as error:
        raise Failure(f"{file}: {error.strerror}", USAGE) from None
    found: dict[str, tuple[Root, Plan]] = {}
    lines: dict[str, int] = {}
    for each in listed:
        root = _root(each, settings, before.roots, f"{file}:{each.line}")
        if root.url in found:
            raise Failure(f"{file}:{each.line}: {printable(root.url)} is in line {lines[root.url]} already", USAGE)
        plan = _same_versions(each, before.plans.get(root.url, Plan()))
        _check_folders(plan, settings, f"{file}:{each.line}")
        limited = replace(root, ttl=plan.ttl or root.ttl, refresh=plan.refresh or root.refresh)
        found[root.url], lines[root.url] = (limited, plan), each.line
        if plan.pause is not None and plan.pause < settings.fetch.pause * 1000:
            note(f"{root.url}: its pause is shorter than fetch.pause ({settings.fetch.pause:g} s), which is kept")
    return list(found.values())


def _root(listed: PlannedRoot, settings: Settings, known: Sequence[Root], where: str) -> Root:
    """Return a root of a file. One that cannot be read now is named, and kept if it is known already. Raises Failure."""
    depth, urls = listed.plan.depth, listed.plan.urls
    try:
        return gathered_root(listed.name, settings, depth, urls)
    except Failure as failure:
        root = known_as(listed.name, known) if failure.code != USAGE else None
        if root is None:
            raise Failure(f"{where}: {failure}", failure.code) from None
        note(f"{where}: {failure}; it is kept as a root")
    given = settings.roots
    return replace(root, depth=-1 if depth is None else depth, urls=urls or 0, ttl=given.ttl, refresh=given.refresh)


def _same_versions(listed: PlannedRoot, before: Plan) -> Plan:
    """Return a plan whose rules have the versions that the root has now, where the file names none: its URLs stay the same."""
    known = {rule.rpartition(".")[0]: rule for rule in before.rewrite}
    return replace(
        listed.plan,
        rewrite=tuple(known.get(written, rule) for written, rule in zip(listed.rewrite, listed.plan.rewrite, strict=True)),
    )


def _check_folders(plan: Plan, settings: Settings, where: str) -> None:
    """Raise Failure for a mapped folder that is not there. On Kafka it is on the machines of the workers."""
    for each in plan.map:
        folder = Path(file_path(each.folder).decode("utf-8", "surrogateescape"))
        data = settings.data.resolve()
        if not settings.kafka.brokers and not folder.is_dir():
            raise Failure(f"{where}: map: {printable(str(folder))} is not a folder")
        if folder.resolve().is_relative_to(data):
            raise Failure(f"{where}: map: {printable(str(folder))} is in the data folder itself")


def changes(wanted: Sequence[tuple[Root, Plan]], before: RootsState, *, prune: bool) -> list[Change]:
    """Return what a file changes, in its order; then, with `prune`, the roots that it does not have."""
    known = {root.url: root for root in before.roots}
    found: list[Change] = []
    for root, plan in wanted:
        was = known.get(root.url)
        if was is None:
            found.append(Change("added", root, plan, _detail({}, plan_options(plan))))
            continue
        old, new = before.plans.get(root.url, Plan()), plan
        limits = {name: getattr(root, name) for name in LIMITS if getattr(root, name) != getattr(was, name)}
        detail = _detail({**_limits(was, limits), **plan_options(old)}, {**_limits(root, limits), **plan_options(new)})
        found.append(Change("changed" if detail else "", root, plan, detail))
    if prune:
        listed = {root.url for root, _ in wanted}
        found += [Change("removed", root, Plan()) for root in before.roots if root.url not in listed]
    return found


def _limits(root: Root, differing: Mapping[str, Any]) -> dict[str, str]:
    """Return the limits of a root that differ from others, which may be because the settings do."""
    return {name: _written(name, getattr(root, name)) for name in differing}


def _detail(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    names = dict.fromkeys((*before, *after))
    if not before:
        return ", ".join(f"{name} = {after[name]}" for name in names)
    return ", ".join(
        f"{name} {before.get(name, 'by the settings')} -> {after.get(name, 'by the settings')}"
        for name in names
        if before.get(name) != after.get(name)
    )


def plan_options(plan: Plan) -> dict[str, str]:
    """Return the options that a plan states, as TOML."""
    return {name: _written(name, value) for name, value in asdict(plan).items() if value not in (None, "", ())}


def _written(name: str, value: Any) -> str:
    if name in TIMES:
        return _duration(value)
    if name == "pause":
        return repr(value / 1000)
    if name == "map":
        folders = (f"{{ url = {_text(each.url)}, path = {_text(_path(each))} }}" for each in value)
        return f"[{', '.join(folders)}]"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_text, value))}]"
    return _text(value) if isinstance(value, str) else json.dumps(value)


def _path(each: LocalMap) -> str:
    return file_path(each.folder).decode("utf-8", "surrogateescape")


def _text(value: str) -> str:
    """Return a string of TOML: literal where it has a backslash and can be."""
    if "\\" in value and "'" not in value and value.isprintable():
        return f"'{value}'"
    return json.dumps(value, ensure_ascii=False)


def _duration(seconds: int) -> str:
    unit = next((unit for unit in ("w", "d", "h", "m") if seconds and not seconds % UNITS[unit]), "s")
    return f'"{seconds // UNITS[unit]}{unit}"'


def as_toml(root: Root, plan: Plan) -> Iterator[str]:
    """Yield the lines of a table that states the options of a root; limits of the settings as comments."""
    yield "[[root]]"
    yield f"url = {_text(root.url)}"
    stated = plan_options(plan)
    for name in LIMITS:
        if name not in stated:
            yield f"# {name} = {_written(name, getattr(root, name))}"
    for name, value in stated.items():
        yield f"{name} = {value}"


def as_json(root: Root, plan: Plan) -> dict[str, Any]:
    """Return the options of a root as an object: its limits, and what its plan states besides."""
    stated = {name: value for name, value in asdict(plan).items() if value not in (None, "", ()) and name not in LIMITS}
    if "pause" in stated:
        stated["pause"] = stated["pause"] / 1000
    if "map" in stated:
        stated["map"] = [{"url": each.url, "path": _path(each)} for each in plan.map]
    return {"url": root.url, **{name: getattr(root, name) for name in LIMITS}, **stated}
