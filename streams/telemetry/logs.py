"""Logs: lines for people, or one JSON object a line; and, if enabled, a trace of every record.

A trace follows one object across stages and processes: every record that a stage has written is a line with the stage, topic,
partition and offset, and with the URL or OID of the object and its version, which all records of one fetch share. `grep` for a URL
or a version over the logs of all workers gives what `harvest why` gives from the topics, with the process that did it.
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
"""Libraries that repeat a message several times a second while no broker answers; the second is librdkafka, as edges log it."""
LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
LIBRARIES = {"debug": logging.INFO, "info": logging.WARNING, "warning": logging.WARNING, "error": logging.ERROR}
"""Least level of the lines of libraries, by that of the log. What they log for debugging has whole requests, with their secrets."""
QUIET = ("opensearch",)
"""Libraries that log what they also raise; they are heard only with `debug` (`sinks/index/opensearch/node.py` silences them)."""
EVERY = 60.0
WORDS = 200
NAME = "harvest: "
"""Prefix of lines for people."""

_VALUE = re.compile(r"%[a-z]")


class Written(NamedTuple):
    """A record that a stage has written, and its position."""

    stage: str
    topic: str
    partition: int
    offset: int
    value: bytes
    record: Record | None = None
    """The decoded value, if it is known."""


def traced(written: Written) -> dict[str, str | int]:
    """Return the fields of a trace: the position of the record, and its object."""
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
    """Write a line with its end in one call, so that processes that share a stream do not mix their lines."""
    stream.write(f"{line}\n")
    stream.flush()


class Logs:
    """Log of a process. `form` is text or json; `level` the least level of a line; `always` is in each JSON line.

    With `trace`, each record is logged, by a line of level info.
    """

    def __init__(
        self,
        stream: TextIO,
        form: str = "text",
        *,
        level: str = "info",
        trace: bool = False,
        clock: Callable[[], float] = time.time,
        always: Mapping[str, str] = {},
    ) -> None:
        self._stream = stream
        self._least = LEVELS[level]
        self._trace = trace and self.informs
        self.library_level = LIBRARIES[level]
        """Least level of the lines of libraries, as a number of `logging`."""
        self._json: Any = _structured(stream, clock, always) if form == "json" else None

    @property
    def structured(self) -> bool:
        """Return whether lines are JSON."""
        return self._json is not None

    @property
    def informs(self) -> bool:
        """Return whether lines of level info are logged."""
        return self._least <= logging.INFO

    @property
    def traces(self) -> bool:
        """Return whether records are logged."""
        return self._trace

    def say(self, text: str, **fields: str | float) -> None:
        """Log a message for people, of level info."""
        if not self.informs:
            return
        if self._json:
            self._json.info(text, **fields)
        else:
            put(self._stream, f"{NAME}{text}")

    def failed(self, text: str, *, level: str = "error", **fields: str | float) -> None:
        """Log an error, or (`level`: warning) a warning: one line with the program's name, or a traceback of an internal error."""
        if LEVELS[level] < self._least:
            return
        if self._json:
            last = text.rstrip().rpartition("\n")[2].removeprefix(NAME)
            getattr(self._json, level)(last, **fields, **({"traceback": text} if "\n" in text.rstrip() else {}))
        else:
            put(self._stream, text.rstrip())

    def last(self, text: str) -> None:
        """Log the reason why this process ends itself, in one line."""
        self.failed(f"{NAME}{text}")

    def capture(self) -> None:
        """Route log lines of libraries to this log, if lines are JSON; repeated ones are left out in any case.

        Their least level follows that of the log.
        """
        for library in REPEATING:
            logger = logging.getLogger(library)
            logger.handlers = [Sparing()]
            logger.propagate = False
        root = logging.getLogger()
        if self._json:
            logging.basicConfig(handlers=[_Bridge(self)], force=True)
        elif not root.handlers:
            if self.library_level < logging.WARNING:
                logging.basicConfig(stream=self._stream, format="%(name)s: %(message)s")
            elif logging.lastResort is not None:
                # Python prints warnings and errors so, but not those of a library with a handler that does nothing (botocore).
                root.addHandler(logging.lastResort)
        root.setLevel(self.library_level)
        if self.library_level < logging.WARNING:
            for library in QUIET:
                logging.getLogger(library).setLevel(self.library_level)

    def wrote(self, written: Written) -> None:
        """Log a record, if records are logged."""
        if not self._trace:
            return
        fields = traced(written)
        if self._json:
            self._json.info("wrote", **fields)
        else:
            rest = " ".join(f"{name}={value}" for name, value in fields.items() if name not in ("topic", "partition", "offset"))
            put(self._stream, f"{NAME}{written.topic}/{written.partition}@{written.offset} {rest}")


class Sparing(logging.Handler):
    """Forwards the log lines of a library; of those with the same words, one in EVERY seconds.

    That line says how many were left out before it. The words are the format without its values, so they are few; if there are
    none, as librdkafka logs ("%s [%s] %s"), the first value takes their place.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._said: dict[tuple[str, str], tuple[float, int]] = {}
        """When words were forwarded last, and how often they have come since."""

    def emit(self, record: logging.LogRecord) -> None:
        """Forward a log line of the library."""
        words, now = (record.name, _words(record)), self._clock()
        last, left = self._said.pop(words, (now - EVERY, 0))
        if now - last < EVERY:
            self._said[words] = last, left + 1
            return
        # The latest words are last; words that are new each time do not fill the memory.
        self._said[words] = now, 0
        while len(self._said) > WORDS:
            del self._said[next(iter(self._said))]
        if left:
            record.msg, record.args = f"{record.getMessage()} ({left:,} more of these were left out)", ()
        logging.getLogger().callHandlers(record)


def _words(record: logging.LogRecord) -> str:
    """Return the words of a line, without its values."""
    words = str(record.msg)
    if isinstance(record.args, tuple) and record.args and not any(map(str.isalpha, _VALUE.sub("", words))):
        return f"{words} {record.args[0]}"
    return words


class _Bridge(logging.Handler):
    def __init__(self, logs: Logs) -> None:
        super().__init__()
        # Otherwise `basicConfig` sets one that adds level and logger to the line.
        self.setFormatter(logging.Formatter())
        self._logs = logs

    def emit(self, record: logging.LogRecord) -> None:
        """Forward a log line of a library."""
        level = next((name for name in ("error", "warning") if record.levelno >= LEVELS[name]), "info")
        self._logs.failed(self.format(record), level=level, logger=record.name)


def _structured(stream: TextIO, clock: Callable[[], float], always: Mapping[str, str]) -> Any:
    # Loaded only if needed: it takes longer than a search.
    import structlog  # noqa: PLC0415
    from structlog.typing import EventDict, WrappedLogger  # noqa: PLC0415

    def stamped(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
        return {"time": round(clock(), 3), **event}

    processors: list[Any] = [structlog.processors.add_log_level, stamped, structlog.processors.JSONRenderer(ensure_ascii=False)]
    logger = structlog.wrap_logger(structlog.WriteLogger(stream), processors=processors, wrapper_class=structlog.BoundLogger)
    return logger.bind(**always)
