"""`harvest replay`: applies a topic of summaries again, to the index that serves or to another one.

Strategy: a replay of everything is `harvest index rebuild`. A part is applied in place to the index that serves, which keeps the
rest. With `--to` the selection becomes an index of its own, built beside an existing one, counted, and swapped for it.
"""

from __future__ import annotations

import fcntl
import os
import re
import shlex
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from processors.broker.definition import MAIN
from streams.cli.commands.cat import TIME, moment
from streams.cli.commands.index import Quiet, alone, reading, rebuild_serving_index, stamp, unwritten
from streams.cli.common import USAGE, BrokerName, Config, Data, Failure, counted, note, printable, rebuild_command, settings
from streams.cli.common import broker as named

if TYPE_CHECKING:
    from streams.config.settings import Settings
    from streams.operations.selection import ReplayProgress, Selection, Watch

NAME = r"[a-z0-9][a-z0-9-]{0,99}"
SERVER = re.compile(rf"(https?://[^/?#]+)/({NAME})/?")

TO = (
    "Into an index of its own: below a folder; or on OpenSearch, URL/NAME, or a NAME on that of the settings. It is made anew,"
    " also where there is one already."
)


class Server(NamedTuple):
    """An index on OpenSearch, with the meaning of `index.url` and `index.name`."""

    url: str
    name: str


def replay(
    since: Annotated[str, typer.Option("--since", metavar="TIME", help=f"Only records appended then or later. {TIME}")] = "",
    gatherers: Annotated[
        list[str] | None, typer.Option("--gatherer", metavar="NAME", help="Only summaries of this Gatherer; repeatable.")
    ] = None,
    to: Annotated[str, typer.Option("--to", metavar="TARGET", help=TO)] = "",
    topic: Annotated[
        str, typer.Option("--topic", metavar="TOPIC", help="broker.NAME, or summaries, which knows no copies; that one with --to.")
    ] = "",
    broker: BrokerName = "",
    data: Data = None,
    quiet: Quiet = False,
    config: Config = None,
) -> None:
    """Apply the summaries of a topic again: all to a new index, or those since a time or of a Gatherer to the one that serves."""
    found = settings(config, data=data)
    from streams.cli.output.replay_progress import watched
    from streams.config.topology import broker_defined
    from streams.operations.selection import Selection
    from streams.topology.flow import SUMMARIES, archive

    name = named(found, broker or topic.removeprefix(archive("").name) if topic.startswith(archive("").name) else broker)
    topic = topic or archive(name).name
    if topic not in (archive(name).name, SUMMARIES.name):
        raise Failure(f"{printable(topic)}: an index is made of {archive(name).name} or {SUMMARIES.name}", USAGE)
    if topic == SUMMARIES.name and not to:
        raise Failure(f"{topic}: the index that serves is not made from this topic; use --to TARGET", USAGE)
    selection = Selection(topic, moment(since), frozenset(gatherers or ()), broker_defined(found, name))
    target = _target(found, to) if to else None
    with watched(quiet=quiet) as watch:
        tally = _replayed(found, name, selection, target, watch)
    if not quiet:
        _tell(found, name, tally, target)


def _replayed(found: Settings, broker: str, selection: Selection, target: Server | Path | None, watch: Watch) -> ReplayProgress:
    if isinstance(target, Server):
        return _to_server(found, broker, selection, target, watch)
    if target is not None:
        return _to_folder(found, broker, selection, target, watch)
    return rebuild_serving_index(found, broker, selection, watch) if selection.whole else _in_place(found, broker, selection, watch)


def _tell(found: Settings, broker: str, tally: ReplayProgress, target: Server | Path | None) -> None:
    named = "" if broker == MAIN else f"--broker {broker} "
    done = f"{counted(tally.read, 'record')} read, {tally.applied:,} applied, {counted(tally.held, 'summary', 'summaries')} held"
    note(done + (f", {tally.refused:,} refused by the index" if tally.refused else ""))
    if isinstance(target, Server):
        url = "" if target.url == found.index.url.rstrip("/") else f"HARVEST_INDEX_URL={_without_password(target.url)} "
        note(f"to search it: {url}HARVEST_INDEX_NAME={target.name} harvest search {named}QUERY")
    elif target is not None:
        url = "HARVEST_INDEX_URL= " if found.index.url else ""
        note(f"to search it: {url}harvest search --data {printable(shlex.quote(str(target)))} {named}QUERY")


