from __future__ import annotations

import asyncio
import hashlib
import time
from typing import Any

import pytest
from msgspec.structs import replace

from schemas.codec import decode, encode
from schemas.records import CrawlEvent, FetchedObject, Root, Validators
from streams.fetch.adapters.web import kept_headers, retry_after
from streams.fetch.settings import LONGEST_WAIT

PAGE = b"<html><title>Page</title></html>"
MD5 = hashlib.md5(PAGE).hexdigest()


def test_page_gives_object_and_event(edge: Any, run: Any, split: Any, make_answer: Any) -> None:
    """A 200 gives the object with body, digests, headers and validators, and the frontier an event with the validators."""

    async def scenario() -> None:
        page = make_answer(
            body=PAGE, Content_Type="text/html; charset=utf-8", ETag='"e1"', Last_Modified="Mon, 01 Jan 2024 00:00:00 GMT"
        )
        async with edge({"/a?b=%20c": page}) as world:
            records = await world.get("/a?b=%20c")
            got, event = split(records)
            heard = world.server.heard[0]
        assert [decode(encode(r)) for r in records] == records
        assert (got.outcome, got.body, got.size, got.md5) == ("fetched", PAGE, len(PAGE), MD5)
        assert got.sha256 == hashlib.sha256(PAGE).hexdigest()
        assert got.content_type == got.headers["content-type"] == "text/html; charset=utf-8"
        assert got.validators == event.validators
        assert (event.kind, event.validators.etag, event.validators.md5) == ("fetched", '"e1"', MD5)
        assert event.validators.modified.startswith("Mon")
        assert not event.listing
        assert heard.headers["host"] == f"127.0.0.1:{world.server.port}"
        assert heard.headers["user-agent"].startswith("Harvest")
        assert "cookie" not in heard.headers

    run(scenario())


STATUSES = [
    ("401 Unauthorized", "failed", False),
    ("403 Forbidden", "failed", False),
    ("418 Teapot", "failed", False),
    ("451 Unavailable", "failed", False),
    ("408 Timeout", "failed", True),
    ("425 Early", "failed", True),
    ("429 Slow down", "failed", True),
    ("500 Oops", "failed", True),
    ("503 Busy", "failed", True),
    ("206 Partial", "failed", False),
    ("304 Not Modified", "failed", False),
    ("404 Not Found", "gone", False),
    ("410 Gone", "gone", False),
    ("302 Found", "failed", False),
]


@pytest.mark.parametrize("case", STATUSES)
def test_status_determines_kind_and_retry(case: tuple[str, str, bool], edge: Any, run: Any, split: Any, make_answer: Any) -> None:
    """404 and 410 are gone; other statuses are failures, with whether to retry. Essence gets none of them: the frontier decides."""
    status, kind, retryable = case

    async def scenario() -> None:
        async with edge({"/x": make_answer(status, Retry_After="7")}) as world:
            got, event = split(await world.get("/x"))
        assert (event.kind, event.retryable) == (kind, retryable)
        assert event.wait == (7_000 if retryable else 0)
        assert status[:3] in event.reason
        assert got is None

    run(scenario())


@pytest.mark.parametrize(
    ("value", "wait"),
    [
        ("0", 0),
        ("120", 120_000),
        ("999999999999999", LONGEST_WAIT),
        ("-5", 0),
        ("soon", 0),
        ("", 0),
        ("²", 0),
        ("Tue, 14 Nov 2023 22:14:20 GMT", 60_000),
        ("Tue, 14 Nov 2000 22:14:20 GMT", 0),
        ("Tue, 14 Nov 2099 22:14:20 GMT", LONGEST_WAIT),
        ("Tue, 99 Nov 2023 22:14:20 GMT", 0),
    ],
)
def test_retry_after_is_seconds_or_date(value: str, wait: int, now: int) -> None:
    """Retry-After is seconds or a date, limited to a day; anything else means no wait."""
    assert retry_after(value, now) == wait


def test_retry_after_in_asctime_is_gmt(monkeypatch: pytest.MonkeyPatch, now: int) -> None:
    """A date in asctime format is in GMT (RFC 9110, 5.6.7), whatever the local time zone."""
    monkeypatch.setenv("TZ", "XYZ+7")
    time.tzset()
    try:
        assert retry_after("Tue Nov 14 22:14:20 2023", now) == 60_000
    finally:
        monkeypatch.undo()
        time.tzset()


def test_304_means_unchanged(edge: Any, run: Any, split: Any, make_answer: Any) -> None:
    """A 304 to the sent validators means unchanged; they are kept, with a new ETag if there is one."""

    async def scenario() -> None:
        known = Validators(etag='"old"', modified="Mon, 01 Jan 2024 00:00:00 GMT", md5="d" * 32, size=9)
        async with edge({"/x": make_answer("304 Not Modified", ETag='"new"')}) as world:
            got, event = split(await world.get("/x", validators=known))
            headers = world.server.heard[0].headers
        assert headers["if-none-match"] == '"old"'
        assert headers["if-modified-since"] == known.modified
        assert got is None
        assert event.kind == "unchanged"
        assert event.validators == Validators(etag='"new"', modified=known.modified, md5="d" * 32, size=9)

    run(scenario())


