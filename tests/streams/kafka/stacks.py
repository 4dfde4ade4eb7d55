"""On SIGUSR1, dumps the stacks of all threads and asyncio tasks of a process to standard error."""

from __future__ import annotations

import asyncio
import faulthandler
import signal
import sys


def told() -> None:
    """Install the SIGUSR1 handler in this process."""
    signal.signal(signal.SIGUSR1, _tell)


def _tell(*_: object) -> None:
    faulthandler.dump_traceback(all_threads=True)
    # The tasks of all loops: Faust's consumer has a loop of its own.
    for task in list(asyncio.tasks._all_tasks):  # type: ignore[attr-defined] # `all_tasks` has those of one loop
        task.print_stack(limit=12, file=sys.stderr)
    sys.stderr.flush()
