"""`harvest soif check, cat, json FILE...`: the SOIF codec on files, gzipped or not; `-` is standard input.

Each file is read up to its first error; the error is one line on standard error (file, byte offset, what was expected), the other
files are still read, and the exit code is 1. The templates before an error are output.
"""

from __future__ import annotations

import gzip
import io
import os
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Annotated, BinaryIO, cast

import typer

from schemas.jsonform import line
from schemas.jsonform import template as as_json
from schemas.soif import SoifError, Template, Writer, read
from streams.cli.common import printable

GZIP = b"\x1f\x8b"
FAULTS = (SoifError, OSError, EOFError, zlib.error)
"""Errors that are the file's fault; gzip reports damage by the last three."""

app = typer.Typer(no_args_is_help=True, help="Check SOIF files, print them in canonical form, or as JSON lines.")

Files = Annotated[list[str], typer.Argument(metavar="FILE...", help="SOIF, packed by gzip or not; - is standard input.")]


@contextmanager
def opened(name: str) -> Iterator[BinaryIO]:
    """Open a file by its name, and unpack it if it is gzip. Raises OSError."""
    with nullcontext(sys.stdin.buffer) if name == "-" else open(name, "rb") as raw:
        head = raw.read(len(GZIP))
        source = cast("BinaryIO", io.BufferedReader(_Joined(head, raw)))
        yield cast("BinaryIO", gzip.GzipFile(fileobj=source)) if head == GZIP else source


class _Joined(io.RawIOBase):
    """Non-seekable stream with its first bytes, already read, put back."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head = head
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        data = self._head[: len(buffer)] or self._rest.read(len(buffer))
        self._head = self._head[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)


class Sources:
    """The templates of some files, in order; errors are reported on standard error, and remembered."""

    def __init__(self, names: Iterable[str], done: Callable[[str, int], None] = lambda _name, _count: None) -> None:
        self._names = names
        self._done = done
        self._failed = False

    def __iter__(self) -> Iterator[Template]:
        """Yield the templates; `done` is called with each complete file and its number of templates."""
        for name in self._names:
            count = 0
            try:
                with opened(name) as stream:
                    for template in read(stream):
                        count += 1
                        yield template
            except FAULTS as error:
                self._failed = True
                typer.echo(printable(f"{name}: {getattr(error, 'strerror', None) or error}"), err=True)
            else:
                self._done(name, count)

    def finish(self) -> None:
        """Raise typer.Exit(1) if any file had an error."""
        if self._failed:
            raise typer.Exit(1)


@contextmanager
def output() -> Iterator[BinaryIO]:
    """Yield standard output, for bytes. If it cannot be written, report that in one line and exit with code 1."""
    out = sys.stdout.buffer
    try:
        yield out
        out.flush()
    except BrokenPipeError:
        raise  # the reader has closed the pipe: typer ends quietly
    except OSError as error:
        typer.echo(f"standard output: {error.strerror}", err=True)
        # Flushing buffered output at exit would fail once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
        raise typer.Exit(1) from error


@app.command()
def check(files: Files) -> None:
    """Print the number of templates of each file, or where it is malformed (then the exit code is 1)."""
    with output() as out:
        sources = Sources(files, lambda name, count: _say(out, f"{name}: {count} template{'' if count == 1 else 's'}"))
        for _ in sources:
            pass
    sources.finish()


@app.command()
def cat(files: Files) -> None:
    """Print the templates of all files in canonical form."""
    sources, writer = Sources(files), Writer()
    with output() as out:
        for template in sources:
            out.write(writer.write(template))
        out.write(writer.close())
    sources.finish()


@app.command("json")
def as_lines(files: Files) -> None:
    """Print each template as a JSON object on a line of its own."""
    sources = Sources(files)
    with output() as out:
        for template in sources:
            _say(out, line(as_json(template)))
    sources.finish()


def _say(out: BinaryIO, text: str) -> None:
    # Names of files may contain bytes that are no text: these are output unchanged.
    out.write(text.encode("utf-8", "surrogateescape") + b"\n")