def test_known_bytes_mean_unchanged(edge: Any, run: Any, split: Any, make_answer: Any) -> None:
    """A 200 with the known bytes means unchanged; without validators it is an object again."""

    async def scenario() -> None:
        async with edge({"/x": make_answer(body=PAGE, ETag='"2"')}) as world:
            got, event = split(await world.get("/x", validators=Validators(md5=MD5, size=len(PAGE))))
            assert got is None
            assert (event.kind, event.validators.etag) == ("unchanged", '"2"')
            got, event = split(await world.get("/x"))
            assert got.body == PAGE

    run(scenario())


MOVES = [
    ("/new?x#f", "/new?x"),
    ("/\xe9", "/%E9"),
    ("//other.example/a", "http://other.example/a"),
    ("https://Other.example:443/%7Ea/../b", "https://other.example/b"),
]


@pytest.mark.parametrize(("location", "target"), MOVES)
def test_redirect_ends_source_and_discovers_target(location: str, target: str, edge: Any, run: Any, make_answer: Any) -> None:
    """A redirect is not followed: the source is gone, the target discovered at the same depth."""

    async def scenario() -> None:
        async with edge({"/x": make_answer("301 Moved", Location=location)}) as world:
            records = await world.get("/x")
            host = world.server.host
        gone, ended, found = records
        assert isinstance(gone, FetchedObject)
        assert (gone.outcome, gone.reason) == ("gone", "moved")
        assert (ended.kind, ended.reason, ended.url) == ("gone", "moved", host + "/x")
        url = target if "://" in target else host + target
        assert [link.url for link in found.links] == [url]
        assert (found.kind, found.depth + 1, found.host) == ("discovered", 2, url[: url.index("/", 8)])
        assert len(world.server.heard) == 1

    run(scenario())


@pytest.mark.parametrize("case", [(0, "http://127.0.0.1", "http://b.example"), (0, "", ""), (1, "http://a", "http://a")])
def test_root_limited_to_its_host_moves_with_its_redirect(
    case: tuple[int, str, str], edge: Any, run: Any, make_answer: Any
) -> None:
    """A root limited to its host moves to the host of its redirect; the redirect of another page changes no root."""
    depth, host, expected = case

    async def scenario() -> None:
        async with edge({"/": make_answer("308 Moved", Location="http://b.example/")}) as world:
            root = Root(url=world.server.host + "/", run="1", host=host)
            found = (await world.get("/", depth=depth, root=root))[-1]
        assert isinstance(found, CrawlEvent)
        assert found.root is not None
        assert (found.root.host, found.depth) == (expected, depth - 1)

    run(scenario())


@pytest.mark.parametrize("location", ["/x", "file:///etc/passwd", "javascript:alert(1)", "http://", "ftp://a/b", ""])
def test_redirect_to_unsupported_target_fails(location: str, edge: Any, run: Any, split: Any, make_answer: Any) -> None:
    """A redirect to itself, to a local file or to an unsupported URL is a permanent failure."""

    async def scenario() -> None:
        async with edge({"/x": make_answer("302 Found", Location=location)}) as world:
            got, event = split(await world.get("/x"))
        assert got is None
        assert (event.kind, event.retryable) == ("failed", False)
        reason = {"": "without a Location", "/x": "to itself"}.get(location, f"to an unsupported URL: {location}")
        assert event.reason == f"status 302 {reason}"

    run(scenario())


def test_large_body_is_a_blob(edge: Any, run: Any, split: Any, make_answer: Any) -> None:
    """A body up to 64 kB is inline; a larger one is in the blob store under its digest, whether it was spooled or not."""

    async def scenario() -> None:
        sizes = (65_536, 65_537, 1_000_000)
        bodies = {f"/{size}": bytes(size - 1) + b"x" for size in sizes}
        async with edge({path: make_answer(body=body) for path, body in bodies.items()}) as world:
            for path, body in bodies.items():
                got, _ = split(await world.get(path))
                assert (got.size, got.md5) == (len(body), hashlib.md5(body).hexdigest())
                inline = len(body) <= 65_536
                assert (got.body == body, got.blob == "") == (inline, inline)
                assert inline or world.blobs.bodies[got.sha256] == body

    run(scenario())


def test_full_disk_fails_the_attempt_and_is_kept(edge: Any, run: Any, split: Any, make_answer: Any) -> None:
    """If the blob store cannot store a body, the attempt fails, and the fetcher keeps the error that has to stop the runner."""

    async def scenario() -> None:
        async with edge({"/x": make_answer(body=bytes(100_000))}) as world:
            world.blobs.full = OSError(28, "No space left on device")
            got, event = split(await world.get("/x"))
            assert got is None
            assert (event.kind, event.retryable) == ("failed", True)
            assert "No space left" in event.reason
            assert world.fetcher.store_error.errno == 28

    run(scenario())


