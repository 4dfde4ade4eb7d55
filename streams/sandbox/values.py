"""What goes into a pool and what comes out: limits, outcomes, layers. Plain frozen values.

Laws:
- Every task ends with exactly one outcome.
- Only Done says that the frames are whole. After any other outcome they are a prefix; what a child gave in the last moments before
  it died may be missing.
- `culprit` is the last string given to progress() in this task; it is hostile data (a member's path), empty if there was none.
"""

from __future__ import annotations

import signal
from typing import NamedTuple

import msgspec

MAX_REASON = 200
MAX_TRACEBACK = 8_000
MAX_CULPRIT = 16_000
"""Bytes of UTF-8 kept of a progress() string; what is longer is cut."""


class SandboxLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What one child, one task and one frame may use. Sizes are bytes, times are seconds."""

    memory: int = 384 << 20
    """Address space that a child may take beyond what it has after the preload (RLIMIT_AS)."""
    cpu: int = 1_800
    """CPU time that a task has for certain. A child is recycled once it has used as much, so that a task never gets over twice
    that."""
    deadline: float = 60.0
    """Wall-clock time that may pass without a frame or progress."""
    whole: float = 1_800.0
    """Wall-clock time of one task, whatever it sends, with all tries of the same."""
    frame: int = 16 << 20
    """Length of one frame."""
    total: int = 1 << 30
    """Length of all frames of one task: of a large object, or of the small ones that travel together."""
    tasks: int = 10_000
    """Tasks after which a child is recycled."""
    growth: int = 128 << 20
    """Resident memory that a child may have grown by between two tasks before it is recycled."""
    file_size: int = 256 << 20
    """Length that a child may write a file to (RLIMIT_FSIZE); files are anonymous memory only, there being no file system."""
    files: int = 64
    """Open files of a child (RLIMIT_NOFILE)."""


class Ended(msgspec.Struct, frozen=True):
    """What all outcomes share."""

    @property
    def reason(self) -> str:
        """The outcome as a sentence of at most 200 characters, without a time, address or process id: two runs say the same."""
        return _sentence(self)[:MAX_REASON]


class Done(Ended, frozen=True):
    """The function returned, and all its frames were handed over."""

    strained: bool = False
    """Address space came above 80 per cent of the limit: what the function took for damaged input may have been want of memory."""


class Crashed(Ended, frozen=True):
    """The child died by a signal, or left by itself."""

    signal: int
    """0 if it was none."""
    exit: int
    """Exit status; 0 if it was a signal."""
    culprit: str


class TimedOut(Ended, frozen=True):
    """Killed: neither frame nor progress within the deadline, too long as a whole, or too much CPU time."""

    culprit: str
    which: str = "deadline"
    """deadline | whole | cpu"""


class OutOfMemory(Ended, frozen=True):
    """MemoryError, or any failure while the address space was above 80 per cent of the limit."""

    culprit: str


class Flooded(Ended, frozen=True):
    """The task gave a frame, or frames together, longer than the limits allow."""

    culprit: str
    which: str
    """frame | total"""


class Failed(Ended, frozen=True):
    """The function raised: our own bug. The child lives on."""

    traceback: str
    culprit: str


class Lost(Ended, frozen=True):
    """Through no fault of the task it was not finished (pool closed, forkserver gone again and again): ask again."""

    detail: str


Outcome = Done | Crashed | TimedOut | OutOfMemory | Flooded | Failed | Lost


def signal_name(number: int) -> str:
    """What a signal is called."""
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
    """One safety layer, as it was found in a child."""

    name: str
    active: bool
    detail: str


class SandboxError(RuntimeError):
    """The pool cannot work: the preload or the target failed. The text is the forkserver's traceback: a bug of ours."""


class MistakeError(ValueError):
    """What a preload was handed makes no sense: told as it is, in one line, and no bug of ours."""
