"""Logs: text or JSON lines, and the trace of records."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from schemas.codec import encode
from schemas.records import Complete, Record, Removed, Role
from sinks.index.opensearch.node import Node
from streams.kafka.worker.telemetry import WorkerTelemetry
from streams.telemetry import Health, Logs, Metrics, Written
from streams.telemetry.logs import EVERY, WORDS, Sparing

REMOVED = Removed(oid="o1", url="http://a/x#m", object_url="http://a/x", version=7, time=1, reason="gone")


def written(record: Record) -> Written:
    """An encoded record, as written by catalog."""
    return Written("catalog", "summaries", 3, 41, encode(record))


def test_text_lines() -> None:
    """Text is as the commands print it, a traceback is unchanged, and records are traced only on request."""
    stream = io.StringIO()
    logs = Logs(stream)
    logs.say("running")
    logs.failed("Traceback:\nValueError: x\n")
    logs.wrote(written(REMOVED))
    assert stream.getvalue() == "harvest: running\nTraceback:\nValueError: x\n"


def test_json_lines() -> None:
    """Every line is one JSON object with time and level, also a traceback; fixed fields are in each."""
    stream = io.StringIO()
    logs = Logs(stream, "json", clock=lambda: 12.3456, always={"stage": "run"})
    logs.say("running", roots=2)
    logs.failed("Traceback:\nValueError: naïve\n")
    logs.failed("harvest: crawl, partition 0, offset 7: not a record")
    first, second, third = map(json.loads, stream.getvalue().splitlines())
    assert first == {"time": 12.346, "level": "info", "event": "running", "stage": "run", "roots": 2}
    assert (second["level"], second["event"]) == ("error", "ValueError: naïve")
    assert second["traceback"] == "Traceback:\nValueError: naïve\n"
    assert (third["level"], third["event"], "traceback" in third) == ("error", "crawl, partition 0, offset 7: not a record", False)


def test_reason_of_a_worker_to_end_is_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason why a worker ends itself is a normal log line, and the exit code is 1."""
    ended: list[int] = []
    monkeypatch.setattr("streams.kafka.worker.telemetry.os._exit", ended.append)
    text, machine = io.StringIO(), io.StringIO()
    for stream, form in (text, "text"), (machine, "json"):
        WorkerTelemetry("catalog", "", 1, Health(), Metrics(), Logs(stream, form)).end("stands at 3")
    assert text.getvalue() == "harvest: stands at 3\n"
    said = json.loads(machine.getvalue())
    assert (said["level"], said["event"], ended) == ("error", "stands at 3", [1, 1])


@pytest.mark.parametrize("form", ["text", "json"])
def test_line_is_one_write(form: str) -> None:
    """A line and its end are one write, so that lines of processes that share a stream, as a command's stages do, do not mix."""
    writes: list[str] = []

    class Stream(io.StringIO):
        def write(self, text: str) -> int:
            writes.append(text)
            return len(text)

    logs = Logs(Stream(), form, trace=True)
    logs.say("running")
    logs.failed("ValueError: x")
    logs.wrote(written(REMOVED))
    assert [text.count("\n") for text in writes] == [1, 1, 1]
    assert all(text.endswith("\n") for text in writes)


@pytest.mark.parametrize(
    ("record", "about"),
    [
        (REMOVED, {"url": "http://a/x#m", "oid": "o1", "version": 7, "reason": "gone"}),
        (
            Complete(object_url="http://a/x", version=7, time=1, attempt="a", count=2),
            {"url": "http://a/x", "version": 7, "reason": "whole"},
        ),
        (Role(oid="o1", version=7), {"oid": "o1", "version": 7}),
    ],
)
def test_trace_names_position_object_and_version(record: Record, about: dict[str, object]) -> None:
    """A traced record has its position and the object and version that all records of one fetch share."""
    stream = io.StringIO()
    Logs(stream, "json", trace=True, clock=lambda: 0).wrote(written(record))
    line = json.loads(stream.getvalue())
    where = {"stage": "catalog", "topic": "summaries", "partition": 3, "offset": 41, "record": type(record).__name__}
    assert line == {"time": 0, "level": "info", "event": "wrote", **where, **about}


@pytest.fixture
def aiokafka() -> Iterator[logging.Logger]:
    """A logger of aiokafka; handlers and levels are restored after the test."""
    library, root, quiet = logging.getLogger("aiokafka"), logging.getLogger(), logging.getLogger("opensearch")
    before = library.handlers, library.propagate, root.handlers
    levels = root.level, quiet.level
    root.handlers = []
    quiet.setLevel(logging.NOTSET)
    yield logging.getLogger("aiokafka.conn")
    library.handlers, library.propagate, root.handlers = before
    root.setLevel(levels[0])
    quiet.setLevel(levels[1])


