"""What a process is at, for whoever asks with SIGUSR1: the stacks of its threads and of its tasks, on standard error."""

from __future__ import annotations

import asyncio
import faulthandler
import signal
import sys


def told() -> None:
    """From now on the signal has this process tell."""
    signal.signal(signal.SIGUSR1, _tell)


def _tell(*_: object) -> None:
    faulthandler.dump_traceback(all_threads=True)
    # Those of all loops: Faust's consumer has one of its own.
    for task in list(asyncio.tasks._all_tasks):  # type: ignore[attr-defined] # `all_tasks` has those of one loop
        task.print_stack(limit=12, file=sys.stderr)
    sys.stderr.flush()
