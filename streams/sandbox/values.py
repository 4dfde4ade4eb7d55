"""Inputs and outputs of a pool: limits, outcomes, layers. Plain frozen values.

Laws:
- Every task ends with exactly one outcome.
- Only after Done are the frames complete. After any other outcome they are a prefix; frames of the last moments before the child
  died may be missing.
- `culprit` is the last string passed to progress() in this task; it is hostile data (a member's path), empty if there was none.
"""

from __future__ import annotations

import signal
from typing import NamedTuple

import msgspec

MAX_REASON = 200
MAX_TRACEBACK = 8_000
MAX_CULPRIT = 16_000
"""Maximum bytes of UTF-8 kept of a progress() string; longer ones are cut."""


class SandboxLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of one child, one task and one frame. Sizes are bytes, times are seconds."""

    memory: int = 384 << 20
    """Address space that a child may use beyond its size after the preload (RLIMIT_AS)."""
    cpu: int = 1_800
    """CPU time guaranteed to a task. A child is recycled once it has used as much, so that a task never gets over twice that."""
    deadline: float = 60.0
    """Maximum wall-clock time without a frame or progress."""
    whole: float = 1_800.0
    """Maximum wall-clock time of one task over all its tries, whatever it sends."""
    frame: int = 16 << 20
    """Maximum length of one frame."""
    total: int = 1 << 30
    """Maximum length of all frames of one task: of a large object, or of the small ones that travel together."""
    tasks: int = 10_000
    """Tasks after which a child is recycled."""
    growth: int = 128 << 20
    """Growth of resident memory, measured between two tasks, after which a child is recycled."""
    file_size: int = 256 << 20
    """Maximum length of a file that a child writes (RLIMIT_FSIZE): anonymous memory only, since there is no file system."""
    files: int = 64
    """Maximum open files of a child (RLIMIT_NOFILE)."""


class Ended(msgspec.Struct, frozen=True):
    """Common part of all outcomes."""

    @property
    def reason(self) -> str:
        """The outcome as a sentence of at most 200 characters, without time, address or process id: two runs give the same text."""
        return _sentence(self)[:MAX_REASON]


class Done(Ended, frozen=True):
    """The function returned, and all its frames were delivered."""

    strained: bool = False
    """Address space exceeded 80 per cent of the limit: apparent damage of the input may have been a shortage of memory."""


class Crashed(Ended, frozen=True):
    """The child died by a signal, or exited by itself."""

    signal: int
    """0 if it was none."""
    exit: int
    """Exit status; 0 if it was a signal."""
    culprit: str


class TimedOut(Ended, frozen=True):
    """Killed: neither frame nor progress within the deadline, too long in total, or too much CPU time."""

    culprit: str
    which: str = "deadline"
    """deadline | whole | cpu"""


class OutOfMemory(Ended, frozen=True):
    """MemoryError, or any failure while the address space was above 80 per cent of the limit."""

    culprit: str


class Flooded(Ended, frozen=True):
    """The task sent a frame, or frames together, longer than the limits allow."""

    culprit: str
    which: str
    """frame | total"""


class Failed(Ended, frozen=True):
    """The function raised: a bug of this program. The child lives on."""

    traceback: str
    culprit: str


class Lost(Ended, frozen=True):
    """Not finished through no fault of the task (pool closed, forkserver died repeatedly): try again."""

    detail: str


Outcome = Done | Crashed | TimedOut | OutOfMemory | Flooded | Failed | Lost


def signal_name(number: int) -> str:
    """Return the name of a signal."""
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"


def _sentence(ended: Ended) -> str:
    match ended:
        case Crashed(signal=0, exit=status):
            return f"crashed: the parser left with status {status}"
        case Crashed(signal=number):
            return f"crashed: {signal_name(number)}"
        case TimedOut(which=which):
            return f"timed out ({which})"
        case OutOfMemory():
            return "out of memory"
        case Flooded(which=which):
            return f"too much output ({which})"
        case Failed(traceback=text):
            return f"failed: {(text.strip().splitlines() or [''])[-1]}"
        case Lost(detail=detail):
            return f"lost: {detail}"
        case _:
            return "done"


class Layer(NamedTuple):
    """One safety layer, as observed in a child."""

    name: str
    active: bool
    detail: str


class SandboxError(RuntimeError):
    """The pool cannot work: the preload or the target failed. The text is the forkserver's traceback: a bug of this program."""


class MistakeError(ValueError):
    """The argument of a preload is invalid: a mistake of the operator, reported in one line, not a bug of this program."""
