"""Logs: lines for a person, or one JSON object a line; and, when it is asked for, the trace of every record.

A trace follows one object across stages and processes: every record that a stage has written is a line that names the stage, the
topic, partition and offset, and of the object its URL or OID and its version, which all records of one fetch share. `grep` for a
URL or a version over the logs of all workers gives what `harvest why` gives from the topics, with the process that did it.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TextIO

from schemas.codec import decode
from schemas.records import Record

REPEATING = ("aiokafka", "harvest.kafka")
"""Libraries that say the same several times a second, as long as no broker answers; the second is librdkafka, as edges log it."""
EVERY = 60.0
WORDS = 200
NAME = "harvest: "
"""What lines for a person begin with."""

_VALUE = re.compile(r"%[a-z]")


class Written(NamedTuple):
    """A record that a stage has written, and where it stands."""

    stage: str
    topic: str
    partition: int
    offset: int
    value: bytes
    record: Record | None = None
    """The value decoded, where somebody has done that already."""


def traced(written: Written) -> dict[str, str | int]:
    """The fields of a trace: where the record stands, and what it is about."""
    record: Any = written.record or decode(written.value)
    fields: dict[str, str | int] = {
        "stage": written.stage,
        "topic": written.topic,
        "partition": written.partition,
        "offset": written.offset,
        "record": type(record).__name__,
    }
    about = {"url": getattr(record, "url", "") or getattr(record, "object_url", ""), "oid": getattr(record, "oid", "")}
    about |= {name: getattr(record, name, "") for name in ("version", "kind", "outcome", "reason")}
    return fields | {name: value for name, value in about.items() if value}


def put(stream: TextIO, line: str) -> None:
    """Write a line, end included, at once: processes that share a stream, as the stages of one command do, tear no line apart."""
    stream.write(f"{line}\n")
    stream.flush()


class Logs:
    """Where a process says what it does. `form` is text or json; `always` stands in each line that is JSON.

    With `trace`, each record is told of.
    """

    def __init__(
        self,
        stream: TextIO,
        form: str = "text",
        *,
        trace: bool = False,
        clock: Callable[[], float] = time.time,
        always: Mapping[str, str] = {},
    ) -> None:
        self._stream = stream
        self._trace = trace
        self._json: Any = _structured(stream, clock, always) if form == "json" else None

    @property
    def structured(self) -> bool:
        """Whether lines are JSON."""
        return self._json is not None

    @property
    def traces(self) -> bool:
        """Whether records are told of."""
        return self._trace

    def say(self, text: str, **fields: str | float) -> None:
        """Something that a person would like to know."""
        if self._json:
            self._json.info(text, **fields)
        else:
            put(self._stream, f"{NAME}{text}")

    def failed(self, text: str, *, level: str = "error", **fields: str | float) -> None:
        """Something went wrong, or (`level`: warning) may: a line, with this program's name before it, or a bug's traceback."""
        if self._json:
            last = text.rstrip().rpartition("\n")[2].removeprefix(NAME)
            getattr(self._json, level)(last, **fields, **({"traceback": text} if "\n" in text.rstrip() else {}))
        else:
            put(self._stream, text.rstrip())

    def last(self, text: str) -> None:
        """Why this process ends itself, in one line: its last word."""
        self.failed(f"{NAME}{text}")

    def capture(self) -> None:
        """Have what libraries say be lines of this log, where lines are JSON; what they repeat is left out in any case."""
        for library in REPEATING:
            logger = logging.getLogger(library)
            logger.handlers = [Sparing()]
            logger.propagate = False
        if self._json:
            logging.basicConfig(level=logging.WARNING, handlers=[_Bridge(self)], force=True)

    def wrote(self, written: Written) -> None:
        """A record, where records are told of."""
        if not self._trace:
            return
        fields = traced(written)
        if self._json:
            self._json.info("wrote", **fields)
        else:
            rest = " ".join(f"{name}={value}" for name, value in fields.items() if name not in ("topic", "partition", "offset"))
            put(self._stream, f"{NAME}{written.topic}/{written.partition}@{written.offset} {rest}")


class Sparing(logging.Handler):
    """Hands the lines of a library on to where all lines go; of those with the same words one in EVERY seconds.

    That one says how many were left out before it. The words are those that the values are put into, so they are few; where there
    are none, as librdkafka logs ("%s [%s] %s"), the first value is the word.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._said: dict[tuple[str, str], tuple[float, int]] = {}
        """When words were handed on last, and how often they came since."""

    def emit(self, record: logging.LogRecord) -> None:
        """A line of the library's."""
        words, now = (record.name, _words(record)), self._clock()
        last, left = self._said.pop(words, (now - EVERY, 0))
        if now - last < EVERY:
            self._said[words] = last, left + 1
            return
        # Those that came last stand last; words that are made anew each time fill no memory.
        self._said[words] = now, 0
        while len(self._said) > WORDS:
            del self._said[next(iter(self._said))]
        if left:
            record.msg, record.args = f"{record.getMessage()} ({left:,} more of these were left out)", ()
        logging.getLogger().callHandlers(record)


def _words(record: logging.LogRecord) -> str:
    """What a line says, whatever its values are."""
    words = str(record.msg)
    if isinstance(record.args, tuple) and record.args and not any(map(str.isalpha, _VALUE.sub("", words))):
        return f"{words} {record.args[0]}"
    return words


class _Bridge(logging.Handler):
    def __init__(self, logs: Logs) -> None:
        super().__init__()
        # Or `basicConfig` gives it one that says the level and the logger in the line.
        self.setFormatter(logging.Formatter())
        self._logs = logs

    def emit(self, record: logging.LogRecord) -> None:
        """A line of a library's."""
        level = "error" if record.levelno >= logging.ERROR else "warning"
        self._logs.failed(self.format(record), level=level, logger=record.name)


def _structured(stream: TextIO, clock: Callable[[], float], always: Mapping[str, str]) -> Any:
    # Loaded where it is wanted: it takes longer than a search.
    import structlog  # noqa: PLC0415
    from structlog.typing import EventDict, WrappedLogger  # noqa: PLC0415

    def stamped(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
        return {"time": round(clock(), 3), **event}

    processors: list[Any] = [structlog.processors.add_log_level, stamped, structlog.processors.JSONRenderer(ensure_ascii=False)]
    logger = structlog.wrap_logger(structlog.WriteLogger(stream), processors=processors, wrapper_class=structlog.BoundLogger)
    return logger.bind(**always)
