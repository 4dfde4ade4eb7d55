"""`harvest export` and `harvest import`: topics to files and back, on either engine, so also between engines."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, cast

import typer

from streams.cli.common import USAGE, Config, Data, Failure, counted, note, printable, settings

if TYPE_CHECKING:
    from schemas.ports import Logged
    from sinks.feed.mark import Mark
    from streams.config.settings import Settings
    from streams.logs import LogAccess

SUMMARIES, SOIF = "summaries", ".soif.gz"
"""Topic that is written as one stream of SOIF, and the ending of the names of such files."""
BATCH = 1_000
MEMORY = 16 << 20
"""Bytes of standard input that are kept in memory; more goes to a temporary file."""


def export(
    topic: Annotated[str, typer.Argument(metavar="TOPIC")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Output file; - is standard output.")],
    since: Annotated[str, typer.Option("--since", metavar="MARK", help="Only changes since a mark, a time, or an age (2h).")] = "",
    data: Data = None,
    config: Config = None,
) -> None:
    """Write a topic to a file: an Avro object container file with keys, times, tombstones and records.

    The topic summaries to a file whose name ends with .soif.gz: the stream that other Gatherers collect.
    """
    found = settings(config, data=data)
    if topic == SUMMARIES and file.name.endswith(SOIF):
        _export_stream(found, file, since)
        return
    if since:
        raise Failure(f"--since: only {SUMMARIES} to a file that ends with {SOIF}", USAGE)
    from streams.cli.common import open_log
    from streams.config.topology import topology_of
    from streams.operations import export as files

    with open_log(found) as log:
        if topic not in log.topics():
            raise Failure(f"{printable(topic)}: no such topic (harvest topics list)")
        try:
            drawn = topology_of(found).topic(topic)
        except KeyError:
            hint = "those of a Broker need its definition: harvest broker list"
            raise Failure(f"{printable(topic)}: not a topic of these settings ({hint})") from None
        with _whole(file) as stream:
            count = files.write(stream, drawn, _all(log, topic))
    note(f"{counted(count, 'record')} of {topic} written")


def _asked(since: str) -> Mark | int | None:
    """Return the mark or time (ms) that a user names; None: nothing. Raises ValueError."""
    from sinks.feed.mark import parse_since
    from streams.cli.commands.cat import AGE, moment

    return moment(since) if not since or AGE.fullmatch(since) else parse_since(since)


def _export_stream(found: Settings, file: Path, since: str) -> None:
    """Write the stream of all summaries, or of the changes since a mark or a time. Raises Failure."""
    from contextlib import closing

    from sinks.feed.errors import FeedMissing
    from streams.cli.feed_access import FeedAccess

    with closing(FeedAccess(found)) as access:
        try:
            asked = _asked(since)
            reader = access.open()
        except ValueError:
            raise Failure(f"--since: neither a mark nor a time: {printable(since)}", USAGE) from None
        except FeedMissing as error:
            raise Failure(f"{error} (feed.enabled)") from None
        with closing(reader), _whole(file) as stream:
            known = reader.known(asked) if asked is not None else None
            mark = reader.state().mark
            for piece in reader.complete() if known is None else reader.changes(known):
                stream.write(piece)
    note(f"{'all summaries' if known is None else f'the changes since {known}'} written; mark {mark}")


def _all(log: LogAccess, topic: str) -> Iterator[Logged]:
    """Yield the records that a topic has now, partition by partition."""
    for partition, end in enumerate(log.ends(topic)):
        offset = 0
        while batch := log.read(topic, partition, offset, BATCH, until=end):
            yield from batch
            offset = batch[-1].offset + 1


@contextmanager
def _whole(file: Path) -> Iterator[BinaryIO]:
    """Open a file for writing that gets its name only when it is complete."""
    if str(file) == "-":
        yield cast("BinaryIO", sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    part = file.with_name(f"{file.name}.part")
    if not file.parent.is_dir():
        raise Failure(f"{file.parent}: no such folder")
    try:
        with open(part, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        part.rename(file)
    finally:
        part.unlink(missing_ok=True)


def import_topic(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File written by `harvest export`; - is standard input.")],
    append: Annotated[bool, typer.Option("--append", help="Also into a topic that has records already.")] = False,
    data: Data = None,
    config: Config = None,
) -> None:
    """Append the records of a file to their topic, with their keys and times."""
    found = settings(config, data=data)
    from schemas.records import View
    from streams.cli.common import open_log
    from streams.config.topology import topology_of
    from streams.operations import export as files

    with _seekable(file) as stream:
        try:
            topic, records = files.read(stream, topology_of(found).topics)
            with open_log(found, writing=True) as log:
                count = _append(log, topic.name, records, append=append, everywhere=View in topic.carries)
        except files.FileError as error:
            raise Failure(f"{file}: {error}") from None
    then = "" if found.kafka.brokers else "; harvest run reads them, or the next harvest gather"
    note(f"{counted(count, 'record')} of {topic.name} appended{then}")


def _append(log: LogAccess, topic: str, records: Iterator[Logged], *, append: bool, everywhere: bool) -> int:
    """Append records; `everywhere`: each belongs in every partition."""
    partitions = log.topics().get(topic)
    if partitions is None:
        raise Failure(f"{topic}: not there (harvest topics apply)")
    held = sum(log.ends(topic)) - sum(log.starts(topic))
    if held and not append:
        raise Failure(f"{topic}: has {counted(held, 'record')} already; --append adds to them")
    from streams.operations.export import FileError

    count, placed = 0, _everywhere(records, partitions) if everywhere else _by_key(records, partitions)
    try:
        while batch := list(islice(placed, BATCH)):
            log.write(batch)
            count += len(batch)
    except FileError as error:
        raise FileError(f"{error}; {counted(count, 'record')} before that appended") from error
    return count


def _by_key(records: Iterator[Logged], partitions: int) -> Iterator[Logged]:
    """Yield records for the partition of their key, which is computed later; one without a key keeps its partition."""
    for one in records:
        yield one._replace(partition=-1 if one.key else one.partition % partitions)


def _everywhere(records: Iterator[Logged], partitions: int) -> Iterator[Logged]:
    """Yield the records of partition 0 for every partition, that one last: it has all (`streams/operations/views.py`)."""
    for one in records:
        if one.partition == 0:
            yield from (one._replace(partition=number) for number in reversed(range(partitions)))


@contextmanager
def _seekable(file: Path) -> Iterator[BinaryIO]:
    if str(file) != "-":
        with open(file, "rb") as stream:
            yield stream
        return
    with tempfile.SpooledTemporaryFile(MEMORY) as spool:
        shutil.copyfileobj(sys.stdin.buffer, spool)
        spool.seek(0)
        yield cast("BinaryIO", spool)
