"""Stopping of a worker by a signal: at once before it begins, in order from then on, and never without end.

Strategy: until the runner installs its own handler, SIGTERM ends the process with 0. The runner's handler calls `limit_stop`: then
the process has LIMIT seconds for its orderly exit.

Laws:
- A worker that a signal stops before its runner has begun ends with 0: nothing is under way.
- A worker that has left in order ends at once, without the end of the interpreter, which its threads might crash.
- A worker that does not manage to leave in order ends as if it was killed, with code 1, and shows where each of its threads was.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

LIMIT = 25.0
"""Seconds for an orderly exit: less than supervisors and containers give a worker before they kill it without a word."""
ERRORS = 2
"""The descriptor of standard error."""


@contextmanager
def stoppable() -> Iterator[None]:
    """Let SIGTERM end the process at once with 0 during the block, until a runner installs its own handler.

    For the main thread, which alone can handle signals; in others nothing changes. Ctrl-C is handled by `streams/cli`.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _leave)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGTERM) is _leave:
            signal.signal(signal.SIGTERM, before)


def _leave(*_: object) -> None:
    os._exit(0)


def limit_stop(seconds: float = LIMIT) -> None:
    """End the process with 1 after some seconds, with the stacks of its threads on standard error. For signal handlers.

    No thread of Python: that cannot be started in a signal handler, and does not run while another one keeps the interpreter.
    """
    faulthandler.dump_traceback_later(seconds, exit=True, file=ERRORS)


def end_process() -> NoReturn:
    """End the process with 0, when everything was left in order.

    Cause: threads of the client and the watchdog live on while Python takes itself apart; now and then one of them then crashes the
    process, so that its exit code says that it has failed (-11).
    """
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(0)
