"""The command line. This module imports little: imports before `main` cannot be interrupted cleanly."""

from __future__ import annotations

import os
import signal
import sys
import threading

__all__ = ["main"]

INTERRUPTED = 130
AGAIN = 0.05
"""Seconds after which a lost Ctrl-C is repeated."""
PARSING = {"gather", "run", "summarize"}
"""Commands with parser processes, which need a second of imports: these load in parallel with those of the command."""


def main() -> None:
    """Run the program. Exits by SystemExit; Ctrl-C at any time ends it with code 130 and no traceback."""
    redirect_closed_streams()
    asked = signal.getsignal(signal.SIGINT)
    # An exception might be lost in the middle of an import; nothing needs cleaning up yet.
    _leave_at_once(asked)
    if PARSING.intersection(sys.argv[1:2]) and not {"-h", "--help"}.intersection(sys.argv):
        from streams.sandbox import early

        early.begin(early.WORK, early.PRELOAD)
    from streams.cli.app import main as run

    repeat_lost_interrupts()
    signal.signal(signal.SIGINT, asked)
    try:
        run()
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    finally:
        # Nothing needs cleaning up any more, and Python would print a traceback for an exception that nobody catches.
        _leave_at_once(asked)


def redirect_closed_streams() -> None:
    """Redirect closed standard streams to /dev/null.

    Otherwise the next opened file would get such a stream's number, and output would be written into it.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            # os.open returns the lowest free number, which is this one.
            os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8", closefd=False))  # noqa: SIM115 - to the end


def repeat_lost_interrupts() -> None:
    """Repeat a Ctrl-C whose exception Python could not raise (in a weak reference's callback during an import)."""
    told = sys.unraisablehook

    def hook(lost: sys.UnraisableHookArgs, /) -> None:
        if lost.exc_type is not KeyboardInterrupt:
            told(lost)
            return
        # Not immediately: it would be lost again.
        threading.Timer(AGAIN, os.kill, (os.getpid(), signal.SIGINT)).start()

    sys.unraisablehook = hook


def _leave_at_once(asked: object) -> None:
    """Let Ctrl-C end the process at once from now on, unless the parent process had changed its handling."""
    if asked is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
