"""Shared by the commands: options, settings, the data folder, output, and one-line errors."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from streams.config.settings import Settings
    from streams.logs import LogAccess
    from streams.store import Store


def folder(text: str) -> Path:
    """Parse the name of a folder; an empty name is refused, because Path would make it the working folder."""
    from streams.config.settings import UNNAMED, UNTEXT, is_text

    if not text or not is_text(text):
        raise typer.BadParameter(UNTEXT if text else UNNAMED)
    return Path(text)


Data = Annotated[Path | None, typer.Option("--data", metavar="DIR", help="The data folder (default: harvest-data).", parser=folder)]
Config = Annotated[Path | None, typer.Option("--config", metavar="FILE", help="Settings (default: harvest.toml, if it is there).")]
Depth = Annotated[
    int | None,
    typer.Option(
        "--depth",
        metavar="N",
        min=-1,
        help="Steps from each ROOT given at most: from a page to what it links to, from a folder to what is in it; 0: the ROOT"
        " alone, -1: no limit (default: 10 for http and https, none for files).",
    ),
]
Accept = Annotated[bool, typer.Option("--accept-removals", help="Remove what is missing, also where that is in doubt.")]
MaxUrls = Annotated[
    int | None,
    typer.Option(
        "--max-urls",
        metavar="N",
        min=0,
        help="URLs of each ROOT given at most, folders counted; 0: no limit (default: 10,000 for http and https, none for files)."
        " A lower limit than before removes nothing.",
    ),
]
BrokerName = Annotated[
    str, typer.Option("--broker", metavar="NAME", help="The Broker that is meant (default: main; harvest broker list).")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object a line.")]


USAGE = 2
"""Exit code of a usage error."""


class Failure(Exception):  # noqa: N818 - named as the user meets it
    """A command cannot be carried out; the message gives the reason in one line. `code`: the exit code."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


def settings(config: Path | None, **flags: Any) -> Settings:
    """Load the settings; a flag's name has `__` for each point (`fetch__pause`). Raises SettingsError."""
    from streams.config.settings import load

    return load({name.replace("__", "."): value for name, value in flags.items()}, config)


def broker(found: Settings, name: str) -> str:
    """The name of a Broker that is defined; "": the one that is always there. Warns of other definitions. Raises SettingsError."""
    from processors.broker.definition import MAIN
    from streams.config.topology import broker_named, definitions_of

    meant = broker_named(found, name or MAIN)
    for mistake in definitions_of(found).mistakes:
        note(f"warning: {mistake.line}")
    return meant


@contextmanager
def reading(found: Settings) -> Iterator[Store]:
    """Open the store of the data folder read-only. Raises StoreError if there is none."""
    from streams.store import Store

    with Store(found.data, readonly=True) as store:
        yield store


@contextmanager
def appending(found: Settings) -> Iterator[Store]:
    """Open the store of the data folder to append beside a runner; creates it if necessary."""
    from streams.config.topology import topology_of
    from streams.store import Store

    with Store(found.data, {topic.name: found.partitions for topic in topology_of(found).topics}) as store:
        yield store


def open_log(found: Settings, *, writing: bool = False, bare: bool = False) -> AbstractContextManager[LogAccess]:
    """The log of the found. Raises ClusterError or StoreError where there is none; `bare`: it may have no topics."""
    from streams.config.topology import topology_of

    if found.kafka.brokers:
        from streams.kafka.client.cluster import Cluster, ClusterError
        from streams.kafka.client.log import KafkaLog

        log = KafkaLog(Cluster.of(found.kafka), topology_of(found))
        if not (bare or log.topics()):
            # An empty answer would be misleading: the likeliest reason is a different topic prefix.
            raise ClusterError("none of the topics is there (harvest topics apply)")
        return log
    from streams.logs import StoreLog
    from streams.store import Store

    made = {topic.name: found.partitions for topic in topology_of(found).topics} if writing else None
    return StoreLog(Store(found.data, made, readonly=not writing))


