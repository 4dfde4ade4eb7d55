"""`harvest roots`: the roots to gather, as configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from streams.cli.common import (
    USAGE,
    Accept,
    Config,
    Data,
    Depth,
    Failure,
    Json,
    MaxUrls,
    appending,
    counted,
    note,
    printable,
    put,
    reading,
    settings,
)

if TYPE_CHECKING:
    from schemas.records import Plan, Root
    from streams.cli.planned_roots import Change
    from streams.config.settings import Settings
    from streams.logs import LogAccess

app = typer.Typer(no_args_is_help=True, help="Add, list, show, pause, resume and remove roots; apply a file of roots.")

Names = Annotated[list[str], typer.Argument(metavar="ROOT...", help="Paths or URLs.")]


class RootsState(NamedTuple):
    """The known roots, their plans by URL, and the URLs of the paused ones."""

    roots: Sequence[Root] = ()
    plans: Mapping[str, Plan] = MappingProxyType({})
    paused: frozenset[str] = frozenset()


@app.command()
def add(
    roots: Names,
    data: Data = None,
    depth: Depth = None,
    max_urls: MaxUrls = None,
    accept: Accept = False,
    config: Config = None,
) -> None:
    """Add roots without gathering them: `gather` or `run` does that, and on Kafka the workers do it at once.

    A root that is known already is visited again, with the limits given now.
    """
    add_roots(settings(config, data=data), roots, depth, max_urls, accept=accept)


def add_roots(
    found: Settings,
    roots: Sequence[str],
    depth: int | None = None,
    max_urls: int | None = None,
    *,
    accept: bool = False,
    say: Callable[[str], object] = note,
) -> None:
    """Add roots to the data folder, or on Kafka. `say`: takes notes on changed limits and pauses. Raises Failure."""
    from msgspec.structs import replace

    from streams.cli.rootnames import accepted_until, gathered_root
    from streams.embedded import runs

    until = accepted_until(accept)
    plans = known_state(found).plans
    wanted = [replace(gathered_root(name, found, depth, max_urls, plans), accept=until) for name in roots]
    if found.kafka.brokers:
        with _cluster(found) as (log, cluster):
            from streams.config.topology import topology_of

            before = cluster.roots(log, topology_of(found))
            cluster.ask(log, wanted)
            paused = cluster.paused(log, topology_of(found))
    else:
        with appending(found) as store:
            before = runs.roots(store)
            for root in wanted:
                runs.ask(store, root)
            paused = runs.paused(store)
    limits = {root.url: limits_of(root) for root in before}
    for root in wanted:
        was, now = limits.get(root.url), limits_of(root)
        if was is not None and was != now:
            say(f"{printable(root.url)}: its limits were {_told(was)}, and are {_told(now)} now (--depth, --max-urls)")
        if root.url in paused:
            say(f"{printable(root.url)}: is paused still (harvest roots resume ROOT)")


def add_source_roots(found: Settings, wanted: Sequence[Root]) -> None:
    """Add those roots on Kafka that are not there, and name the collected ones that are not wanted. Raises Failure."""
    from processors.collector import is_listing
    from streams.config.topology import topology_of

    with _cluster(found) as (log, cluster):
        known = {root.url for root in cluster.roots(log, topology_of(found))}
        missing = [root for root in wanted if root.url not in known]
        cluster.ask(log, missing)
    for root in missing:
        note(f"{printable(root.url)}: the workers collect it")
    for url in sorted(known - {root.url for root in wanted}):
        if is_listing(url):
            note(f"{printable(url)}: is collected, and no source of a Broker (harvest roots remove, if it is not wanted)")


@app.command("list")
def list_roots(data: Data = None, json: Json = False, config: Config = None) -> None:
    """List the roots, with their limits."""
    found = settings(config, data=data)
    from schemas.jsonform import line

    known, paused = _roots(found)
    if not known:
        note(f"no roots in {_where(found)} (harvest roots add ROOT)")
    for root in known:
        state = "paused" if root.url in paused else "active"
        if json:
            limits = {"depth": root.depth, "urls": root.urls, "ttl": root.ttl, "refresh": root.refresh}
            put(line({"url": root.url, "state": state, **limits}))
        else:
            put(f"{printable(root.url)}  {state}{limits_of(root)}")


def limits_of(root: Root) -> str:
    """Return the limits of a root as text, each behind a comma."""
    shown = [f"depth {root.depth}"] if root.depth >= 0 else []
    shown += [f"{root.urls:,} URLs"] if root.urls else []
    return "".join(f", {text}" for text in shown)


def _told(limits: str) -> str:
    return limits.removeprefix(", ") or "none"


@app.command()
def remove(roots: Names, data: Data = None, config: Config = None) -> None:
    """Remove roots: objects that no other root reaches are removed."""
    found = settings(config, data=data)
    from streams.cli.gathering import settle

    drop_roots(found, roots)
    # URLs shared by two roots are requested again, since perhaps only the removed root had led to the objects behind them.
    settle(found, fetching=True)


def drop_roots(found: Settings, roots: Sequence[str]) -> None:
    """Remove roots by their names; a runner or the workers carry it out. Raises Failure for a name that is no root."""
    from streams.embedded import runs

    wanted = _known(found, roots)
    if found.kafka.brokers:
        with _cluster(found) as (log, cluster):
            cluster.drop(log, wanted)
        return
    with appending(found) as store:
        sources = runs.sources(store)
        for root in wanted:
            runs.drop(store, root)
            if root.url in sources:
                note(f"{printable(root.url)}: a source of a Broker: the next run collects it again if a definition names it")


@app.command()
def pause(roots: Names, data: Data = None, config: Config = None) -> None:
    """Pause roots: until they are resumed they are not refreshed, and `harvest gather` without a ROOT skips them."""
    pause_roots(settings(config, data=data), roots, on=True)


@app.command()
def resume(roots: Names, data: Data = None, config: Config = None) -> None:
    """Resume paused roots: they are refreshed when they are due; on Kafka `roots add` visits them at once."""
    pause_roots(settings(config, data=data), roots, on=False)


def pause_roots(found: Settings, roots: Sequence[str], *, on: bool) -> None:
    """Pause roots by their names (`on`), or resume them. Raises Failure for a name that is no root, LockedError beside a runner."""
    from streams.embedded import runs
    from streams.store import Store

    wanted = _known(found, roots)
    if found.kafka.brokers:
        with _cluster(found) as (log, cluster):
            cluster.pause(log, wanted, on=on)
        return
    with Store(found.data, runner=True) as store:
        for root in wanted:
            runs.pause(store, root.url, on=on)


def _known(found: Settings, names: Sequence[str]) -> list[Root]:
    """Return the roots that the names refer to. Raises Failure for a name that is no root."""
    from processors.collector import listing_of
    from streams.cli.objectnames import urls_of

    known = {root.url: root for root in _roots(found)[0]}
    wanted = []
    for name in names:
        # A deleted folder cannot be recognized as one, but its URL still ends with a slash. A gateway is named as for `collect`.
        urls = [url for meant in urls_of(name) for url in (meant, meant.rstrip("/") + "/")]
        if (listing := listing_of(name)) is not None:
            urls.append(listing)
        root = next((known[url] for url in urls if url in known), None)
        if root is None:
            raise Failure(f"{printable(name)}: not a root of {_where(found)} (harvest roots list)")
        wanted.append(root)
    return wanted


@app.command()
def apply(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file of roots: TOML with a table [[root]] for each.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would be added, changed and removed.")] = False,
    prune: Annotated[bool, typer.Option("--prune", help="Remove the roots that the file does not have.")] = False,
    data: Data = None,
    config: Config = None,
) -> None:
    """Add and change roots as a file states them: limits, pauses, hours, scope, and folders to read instead of a server.

    A root that is added or changed is visited by `gather` or `run`, on Kafka by the workers at once.
    """
    found = settings(config, data=data)
    from streams.cli.planned_roots import changes, planned
    from streams.embedded import runs

    before = known_state(found)
    wanted = planned(file, found, before)
    if prune and not wanted:
        raise Failure(f"{file}: has no root, and --prune would remove all (harvest roots remove ROOT)", USAGE)
    listed = changes(wanted, before, prune=prune)
    for change in listed:
        if change.kind:
            put(printable(change.line))
    _note_changes(listed, before, dry_run=dry_run)
    removed = [each.root for each in listed if each.kind == "removed"]
    asked = [each for each in listed if each.kind in ("added", "changed")]
    if dry_run or not (removed or asked):
        return
    if found.kafka.brokers:
        with _cluster(found) as (log, cluster):
            cluster.drop(log, removed)
            cluster.ask(log, [each.root for each in asked], {each.root.url: each.plan for each in asked})
        return
    with appending(found) as store:
        for root in removed:
            runs.drop(store, root)
        for each in asked:
            runs.ask(store, each.root, each.plan)
    if asked:
        note("harvest gather, or harvest run, visits them")
    else:
        from streams.cli.gathering import settle

        settle(found, fetching=True)


def _note_changes(listed: Sequence[Change], before: RootsState, *, dry_run: bool) -> None:
    """Print how many roots change, which stay paused, and how many the file does not have."""
    counts = {kind: sum(each.kind == kind for each in listed) for kind in ("added", "changed", "removed", "")}
    would = " (nothing is done)" if dry_run else ""
    unchanged = counts.pop("")
    note(", ".join(f"{number:,} {kind}" for kind, number in counts.items()) + f", {unchanged:,} unchanged{would}")
    for each in listed:
        if each.root.url in before.paused and each.kind in ("added", "changed"):
            note(f"{each.root.url}: is paused still (harvest roots resume ROOT)")
    unlisted = len({root.url for root in before.roots} - {each.root.url for each in listed})
    if unlisted:
        note(f"{counted(unlisted, 'root')} not in the file (--prune removes what is not)")


@app.command()
def show(
    root: Annotated[str, typer.Argument(metavar="ROOT", help="A path or URL.")],
    data: Data = None,
    json: Json = False,
    config: Config = None,
) -> None:
    """Show the options of a root as `roots apply` reads them; those of the settings are comments."""
    found = settings(config, data=data)
    from streams.cli.planned_roots import as_json, as_toml

    (known,) = _known(found, [root])
    from schemas.records import Plan as Options

    plan = known_state(found).plans.get(known.url, Options())
    if json:
        from schemas.jsonform import line

        put(line(as_json(known, plan)))
        return
    for text in as_toml(known, plan):
        put(printable(text))


def known_state(found: Settings) -> RootsState:
    """Return the roots, plans and paused roots of the cluster, or of the data folder; none if there is no data folder yet."""
    if found.kafka.brokers:
        with _cluster(found) as (log, cluster):
            from streams.config.topology import topology_of

            drawn = topology_of(found)
            return RootsState(cluster.roots(log, drawn), cluster.plans(log, drawn), cluster.paused(log, drawn))
    from streams.embedded import runs
    from streams.store.data_folder import known

    with known(found.data) as store:
        return RootsState(runs.roots(store), runs.plans(store), runs.paused(store)) if store is not None else RootsState()


def _where(found: Settings) -> str:
    return ",".join(found.kafka.brokers) or str(found.data)


def _roots(found: Settings) -> tuple[list[Root], frozenset[str]]:
    """Return the roots of the cluster, or of the data folder, and the URLs of the paused ones."""
    if found.kafka.brokers:
        with _cluster(found) as (log, cluster):
            from streams.config.topology import topology_of

            return cluster.roots(log, topology_of(found)), cluster.paused(log, topology_of(found))
    from streams.embedded import runs

    with reading(found) as store:
        return runs.roots(store), runs.paused(store)


@contextmanager
def _cluster(found: Settings) -> Iterator[tuple[LogAccess, ModuleType]]:
    """Open the log of the cluster, and return it with the module for roots on Kafka. Raises Failure if its topics do not exist."""
    from streams.cli.common import open_log
    from streams.kafka.client import roots

    with open_log(found, writing=True) as log:
        if "crawl" not in log.topics():
            raise Failure("crawl: no such topic (harvest topics apply)")
        yield log, roots
