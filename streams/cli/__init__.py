"""The command line. Little is imported here: what comes before `main` cannot be interrupted in good order."""

from __future__ import annotations

import os
import signal

__all__ = ["main"]

INTERRUPTED = 130


def main() -> None:
    """The program. Leaves by SystemExit; Ctrl-C ends it with 130 and no traceback, from its first imports on."""
    asked = signal.getsignal(signal.SIGINT)
    if asked is signal.default_int_handler:
        # An exception might be lost in the middle of an import; there is nothing to put in order yet.
        signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    from streams.cli.app import main as run

    signal.signal(signal.SIGINT, asked)
    try:
        run()
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
