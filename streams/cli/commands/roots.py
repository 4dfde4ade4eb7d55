"""`harvest roots`: what is gathered, as configuration."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Annotated

import typer

from streams.cli.common import Config, Data, Depth, Failure, Json, MaxUrls, appending, note, printable, put, reading, settings

if TYPE_CHECKING:
    from schemas.records import Root
    from streams.config.settings import Settings
    from streams.logs import LogAccess

app = typer.Typer(no_args_is_help=True, help="Add, list, pause, resume and remove roots.")

Names = Annotated[list[str], typer.Argument(metavar="ROOT...", help="Paths or URLs.")]


@app.command()
def add(
    roots: Names,
    data: Data = None,
    depth: Depth = None,
    max_urls: MaxUrls = None,
    config: Config = None,
) -> None:
    """Add roots without gathering them: `gather` or `run` does, and on Kafka the workers do, at once.

    A root that is known already is visited again, with the limits given now.
    """
    found = settings(config, data=data)
    from streams.cli.rootnames import gathered_root
    from streams.embedded import runs

    wanted = [gathered_root(name, found, depth, max_urls) for name in roots]
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
    limits = {root.url: _limits(root) for root in before}
    for root in wanted:
        was, now = limits.get(root.url), _limits(root)
        if was is not None and was != now:
            note(f"{printable(root.url)}: its limits were {_told(was)}, and are {_told(now)} now (--depth, --max-urls)")
        if root.url in paused:
            note(f"{printable(root.url)}: is paused still (harvest roots resume ROOT)")


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
            put(f"{printable(root.url)}  {state}{_limits(root)}")


def _limits(root: Root) -> str:
    shown = [f"depth {root.depth}"] if root.depth >= 0 else []
    shown += [f"{root.urls:,} URLs"] if root.urls else []
    return "".join(f", {text}" for text in shown)


def _told(limits: str) -> str:
    return limits.removeprefix(", ") or "none"


@app.command()
def remove(roots: Names, data: Data = None, config: Config = None) -> None:
    """Remove roots: what no other root asks for goes."""
    found = settings(config, data=data)
    from streams.cli.gathering import settle
    from streams.embedded import runs

    wanted = _known(found, roots)
    if found.kafka.brokers:
        with _cluster(found) as (log, cluster):
            cluster.drop(log, wanted)
        return
    with appending(found) as store:
        for root in wanted:
            runs.drop(store, root)
    # What two roots share is asked for again, since only the one that ended may have found what it leads to.
    settle(found, fetching=True)


@app.command()
def pause(roots: Names, data: Data = None, config: Config = None) -> None:
    """Pause roots: they are not refreshed, and `harvest gather` without a ROOT leaves them out, until they are resumed."""
    _pause(settings(config, data=data), roots, on=True)


@app.command()
def resume(roots: Names, data: Data = None, config: Config = None) -> None:
    """Resume roots that were paused: they are refreshed as they come to be due; on Kafka `roots add` visits them at once."""
    _pause(settings(config, data=data), roots, on=False)


def _pause(found: Settings, roots: list[str], *, on: bool) -> None:
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


def _known(found: Settings, names: list[str]) -> list[Root]:
    """The roots that are meant. Raises Failure for one that is none."""
    from streams.cli.commands.search import urls_of

    known = {root.url: root for root in _roots(found)[0]}
    wanted = []
    for name in names:
        # A folder that is no more cannot be seen to be one: its URL has a slash at its end all the same.
        urls = [url for meant in urls_of(name) for url in (meant, meant.rstrip("/") + "/")]
        root = next((known[url] for url in urls if url in known), None)
        if root is None:
            raise Failure(f"{printable(name)}: not a root of {_where(found)} (harvest roots list)")
        wanted.append(root)
    return wanted


def _where(found: Settings) -> str:
    return ",".join(found.kafka.brokers) or str(found.data)


def _roots(found: Settings) -> tuple[list[Root], frozenset[str]]:
    """The roots of the cluster, or of the data folder, and the URLs of those that are paused."""
    if found.kafka.brokers:
        with _cluster(found) as (log, cluster):
            from streams.config.topology import topology_of

            return cluster.roots(log, topology_of(found)), cluster.paused(log, topology_of(found))
    from streams.embedded import runs

    with reading(found) as store:
        return runs.roots(store), runs.paused(store)


@contextmanager
def _cluster(found: Settings) -> Iterator[tuple[LogAccess, ModuleType]]:
    """The log of the cluster, and what asks it for roots. Raises Failure where its topics were not made."""
    from streams.cli.common import opened
    from streams.kafka.client import roots

    with opened(found, writing=True) as log:
        if "crawl" not in log.topics():
            raise Failure("crawl: no such topic (harvest topics apply)")
        yield log, roots