def _without_password(url: str) -> str:
    scheme, _, place = url.partition("://")
    return f"{scheme}://{place.rpartition('@')[2]}"


def _in_place(found: Settings, broker: str, selection: Selection, watch: Watch) -> ReplayProgress:
    """Apply a part to the index that serves. Raises Failure if there is none."""
    from sinks.index.errors import IndexMissing
    from streams.operations import replay as replaying
    from streams.operations.indexes import alias, server
    from streams.store.data_folder import index_folder

    try:
        if found.index.url:
            with reading(found, selection.topic) as log:
                return replaying.on_server(log, selection, server(found), alias(found, broker), watch)
        with alone(found, selection.topic) as log:
            return replaying.in_folder(log, selection, index_folder(found.data, broker), watch)
    except IndexMissing as error:
        raise Failure(f"{printable(str(error))}; make it first: {rebuild_command(broker)}") from None


def _target(found: Settings, to: str) -> Server | Path:
    """Return the index that `--to` names. Raises Failure if it names none, or names the one that serves."""
    own = found.index.url.rstrip("/")
    if "://" in to:
        given = SERVER.fullmatch(to)
        if given is None:
            raise Failure(f"{printable(_without_password(to))}: no index on OpenSearch, as http://HOST:PORT/NAME", USAGE)
        meant: Server | Path = Server(given[1], given[2])
    elif own and os.sep not in to and to not in (os.curdir, os.pardir):
        if not re.fullmatch(NAME, to):
            raise Failure(f"{printable(to)}: no name of an index: small letters, digits and hyphens (a folder has a slash)", USAGE)
        meant = Server(own, to)
    else:
        meant = Path(to)
    serves: Server | Path = Server(own, found.index.name) if own else found.data.resolve()
    if serves == (meant if isinstance(meant, Server) else meant.resolve()):
        raise Failure(f"{printable(to)}: that is the index that serves, which is replayed without --to", USAGE)
    return meant


def _to_server(found: Settings, broker: str, selection: Selection, target: Server, watch: Watch) -> ReplayProgress:
    from contextlib import closing

    from sinks.index.opensearch.aliases import claim
    from sinks.index.opensearch.node import Node
    from streams.operations import rebuild
    from streams.operations.indexes import server

    alias = f"{target.name}-{broker}"
    with reading(found, selection.topic) as log:
        address = server(found, target.url)
        with closing(Node(address)) as node:
            claim(node, alias)
        return rebuild.on_server(log, selection, address, alias, stamp(), watch, selection.broker.languages)


def _to_folder(found: Settings, broker: str, selection: Selection, target: Path, watch: Watch) -> ReplayProgress:
    from streams.brokers import copy_definitions
    from streams.config.topology import definitions_folder
    from streams.operations import rebuild
    from streams.store.data_folder import index_folder

    path = index_folder(target, broker)
    with reading(found, selection.topic) as log, ExitStack() as held:
        held.enter_context(_claimed(target, path))
        if path.exists():
            held.enter_context(unwritten(path))
        copy_definitions(definitions_folder(found), definitions_folder(found.model_copy(update={"data": target})))
        return rebuild.in_folder(log, selection, path, watch, selection.broker.languages)


@contextmanager
def _claimed(target: Path, index: Path) -> Iterator[None]:
    """Lock a folder in which an index is made. Raises Failure if it contains anything else."""
    from streams.config.topology import FOLDER

    indexes = index.parent
    there = list(target.iterdir()) if target.exists() else []
    below = list(indexes.iterdir()) if indexes.is_dir() else []
    others = [entry for entry in there if entry not in (indexes, target / FOLDER) or not entry.is_dir()]
    # An index of another Broker may be there: the folder is then searched with --broker.
    others += [entry for entry in below if not _is_index(entry)]
    if others:
        raise Failure(f"{printable(str(target))}: contains something other than an index: {printable(others[0].name)}")
    indexes.mkdir(parents=True, exist_ok=True)
    folder = os.open(indexes, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Failure(f"{printable(str(target))}: an index is being made there by another run of harvest") from None
    else:
        yield
    finally:
        os.close(folder)


def _is_index(folder: Path) -> bool:
    """Return whether a folder contains an index, or nothing yet but an index's locks."""
    return folder.is_dir() and ((folder / "meta.json").exists() or all(entry.name.startswith(".") for entry in folder.iterdir()))