@pytest.mark.parametrize("form", ["text", "json"])
def test_repeated_library_messages_are_left_out(form: str, aiokafka: logging.Logger) -> None:
    """A message that a library repeats with other values is logged once a minute, with a count; all other messages are logged."""
    stream, now = io.StringIO(), [0.0]
    if form == "text":
        logging.getLogger().handlers = [logging.StreamHandler(stream)]
    Logs(stream, form).capture()
    aiokafka.parent.handlers = [Sparing(lambda: now[0])]  # type: ignore[union-attr]
    for number in range(400):
        now[0] = number / 10
        aiokafka.error("Unable connect to node with id %s", number)
    aiokafka.error("Failed fetch messages from %s", 1)
    now[0] = EVERY
    aiokafka.error("Unable connect to node with id %s", 400)
    aiokafka.error("Unable connect to node with id %s", 401)
    logging.getLogger("faust").error("mine")
    logging.getLogger("faust").error("mine")
    lines = stream.getvalue().splitlines()
    assert [json.loads(line)["event"] if form == "json" else line for line in lines] == [
        "Unable connect to node with id 0",
        "Failed fetch messages from 1",
        "Unable connect to node with id 400 (399 more of these were left out)",
        "mine",
        "mine",
    ]
    for number in range(1_000):
        aiokafka.error(f"word {number}")
    assert len(aiokafka.parent.handlers[0]._said) == WORDS  # type: ignore[union-attr]


@pytest.mark.usefixtures("aiokafka")
def test_library_messages_keep_their_level() -> None:
    """A message of a library, or of this program through logging, keeps its level, and has nothing but its text."""
    stream = io.StringIO()
    Logs(stream, "json").capture()
    logging.getLogger("harvest").warning("the index is written again")
    logging.getLogger("faust").error("gone")
    said = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(one["level"], one["logger"], one["event"]) for one in said] == [
        ("warning", "harvest", "the index is written again"),
        ("error", "faust", "gone"),
    ]


def test_formats_of_values_only_are_distinguished(aiokafka: logging.Logger) -> None:
    """If a message format consists of values only, as that of librdkafka, the first value distinguishes its lines."""
    stream = io.StringIO()
    logging.getLogger().handlers = [logging.StreamHandler(stream)]
    aiokafka.parent.handlers = [Sparing(lambda: 0.0)]  # type: ignore[union-attr]
    aiokafka.parent.propagate = False  # type: ignore[union-attr]
    for number in range(3):
        aiokafka.error("%s [%s] %s", "FAIL", "consumer", f"try {number}")
    aiokafka.error("%s [%s] %s", "MAXPOLL", "consumer", "left")
    assert stream.getvalue().splitlines() == ["FAIL [consumer] try 0", "MAXPOLL [consumer] left"]


def test_trace_as_text_is_one_line() -> None:
    """As text a traced record is one line too."""
    stream = io.StringIO()
    Logs(stream, trace=True).wrote(written(Role(oid="o1", version=7)))
    assert stream.getvalue() == "harvest: summaries/3@41 stage=catalog record=Role oid=o1 version=7\n"


OWN = {
    "debug": ["info", "wrote", "warning", "error"],
    "info": ["info", "wrote", "warning", "error"],
    "warning": ["warning", "error"],
    "error": ["error"],
}
"""The lines of this program that are logged, by level."""
OF_LIBRARIES = {
    "debug": ["information", "caution", "failure"],
    "info": ["caution", "failure"],
    "warning": ["caution", "failure"],
    "error": ["failure"],
}
"""The lines of libraries that are logged, by level."""


@pytest.mark.parametrize("level", OWN)
@pytest.mark.parametrize("form", ["text", "json"])
def test_level_selects_own_lines(form: str, level: str) -> None:
    """Lines below the level are left out, the trace of records with those of level info, in both forms."""
    stream = io.StringIO()
    logs = Logs(stream, form, level=level, trace=True, clock=lambda: 0)
    logs.say("info")
    logs.wrote(written(REMOVED))
    logs.failed("harvest: warning", level="warning")
    logs.last("error")
    if form == "json":
        found = [json.loads(line)["event"] for line in stream.getvalue().splitlines()]
    else:
        found = [line.removeprefix("harvest: ") for line in stream.getvalue().splitlines()]
        found = ["wrote" if line.startswith("summaries/3@41") else line for line in found]
    assert found == OWN[level]
    assert logs.traces == ("wrote" in OWN[level])


@pytest.mark.usefixtures("aiokafka")
@pytest.mark.parametrize("library", ["aiokafka.conn", "faust", "botocore.auth", "uvicorn.error", "harvest"])
@pytest.mark.parametrize("level", OF_LIBRARIES)
@pytest.mark.parametrize("form", ["text", "json"])
def test_libraries_follow_the_level(form: str, level: str, library: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Libraries log warnings and errors as the level says, with debug also information, and never what is for debugging."""
    stream = io.StringIO()
    logging.getLogger().handlers = []  # those of the test runner
    Logs(stream, form, level=level).capture()
    logger = logging.getLogger(library)
    logging.getLogger("botocore").addHandler(logging.NullHandler())  # as botocore itself does
    for line, report in {
        "secret": logger.debug,
        "information": logger.info,
        "caution": logger.warning,
        "failure": logger.error,
    }.items():
        report(line)
    text = stream.getvalue() or capsys.readouterr().err  # without a handler, Python itself prints
    assert [line for line in ("secret", "information", "caution", "failure") if line in text] == OF_LIBRARIES[level]
    if form == "json":
        assert {json.loads(line)["logger"] for line in text.splitlines()} == {library}


@pytest.mark.usefixtures("aiokafka")
@pytest.mark.parametrize(("level", "least"), [("info", logging.CRITICAL), ("debug", logging.INFO)])
def test_requests_to_the_index_are_logged_with_debug_only(level: str, least: int) -> None:
    """The client of OpenSearch logs its requests with debug; otherwise its failures are raised, and not logged as well."""
    Logs(io.StringIO(), level=level).capture()
    Node("http://127.0.0.1:1").close()
    assert logging.getLogger("opensearch").level == least
