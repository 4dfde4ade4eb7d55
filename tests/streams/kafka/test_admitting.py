"""Records that a stage rejects because of their type or version; without a broker."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from schemas.codec import decode, encode
from schemas.records import Complete, File, Record, Rejected, Removed, Summary, Tick
from tests.streams.kafka.test_following import Message
from tests.streams.kafka.test_rows import decider

REMOVED = Removed(oid="a", url="http://a/", object_url="http://a/", version=1, time=1, reason="gone")
COMPLETE = Complete(object_url="http://a/", version=1, time=1, attempt="a", count=0)
SUMMARY = Summary(oid="a", url="http://a/", object_url="http://a/", gatherer="g", version=1, time=1, type="Text")


@pytest.mark.parametrize(
    ("stage", "topic", "record"),
    [
        ("catalog", "made", REMOVED),
        ("catalog", "made", File(object_url="http://a/", url="http://a/", path="", version=1)),
        ("catalog", "annotations", SUMMARY),
        ("dedup.main", "holders.main", Tick(time=1)),
        ("register.main", "copies.main", SUMMARY),
        ("frontier", "crawl", Tick(time=1)),
    ],
)
def test_type_foreign_to_topic_is_rejected(tmp_path: Path, stage: str, topic: str, record: Record) -> None:
    """A record of a type that its topic does not carry becomes a dead letter, even if the type is similar, and changes no row."""
    decided: Any = decider(tmp_path, stage)
    message = Message(0)
    message.tp, message.topic, message.value = message.tp._replace(topic=topic), topic, encode(record)
    decided.following.committed = lambda _: 0
    rows, outputs = decided.decide(_event(message))
    assert not rows
    assert [_letter(output.value).reason for output in outputs] == [f"not a record: a {type(record).__name__}"]


@pytest.mark.parametrize("version", [-1, (1 << 63) - 1])
@pytest.mark.parametrize(
    ("stage", "topic", "record"),
    [("register.main", "summaries", SUMMARY), ("register.main", "summaries", REMOVED), ("catalog", "made", COMPLETE)],
)
def test_version_out_of_range_is_rejected(
    tmp_path: Path, stage: str, topic: str, record: Summary | Removed | Complete, version: int
) -> None:
    """A version below the lowest, or one without a successor, becomes a dead letter with that reason, and changes no row."""
    decided: Any = decider(tmp_path, stage)
    message = Message(0)
    message.tp, message.topic = message.tp._replace(topic=topic), topic
    message.value = encode(msgspec.structs.replace(record, version=version))
    decided.following.committed = lambda _: 0
    rows, outputs = decided.decide(_event(message))
    assert not rows
    assert [_letter(output.value).reason for output in outputs] == ["not a record: a version out of range"]


def _event(message: Message) -> Any:
    return SimpleNamespace(message=message)


def _letter(value: bytes | None) -> Rejected:
    found = decode(value or b"")
    assert isinstance(found, Rejected)
    return found
