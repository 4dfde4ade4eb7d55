"""Chooses the progress display: live on a terminal, a line now and then elsewhere, nothing with `--quiet`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from schemas.records import Root
from streams.cli.output.progress import PLAIN, Progress, Silent
from streams.embedded import Embedded


@contextmanager
def progress(runner: Embedded, roots: Sequence[Root], *, quiet: bool) -> Iterator[Progress]:
    """Yield the progress of a run, live if standard error is a terminal."""
    if quiet:
        yield Silent(runner, roots, PLAIN)
    elif sys.stderr.isatty():
        from streams.cli.output.live_progress import lively

        with lively(runner, roots) as shown:
            yield shown
    else:
        yield Progress(runner, roots, PLAIN)
