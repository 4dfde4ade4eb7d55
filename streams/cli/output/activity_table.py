"""The activity of the pipeline as lines of text, and as JSON objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from streams.cli.common import printable
from streams.operations.activity import Activity, HostActivity, RootActivity, StageActivity

FEWEST = 3
"""Lines of a table that are shown even on a low terminal."""


def as_objects(found: Activity) -> Iterator[dict[str, Any]]:
    """Yield one object for each stage, root and host; its first key tells which."""
    for table in (found.stages, found.roots, found.hosts):
        for one in table:
            yield one._asdict()


def as_lines(found: Activity, now: int, height: int | None = None) -> list[str]:
    """Return tables of stages, roots and hosts, names last. `now`: ms since the epoch; `height`: maximum number of lines."""
    stages = [_HEADS["stage"], *map(_stage, found.stages)]
    roots = [_HEADS["root"], *map(_root, found.roots)] if found.roots else []
    hosts = [_HEADS["host"], *(_host(one, now) for one in found.hosts)] if found.hosts else []
    notes = [printable(note) for note in found.notes]
    if height is not None:
        left = height - len(stages) - len(notes) - 3  # empty lines between the tables
        roots = _cut(roots, max(left // 3, left - len(hosts)))
        hosts = _cut(hosts, left - len(roots))
    return list(_joined([stages, roots, hosts, notes]))


def _cut(table: list[str], most: int) -> list[str]:
    """Return a table of at most `most` lines, the last of which gives the number of those left out."""
    most = max(most, FEWEST)
    return table if len(table) <= most else [*table[: most - 1], f"... {len(table) - most + 1:,} more"]


def _joined(tables: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of all tables that have some, with an empty line in between."""
    for number, table in enumerate(table for table in tables if table):
        if number:
            yield ""
        yield from table


_HEADS = {
    "stage": f"{'records/s':>10} {'to read':>12}  stage",
    "root": f"{'known':>10} {'waiting':>10} {'done':>10} {'failed':>8} {'refused':>8}  root",
    "host": f"{'pause':>7} {'queue':>8} {'in flight':>9} {'errors':>6} {'next in':>8}  host",
}


def _stage(one: StageActivity) -> str:
    rate = "-" if one.rate is None else f"{one.rate:,.1f}"
    return f"{rate:>10} {one.lag:>12,}  {one.stage}"


def _root(one: RootActivity) -> str:
    counts = f"{one.known:>10,} {one.waiting:>10,} {one.done:>10,} {one.failed:>8,} {one.refused:>8,}"
    return f"{counts}  {printable(one.root)}{' (paused)' if one.paused else ''}"


def _host(one: HostActivity, now: int) -> str:
    after = "now" if one.next is None or one.next <= now else f"{(one.next - now) / 1000:,.1f}"
    return f"{one.pause:>7,.1f} {one.queue:>8,} {one.in_flight:>9,} {one.errors:>6,} {after:>8}  {printable(one.host)}"
