"""`harvest index rebuild`: a new index from the Broker's topic, while the old one serves until the swap."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streams.cli.common import BrokerName, Config, Data, Failure, counted, note, settings
from streams.cli.common import broker as named

if TYPE_CHECKING:
    from streams.config.settings import Settings
    from streams.logs import LogAccess
    from streams.operations.selection import ReplayProgress, Selection, Source, Watch

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, and no closing line.")]

app = typer.Typer(no_args_is_help=True, help="Rebuild the index.")


@app.command()
def rebuild(broker: BrokerName = "", data: Data = None, quiet: Quiet = False, config: Config = None) -> None:
    """Rebuild the index from its topic, compare its number of summaries with the topic, and swap it for the old one."""
    found = settings(config, data=data)
    from streams.cli.output.replay_progress import watched
    from streams.operations.selection import Selection
    from streams.topology.flow import archive

    name = named(found, broker)
    with watched(quiet=quiet) as watch:
        tally = rebuild_serving_index(found, name, Selection(archive(name).name), watch)
    if found.kafka.brokers:
        _accept(found, name)
    if not quiet:
        takes = "harvest worker takes" if found.kafka.brokers else "harvest run, or the next harvest gather, takes"
        hint = f"nothing is in the Broker's topic ({takes} an import there)"
        note(f"{counted(tally.held, 'summary', 'summaries')} indexed{'' if tally.read else ': ' + hint}")


def _accept(found: Settings, broker: str) -> None:
    """Have the sink take its topic as it is now, though it was made again: the new index holds its offsets. Raises ClusterError."""
    from streams.config.topology import topology_of
    from streams.kafka.client.cluster import Cluster
    from streams.kafka.client.topic_reset import reset_stage

    reset_stage(Cluster.of(found.kafka), topology_of(found), f"index.{broker}")


def rebuild_serving_index(found: Settings, broker: str, selection: Selection, watch: Watch) -> ReplayProgress:
    """Make the index of a Broker that serves anew."""
    from streams.config.topology import broker_defined
    from streams.operations import rebuild as rebuilding
    from streams.operations.indexes import alias, server
    from streams.store.data_folder import index_folder

    if found.index.url:
        with reading(found, selection.topic) as log:
            where = server(found), alias(found, broker), stamp()
            return rebuilding.on_server(log, selection, *where, watch, broker_defined(found, broker).languages)
    path = index_folder(found.data, broker)
    with alone(found, selection.topic) as log, ExitStack() as held:
        if found.kafka.brokers:
            held.enter_context(unwritten(path))
        return rebuilding.in_folder(log, selection, path, watch, broker_defined(found, broker).languages)


def stamp() -> str:
    """Return the suffix of the name of an index created now."""
    return datetime.now(tz=UTC).strftime("%Y%m%dt%H%M%S%f")[:-3]


@contextmanager
def reading(found: Settings, topic: str) -> Iterator[LogAccess]:
    """Open the log to read a topic. Raises Failure if there is no such topic."""
    from streams.cli.common import open_log

    with open_log(found) as log:
        if topic not in log.topics():
            raise Failure(f"{topic}: no such topic (harvest topics apply)")
        yield log


@contextmanager
def alone(found: Settings, topic: str) -> Iterator[Source]:
    """Open the log, and keep its runner from writing the index in the data folder meanwhile."""
    if found.kafka.brokers:
        with reading(found, topic) as log:
            yield log
        return
    from streams.store import Store

    Store(found.data, readonly=True).close()  # a missing store is not created
    # The runner's lock: its sink must not write into the folder that is swapped.
    with Store(found.data, runner=True) as store:
        if topic not in store.topics():
            raise Failure(f"{topic}: no such topic (harvest run, or the next harvest gather, makes it)")
        yield store


@contextmanager
def unwritten(path: Path) -> Iterator[None]:
    """Lock an index against other writers, such as a worker's sink. An index that cannot be opened has no writers."""
    from sinks.index.errors import IndexDamaged
    from sinks.index.tantivy.index import TantivyIndex

    with ExitStack() as held:
        with suppress(IndexDamaged):
            held.enter_context(closing(TantivyIndex(path)))
        yield
