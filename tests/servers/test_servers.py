"""The servers are real, shared by a session, and stopped with it."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer

from tests.servers import artefacts, sharing
from tests.servers.fixtures import TIMEOUT, Topics

if TYPE_CHECKING:
    from opensearchpy import OpenSearch

SESSION = """
import os, sys
from tests.servers import sharing
sharing.begin()
sharing.address("object_store")
print(sharing.keeper("object_store"), sharing.session()[1], flush=True)
sys.stdin.read()
sharing.end()
"""
"""A session with the servers of object storage, which start within a second; all kinds of servers have the same keeper."""


@pytest.fixture
def session(root: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that controls a session of its own and ends when its standard input is closed."""
    with subprocess.Popen([sys.executable, "-c", SESSION], stdin=-1, stdout=-1, text=True, cwd=root) as process:
        yield process
        process.communicate()


def said(process: subprocess.Popen[str]) -> tuple[int, Path]:
    """The process ID of the keeper, and the session's folder."""
    assert process.stdout is not None
    keeper, folder = process.stdout.readline().split()
    return int(keeper), Path(folder)


def children(pid: int) -> list[int]:
    """The process IDs of a process's children."""
    return [int(word) for task in Path(f"/proc/{pid}/task").iterdir() for word in (task / "children").read_text().split()]


def gone(*pids: int) -> bool:
    """Whether all processes have ended, waiting up to `TIMEOUT` for each."""
    for pid in pids:
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        ready = select.select([handle], [], [], TIMEOUT)[0]
        os.close(handle)
        if not ready:
            return False
    return True


def test_kafka_returns_an_acknowledged_record(kafka: str, topics: Topics) -> None:
    """A record that was acknowledged is consumed with its key and its headers."""
    topic = topics.make("one")
    producer = Producer({"bootstrap.servers": kafka, "acks": "all"})
    producer.produce(topic, b"value", b"key", headers=[("a", b"b")])
    assert producer.flush(TIMEOUT) == 0
    consumer = Consumer({"bootstrap.servers": kafka, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    try:
        message = consumer.poll(TIMEOUT)
        assert message is not None
        assert message.error() is None
        assert (message.key(), message.value(), message.headers()) == (b"key", b"value", [("a", b"b")])
    finally:
        consumer.close()


def test_opensearch_finds_a_document_by_a_stemmed_word(search_client: OpenSearch, index: str) -> None:
    """A document that was indexed is found by one of its words, stemmed by the rules of its language."""
    search_client.indices.create(index=index, body={"mappings": {"properties": {"text": {"type": "text", "analyzer": "english"}}}})
    search_client.index(index=index, id="1", body={"text": "gathering summaries"}, params={"refresh": "true"})
    answer = search_client.search(index=index, body={"query": {"match": {"text": "summary"}}})
    assert [hit["_id"] for hit in answer["hits"]["hits"]] == ["1"]


@pytest.mark.parametrize(("analyzer", "tokens"), [("thai", ["ภาษา", "ไทย"]), ("standard", ["ภาษาไทย"])])
def test_opensearch_splits_thai_into_words(search_client: OpenSearch, analyzer: str, tokens: list[str]) -> None:
    """Thai is split into words by a dictionary, which this Java lacks and ICU brings; without it no index can be created."""
    answer = search_client.indices.analyze(body={"analyzer": analyzer, "text": "ภาษาไทย"})
    assert [token["token"] for token in answer["tokens"]] == tokens


def test_tika_extracts_text_and_title(tika: str) -> None:
    """An HTML page yields its text and its title."""
    page = b"<html><title>Ferns</title><p>The quillwort, a fern of the lake bed."
    request = urllib.request.Request(f"{tika}/rmeta/text", page, {"Content-Type": "text/html"}, method="PUT")
    with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
        (found,) = json.load(answer)
    assert found["dc:title"] == "Ferns"
    assert "The quillwort, a fern of the lake bed." in found["X-TIKA:content"]


def test_processes_of_a_session_share_one_server(kafka: str) -> None:
    """A second request, also from another process of the session, gets the address of the same server."""
    ask = "from tests.servers import sharing; print(sharing.address('kafka'))"
    answer = subprocess.run([sys.executable, "-c", ask], check=True, capture_output=True, text=True, cwd=sharing.ROOT)
    assert answer.stdout.strip() == sharing.address("kafka") == kafka


@pytest.mark.parametrize("how", ["end", "interrupt", "kill the session", "kill the keeper"])
def test_servers_stop_with_their_session(session: subprocess.Popen[str], how: str) -> None:
    """A session that ends, is interrupted or is killed leaves no server and no folder; a keeper that is killed leaves no server."""
    keeper, folder = said(session)
    servers = children(keeper)
    assert len(servers) == 2
    if how == "end":
        session.communicate(timeout=TIMEOUT)
    elif how == "kill the keeper":
        os.kill(keeper, signal.SIGKILL)
    else:
        session.send_signal(signal.SIGKILL if how == "kill the session" else signal.SIGINT)
    assert gone(*servers, keeper)
    assert folder.exists() == (how == "kill the keeper")


def test_jar_with_another_checksum_is_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A jar whose SHA-256 differs from the list is refused, whatever its source, and nothing is installed."""
    jar = artefacts.Jar("0" * 64, "lib", "org.example", "sample", "1")
    fetched = tmp_path / "maven" / "kafka" / "jars"
    fetched.mkdir(parents=True)
    (fetched / jar.name).write_bytes(b"another")
    monkeypatch.setattr(artefacts, "HOME", tmp_path)
    monkeypatch.setattr(artefacts, "listed", lambda _: [jar])
    monkeypatch.setattr(artefacts, "_fetch", lambda _: tmp_path / "maven")
    with pytest.raises(artefacts.ArtefactError, match="not the one"):
        artefacts.install(["kafka"])
    assert not artefacts.installed("kafka")