def put(text: str) -> None:
    """Write one line to standard output. Bytes that are no text, as in names of files, are output unchanged."""
    sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape") + b"\n")


def write_bytes(data: bytes) -> None:
    """Write bytes to standard output unchanged; on a terminal, with control characters escaped."""
    sys.stdout.buffer.write(terminal_safe(data) if sys.stdout.isatty() else data)


def terminal_safe(data: bytes) -> bytes:
    """Return bytes that are safe for a terminal: controls except tab and newline, and bytes that are no text, are escaped."""
    from schemas.jsonform import CONTROLS

    def escaped(found: re.Match[str]) -> str:
        code = ord(found[0])
        code -= 0xDC00 if code >= 0xDC80 and code < 0xDD00 else 0  # undo surrogateescape
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"

    # The class lists, in order: C0 except tab and newline, other characters that terminals obey, bytes that are no text.
    text = data.decode("utf-8", "surrogateescape")
    return re.sub(f"[\\x00-\\x08\\x0b-\\x1f{CONTROLS}\udc80-\udcff]", escaped, text).encode()


def note(text: str) -> None:
    """Write one line to standard error, without what a terminal would obey: it may name what others have written."""
    typer.echo("\n".join(map(printable, f"harvest: {text}".split("\n"))), err=True)


def megabytes(size: int) -> str:
    """Return a number of bytes as a text in MB."""
    return f"{size / 1e6:,.1f} MB"


def counted(count: int, one: str, several: str = "") -> str:
    """Return a number with its noun; `several` is the plural if it is not `one` with an s."""
    return f"{count:,} {one if count == 1 else several or one + 's'}"


def rebuild_command(broker: str) -> str:
    """Return the command that rebuilds the index of a Broker."""
    from processors.broker.definition import MAIN

    return "harvest index rebuild" + ("" if broker == MAIN else f" --broker {broker}")


def printable(text: str) -> str:
    """Return untrusted text made safe for a terminal: no C0 or C1 controls, no direction marks (none is printable)."""
    return "".join(c if c.isprintable() else " " for c in text)


def explained(error: BaseException) -> tuple[str, int] | None:
    """Return the error line and exit code for an error that is no bug of Harvest; None for a bug."""
    if isinstance(error, Failure):
        return str(error), error.code
    if isinstance(error, OSError):
        what = error.strerror or str(error)
        return (f"{error.filename}: {what}" if error.filename else what), 1
    codecs = [sys.modules.get(name) for name in ("schemas.codec", "msgspec")]
    if isinstance(error, tuple(codec.DecodeError for codec in codecs if codec)):
        # Records from outside became dead letters before this point: these are rows and records written by Harvest itself.
        return f"the data folder is damaged: {printable(str(error))[:200]}", 1
    modules = {
        "streams.config.settings": ("SettingsError", 2),
        "streams.store.errors": ("StoreError", 1),
        "streams.kafka.client.cluster": ("ClusterError", 1),
        "processors.query.mistakes": ("QueryError", 2),
        "sinks.index.errors": ("IndexDamaged", 1),
        "streams.operations.rebuild": ("MismatchError", 1),
        "streams.operations.backup_format": ("BackupError", 1),
        "streams.sandbox.values": ("SandboxError", 1),
        "streams.kafka.client.brokers": ("BrokerError", 1),
        "streams.kafka.client.reach": ("ClientSettingsError", 2),
    }
    for module, (name, code) in modules.items():
        # A class that was never imported was never raised: importing it here would make every error slow.
        kind = getattr(sys.modules.get(module), name, None)
        if kind is not None and isinstance(error, kind):
            lines = str(error).strip().splitlines() or [name]
            # A SandboxError may contain the traceback of a child process: its last line is the most useful.
            return lines[-1 if name == "SandboxError" else 0], code
    return None