def test_header_fields_are_bounded_and_cleaned(edge: Any, run: Any, split: Any, make_answer: Any) -> None:
    """Header fields are truncated and cleaned of what Avro cannot encode; an ETag that cannot be sent back is dropped."""

    async def scenario() -> None:
        page = make_answer(body=b"x", Content_Type="text/\xff\x7f" + "y" * 5_000, ETag='"\xe9"', Set_Cookie="a=b", X_Other="1")
        async with edge({"/x": page}) as world:
            records = await world.get("/x")
        got, event = split(records)
        assert [decode(encode(r)) for r in records] == records
        assert len(got.content_type) == 1_000
        assert got.content_type.isprintable()
        assert event.validators.etag == ""
        assert set(got.headers) == {"connection", "content-length", "content-type", "etag", "set-cookie", "x-other"}
        assert (got.status, got.headers["x-other"]) == (200, "1")

    run(scenario())


def test_hosts_do_not_wait_for_each_other(edge: Any, run: Any, make_answer: Any) -> None:
    """Hosts do not wait for each other: one that does not answer delays none on another address."""

    async def scenario() -> None:
        asked, release = asyncio.Event(), asyncio.Event()

        async def stuck(_: Any, writer: asyncio.StreamWriter) -> None:
            asked.set()
            await release.wait()
            writer.write(make_answer(body=b"late"))

        async with edge({"/stuck": stuck, "/x": make_answer(body=PAGE)}, lookup=lambda *_: ["127.0.0.1"]) as world:
            slow = asyncio.create_task(world.get("/stuck"))
            async with asyncio.timeout(200):
                await asked.wait()
                from_others = [
                    world.fetcher.fetch(request)
                    for n in range(50)
                    for request in [world.request(f"http://h{n}.example:{world.server.port}/x", f"127.0.0.{n + 2}")]
                ]
                answers = await asyncio.gather(*from_others)
            assert {records[-1].kind for records in answers} == {"failed"}  # nothing listens there; all requests have ended
            assert not slow.done()
            release.set()
            assert (await slow)[0].body == b"late"

    run(scenario())


def test_response_headers_and_status_are_kept() -> None:
    """All fields are kept under names in lower case, repeated ones joined by a comma, but Set-Cookie by a line feed."""
    fields = [("X-Robots-Tag", "noindex"), ("x-robots-tag", "otherbot: none"), ("Set-Cookie", "a=1, 2"), ("Set-Cookie", "b=2")]
    assert kept_headers(fields) == {"x-robots-tag": "noindex, otherbot: none", "set-cookie": "a=1, 2\nb=2"}


@pytest.mark.parametrize(("depth", "accept", "kind"), [(0, 0, "failed"), (1, 0, "fetched"), (0, 1 << 60, "fetched")])
def test_empty_start_page_is_doubted(
    edge: Any, run: Any, make_request: Any, make_answer: Any, depth: int, accept: int, kind: str
) -> None:
    """A start page that had content and is empty now is no object, unless removals are accepted; another page may be empty."""

    async def scenario() -> None:
        async with edge({"/": make_answer()}) as world:
            known = Validators(md5=MD5, size=len(PAGE))
            asked = make_request(world.server.host + "/", depth=depth, address="127.0.0.1", validators=known)
            asked = replace(asked, root=replace(asked.root, accept=accept))
            event = (await world.fetcher.fetch(asked))[-1]
        assert event.kind == kind
        assert event.reason == ("" if kind == "fetched" else "removal in doubt: the start page is empty")

    run(scenario())


def test_first_content_type_counts(edge: Any, run: Any, split: Any) -> None:
    """Of two Content-Type fields the first states the type: joined, they would state none."""
    page = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=iso-8859-2\r\nContent-Type: text/html\r\nContent-Length: 1\r\n\r\nx"
    )

    async def scenario() -> None:
        async with edge({"/": page}) as world:
            got, _ = split(await world.get("/"))
        assert got.content_type == got.headers["content-type"] == "text/html; charset=iso-8859-2"

    run(scenario())


def test_resolution_without_adapter_is_answered(edge: Any, run: Any) -> None:
    """A host of a scheme that nothing fetches is resolved, with the reason: another answer would leave its URLs waiting."""

    async def scenario() -> None:
        async with edge({}) as world:
            event = await world.resolve("irc://h")
        assert (event.kind, event.reason) == ("resolved", "not a scheme that can be fetched")

    run(scenario())


def test_response_headers_are_bounded() -> None:
    """Fields beyond 16 kB in total are left out, whatever their number and length; control characters do not enter a record."""
    many = kept_headers((f"x-{number}", "v" * 1_000) for number in range(100))
    assert list(many) == [f"x-{number}" for number in range(16)]
    late = [("x-first", "v" * 16_000), ("x-second", "v" * 1_000), ("Content-Type", "text/html"), ("Content-Type", "text/plain")]
    assert kept_headers(late) == {"content-type": "text/html", "x-first": "v" * 16_000}
    assert kept_headers([("a", "x\x00\x1b[31m\ny")]) == {"a": "x\ufffd\ufffd[31m y"}
