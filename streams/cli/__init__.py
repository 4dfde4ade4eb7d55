"""The command line. Little is imported here: what comes before `main` cannot be interrupted in good order."""

from __future__ import annotations

import os
import signal
import sys
import threading

__all__ = ["main"]

INTERRUPTED = 130
AGAIN = 0.05
"""Seconds after which a Ctrl-C that was lost comes again."""
PARSING = {"gather", "run", "summarize"}
"""Commands that have children parse: what these need takes a second to load, beside what the command itself needs."""


def main() -> None:
    """The program. Leaves by SystemExit; Ctrl-C ends it with 130 and no traceback, from its first imports to its end."""
    whole()
    asked = signal.getsignal(signal.SIGINT)
    # An exception might be lost in the middle of an import; there is nothing to put in order yet.
    _leave_at_once(asked)
    if PARSING.intersection(sys.argv[1:2]) and not {"-h", "--help"}.intersection(sys.argv):
        from streams.sandbox import early

        early.begin(early.WORK, early.PRELOAD)
    from streams.cli.app import main as run

    hear_again()
    signal.signal(signal.SIGINT, asked)
    try:
        run()
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    finally:
        # Nor is there anything to put in order any more, and Python would tell of an exception that nobody takes.
        _leave_at_once(asked)


def whole() -> None:
    """Open to nothing whichever of the standard streams is closed: what is said would be written to a file that got its number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            # The lowest number that is free is this one.
            os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8", closefd=False))  # noqa: SIM115 - to the end


def hear_again() -> None:
    """Have a Ctrl-C come again whose exception met Python where it takes none (a weak reference's callback, in an import)."""
    told = sys.unraisablehook

    def hook(lost: sys.UnraisableHookArgs, /) -> None:
        if lost.exc_type is not KeyboardInterrupt:
            told(lost)
            return
        # Not here and now: it would be lost again.
        threading.Timer(AGAIN, os.kill, (os.getpid(), signal.SIGINT)).start()

    sys.unraisablehook = hook


def _leave_at_once(asked: object) -> None:
    """From now on Ctrl-C ends the process at once, unless whoever started it wanted something else."""
    if asked is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
