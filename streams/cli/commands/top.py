"""`harvest top`: what the pipeline is doing now, redrawn on a terminal."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from streams.cli.common import Config, Data, Json, note, open_log, put, settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from streams.config.settings import Settings
    from streams.logs import LogAccess
    from streams.operations.activity import Activity

LIVE = 2.0
"""Seconds between two drawings."""
BETWEEN = 1.0
"""Seconds between the two readings of a snapshot, from which its rates are computed."""
UNKNOWN = "hosts and roots are not known here: the workers hold their rows (harvest topics members shows the workers)"


def top(
    data: Data = None,
    json: Json = False,
    count: Annotated[int, typer.Option("--count", "-n", metavar="N", min=0, help="Draw N times, then exit; 0: until Ctrl-C.")] = 0,
    config: Config = None,
) -> None:
    """Show hosts, roots and stages with their rates, every two seconds; one snapshot with --json, or if this is no terminal.

    It only reads, beside a runner. On Kafka it shows the stages.
    """
    found = settings(config, data=data)
    with open_log(found) as log:
        read = _reader(found, log)
        if json or not sys.stdout.isatty():
            _snapshot(read, json=json)
        else:
            _live(read, count)


def _reader(found: Settings, log: LogAccess) -> Callable[[], Activity]:
    """Return the function that reads the activity; what takes long to read is read less often."""
    from streams.clock import now_ms
    from streams.config.topology import topology_of
    from streams.operations.activity import Activity, StageRates

    rates = StageRates(log, topology_of(found), time.monotonic)
    if found.kafka.brokers:

        def of_cluster() -> Activity:
            stages, notes = rates.read()
            return Activity((), (), stages, (*notes, UNKNOWN))

        return of_cluster

    from streams.cli.collection import FRESH, Cached
    from streams.embedded.activity import host_activity, root_activity
    from streams.logs import StoreLog

    assert isinstance(log, StoreLog)  # noqa: S101 - for mypy: `open_log` gives it where there is no Kafka
    store = log.store
    hosts = Cached(lambda: host_activity(store, found.fetch.pause, now_ms()), FRESH)
    roots = Cached(lambda: root_activity(store), FRESH)

    def of_folder() -> Activity:
        stages, notes = rates.read()
        (there, more), (gathered, further) = hosts.get(), roots.get()
        return Activity(there, gathered, stages, (*notes, *more, *further))

    return of_folder


def _snapshot(read: Callable[[], Activity], *, json: bool) -> None:
    from schemas.jsonform import line
    from streams.cli.output.activity_table import as_lines, as_objects
    from streams.clock import now_ms

    read()
    time.sleep(BETWEEN)
    found = read()
    if not json:
        for text in as_lines(found, now_ms()):
            put(text)
        return
    for one in as_objects(found):
        put(line(one))
    for text in found.notes:
        note(text)


def _live(read: Callable[[], Activity], count: int) -> None:
    """Draw the activity again and again; rich itself handles NO_COLOR and the size of the terminal."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    from streams.cli.output.activity_table import as_lines
    from streams.clock import now_ms

    console = Console(highlight=False)
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        drawn = 0
        while True:
            lines = as_lines(read(), now_ms(), console.height - 1)
            live.update(Text("\n".join(lines), no_wrap=True, overflow="ellipsis"), refresh=True)
            drawn += 1
            if drawn == count:
                return
            time.sleep(LIVE)
