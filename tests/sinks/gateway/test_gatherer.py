"""Routes of the Gatherer's database: streams, marks, conditional requests."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from starlette.types import Message

from schemas.soif import parse
from sinks.feed.feed import Feed
from tests.sinks.feed.conftest import DAY, Clock, Stream, gone, made, oid
from tests.sinks.gateway.doubles import CollectionDouble


class Source:
    """A gateway over a feed."""

    def __init__(self, feed: Feed, client: TestClient, clock: Clock) -> None:
        self.feed, self.client, self.clock = feed, client, clock

    def get(self, path: str = "/gatherer/soif", **headers: str) -> tuple[int, dict[str, str], Stream | None]:
        """Return the status, the headers, and the stream of an answer."""
        with self.client.stream("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()}) as answer:
            body = b"".join(answer.iter_raw())
        return answer.status_code, dict(answer.headers), Stream([body]) if body and answer.status_code in (200, 226) else None


@pytest.fixture
def source(tmp_path: Path, client: Callable[..., TestClient], collection: CollectionDouble) -> Iterator[Source]:
    """A source with three summaries."""
    clock = Clock()
    feed = Feed(tmp_path / "feed", "tests", clock=clock)
    feed.apply([made("a"), made("b"), made("c")], {})
    collection.feed_path = feed.path
    yield Source(feed, client(), clock)
    feed.close()


def test_whole_stream(source: Source) -> None:
    """Without conditions the answer has everything, compressed, with the mark as its ETag."""
    status, headers, stream = source.get()
    assert status == 200
    assert headers["content-encoding"] == "gzip"
    assert stream is not None
    assert stream.titles == ["a", "b", "c"]
    assert headers["etag"] == f'"{stream.end["mark"]}"'


def test_ready_file_has_one_mark(source: Source) -> None:
    """The whole stream is the same however often it is asked for; after a change it has that, and the earlier file is not sent."""
    for version, title in enumerate(("one", "two"), 2):
        source.feed.apply([made("a", version, title=title)], {})
        found = [source.get() for _ in range(4)]
        assert len({headers["etag"] for _, headers, _ in found}) == 1
        assert [stream.titles for _, _, stream in found if stream is not None] == [["b", "c", title]] * 4
        assert ["content-length" in headers for _, headers, _ in found] == [False, False, True, True]
    # Parts, changes and prefixes have streams of their own.
    assert all("content-length" not in source.get(path)[1] for path in ("/gatherer/soif/3", "/gatherer/soif?prefix=http:"))


def test_reader_that_goes_leaves_no_open_file(source: Source) -> None:
    """A stream that is being written to a file ends at once when its reader has gone: the next one is written."""
    gc.disable()
    try:
        source.get()
        assert source.client.portal is not None
        source.client.portal.call(_leave, source.client)
        assert ["content-length" in source.get()[1] for _ in range(2)] == [False, True]
    finally:
        gc.enable()


async def _leave(client: TestClient) -> None:
    """Ask for the whole stream, and go while it is sent."""
    begun = asyncio.Event()
    messages: list[Message] = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> Message:
        if messages:
            return messages.pop()
        await begun.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        if message.get("body"):
            begun.set()
            await asyncio.Event().wait()

    scope = {
        "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1", "method": "GET", "scheme": "http",
        "path": "/gatherer/soif", "raw_path": b"/gatherer/soif", "query_string": b"", "root_path": "",
        "headers": [(b"host", b"localhost")], "client": ("127.0.0.1", 50_000), "server": ("localhost", 80),
    }  # fmt: skip
    await client.app(scope, receive, send)


def test_about_the_gatherer(source: Source) -> None:
    """The Gatherer states its name, its number of summaries, and its mark."""
    (found,) = parse(source.client.get("/gatherer").content)
    assert found.values("gatherer-name") == (b"tests",)
    assert found.values("summaries") == (b"3",)
    assert found.values("mark")[0].decode() == source.get()[1]["etag"].strip('"')


def test_parts(source: Source) -> None:
    """The listing names each part with its mark, which is the ETag of the part, and changes with that part alone."""
    before = {one.url: one.values("mark")[0].decode() for one in parse(source.client.get("/gatherer/soif/").content) if one.url}
    assert sorted(map(int, before)) == list(range(16))
    assert {f'"{mark}"' for mark in before.values()} == {source.get(f"/gatherer/soif/{part}")[1]["etag"] for part in range(16)}
    source.feed.apply([made("a", 2)], {})
    after = {one.url: one.values("mark")[0].decode() for one in parse(source.client.get("/gatherer/soif/").content) if one.url}
    assert [part for part in before if before[part] != after[part]] == [str(int(oid("a")[0], 16))]
    assert source.client.get("/gatherer/soif/16").status_code == 422


def test_conditional_requests(source: Source) -> None:
    """Nothing new: 304. Changes are sent to those who accept them: 226; everybody else gets everything."""
    tag = source.get()[1]["etag"]
    assert source.get(If_None_Match=tag)[0] == 304
    source.feed.apply([made("a", 2, title="a2"), gone("b", 2)], {})
    status, headers, stream = source.get(If_None_Match=f'"other", {tag}', A_IM="vcdiff, soif;q=1")
    assert (status, headers["im"], headers["delta-base"]) == (226, "soif", tag)
    assert stream is not None
    assert (stream.titles, stream.removed) == (["a2"], {oid("b")})
    status, _, stream = source.get(If_None_Match=tag)
    assert status == 200
    assert stream is not None
    assert stream.titles == ["a2", "c"]


def test_mark_beyond_the_retention(source: Source) -> None:
    """Who comes back after the removal retention gets everything; so does who has the mark of another feed."""
    tag = source.get()[1]["etag"]
    source.feed.apply([gone("b", 2)], {})
    for _ in range(2):
        source.clock.ms += 50 * DAY
        source.feed.apply([made("a", 3)], {})
    for unknown in (tag, '"0123456789abcdef-1"', '"no mark"', "*"):
        status, _, stream = source.get(If_None_Match=unknown, A_IM="soif")
        assert status == 200
        assert stream is not None
        assert stream.head["coverage"] == "complete"
        assert stream.titles == ["a", "c"]


def test_changes_since(source: Source) -> None:
    """`since` is a mark or a time; an unknown mark gives everything, nonsense is an error."""
    tag = source.get()[1]["etag"].strip('"')
    source.clock.ms += 10_000
    source.feed.apply([made("d", 2)], {})
    seconds = source.clock.ms // 1_000
    for since in (tag, str(seconds), "1972-09-27T00:00:10", "1972-09-27T02:00:10%2B02:00"):
        stream = source.get(f"/gatherer/soif?since={since}")[2]
        assert stream is not None
        assert stream.titles == ["d"]
    stream = source.get("/gatherer/soif?since=0123456789abcdef-1")[2]
    assert stream is not None
    assert stream.head["coverage"] == "complete"
    assert source.client.get("/gatherer/soif?since=yesterday").status_code == 400


def test_prefix(source: Source) -> None:
    """`prefix` chooses URLs, of everything and of changes."""
    stream = source.get("/gatherer/soif?prefix=http://example.org/a")[2]
    assert stream is not None
    assert stream.titles == ["a"]
    assert stream.head["prefix"] == "http://example.org/a"


def test_stream_that_is_being_made(client: Callable[..., TestClient], collection: CollectionDouble) -> None:
    """A stream that cannot be read now is 503 with a time to come back, and says why."""
    assert collection.feed_path is None
    for path in ("/gatherer", "/gatherer/soif", "/gatherer/soif/", "/gatherer/soif/3"):
        answer = client().get(path)
        assert answer.status_code == 503
        assert answer.headers["retry-after"]
        assert "being made" in answer.text
