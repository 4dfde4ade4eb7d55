"""Reads and plays the page for operators, so that the page and its test cannot differ.

A `console` block has commands, lines of their output, and steps outside of Harvest, which the caller gives as functions. A `text`
block has lines of the workers' log.
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

PAGE = Path("streams", "kafka", "OPERATIONS.md")
BLOCK = re.compile(r"(?ms)^```(console|text)\n(.*?)^```$")
SECTION = re.compile(r"(?ms)^## ([^\n]+)\n(.*?)(?=^## |\Z)")
PATIENCE = 240.0
"""Seconds until the output of a command, or the workers' log, is as shown."""
STEP = 0.3
"""Seconds between two looks."""
READS = ("bodies check", "topics lag", "search", "rejected list", "doctor")
"""Commands that change nothing: they are repeated until their output is as shown, and may fail."""


class Step(NamedTuple):
    """A command with lines of its output ("$"), a step outside of Harvest ("#"), or a line of the log ("log")."""

    kind: str
    text: str
    output: Sequence[str] = ()


def sections(page: str) -> dict[str, list[Step]]:
    """Return the steps of each section of a page, by its heading."""
    return {heading: list(_steps(text)) for heading, text in SECTION.findall(page)}


def _steps(text: str) -> Iterator[Step]:
    for kind, block in BLOCK.findall(text):
        if kind == "text":
            yield from (Step("log", line) for line in block.splitlines())
            continue
        for part in re.split(r"(?m)^(?=[$#] )", block)[1:]:
            first, *output = part.splitlines()
            yield Step(first[0], first[2:], output)


class Player:
    """Plays steps. `run`: runs a command of Harvest, and returns its output. `outside`: the other steps, by their text.

    `log`: returns the workers' log. `names`: what the names on the page stand for here.
    """

    def __init__(
        self,
        run: Callable[[Sequence[str]], str],
        outside: Mapping[str, Callable[[], object]],
        log: Callable[[], str],
        names: Mapping[str, str],
    ) -> None:
        self._run, self._outside, self._log, self._names = run, outside, log, names

    def play(self, steps: Sequence[Step]) -> None:
        """Play the steps in order. Raises AssertionError with what was written instead, KeyError for an unknown step."""
        for step in steps:
            # Part of the report of a failure.
            print(f"{time.strftime('%H:%M:%S')} {step.kind} {step.text}", flush=True)
            if step.kind == "#":
                self._outside[step.text]()
            elif step.kind == "log":
                self._await(self._log, [step.text], PATIENCE)
            else:
                self._command(step)

    def _command(self, step: Step) -> None:
        program, *words = shlex.split(self._real(step.text))
        assert program == "harvest"
        self._await(lambda: self._run(words), step.output, PATIENCE if " ".join(words).startswith(READS) else 0.0)

    def _await(self, look: Callable[[], str], lines: Sequence[str], patience: float) -> None:
        until = time.monotonic() + patience
        while missing := self._missing(found := look(), lines):
            assert time.monotonic() < until, (missing, found[-PRINTED:], self._log()[-PRINTED:])
            time.sleep(STEP)

    def _missing(self, found: str, lines: Sequence[str]) -> list[str]:
        """Return the lines that an output lacks; where none is shown, the lines that it has."""
        there = [" ".join(line.split()) for line in found.splitlines()]
        return [line for line in lines if not any(map(self._pattern(line).fullmatch, there))] if lines else there

    def _pattern(self, line: str) -> re.Pattern[str]:
        return re.compile(re.escape(" ".join(self._real(line).split())).replace(r"\.\.\.", ".*"))

    def _real(self, text: str) -> str:
        for name, real in self._names.items():
            text = text.replace(name, real)
        return text


PRINTED = 8_000
"""Characters of an output and of the log that a failure shows."""
