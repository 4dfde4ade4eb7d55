from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from processors.essence.listings.listing_format import MAX_CHILDREN
from processors.essence.listings.nntp import MEDIA
from schemas.records import CrawlEvent, FetchedObject, Root
from streams.fetch.adapters.nntp import newest
from streams.fetch.answers import FetchError
from tests.streams.fetch.lines_server import NOW, endless, line_edge, silent

GREETING = b"200 ready\r\n"
ROW = b"1\tsubject\tauthor\tdate\t<a@example.org>\t\t100\t5\r\n"
ARTICLE = b"Newsgroups: local.one\r\nSubject: x\r\n\r\n..dots\r\n"

Answer = bytes | Callable[[asyncio.StreamWriter], Any]
Replies = Mapping[bytes, Answer]


def server(replies: Replies, heard: list[bytes] | None = None, greeting: Answer = GREETING) -> Any:
    """A news server with an answer for each command; it does not know others."""
    known: dict[bytes, Answer] = {b"MODE READER": b"201 no posting\r\n", b"QUIT": b"205 bye\r\n", **replies}

    async def send(answer: Answer, writer: asyncio.StreamWriter) -> None:
        if isinstance(answer, bytes):
            writer.write(answer)
            await writer.drain()
        else:
            await answer(writer)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await send(greeting, writer)
        while line := await reader.readline():
            if heard is not None:
                heard.append(line[:-2])
            await send(known.get(line[:-2], b"500 what?\r\n"), writer)

    return serve


async def answers(blobs: Any, serve: Any, path: str, settings: dict[str, Any] | None = None, **options: Any) -> Any:
    """Return object and event that answer one request."""
    async with line_edge("news", serve, blobs, **(settings or {})) as edge:
        records = await edge.get(path, **options)
    (event,) = [r for r in records if isinstance(r, CrawlEvent)]
    objects = [r for r in records if isinstance(r, FetchedObject)]
    return (objects[0] if objects else None), event


GROUP = {b"GROUP local.one": b"211 3 7 9 local.one\r\n", b"OVER 7-9": b"224 follows\r\n" + ROW + b".\r\n"}

FOUND: list[tuple[str, str, Replies, bytes, str]] = [
    ("a group", "/local.one", GROUP, ROW, MEDIA),
    ("XOVER", "/local.one", {**GROUP, b"OVER 7-9": b"500 what?\r\n", b"XOVER 7-9": GROUP[b"OVER 7-9"]}, ROW, MEDIA),
    ("an empty group", "/local.one", {b"GROUP local.one": b"211 0 8 7 local.one\r\n"}, b"", MEDIA),
    ("no articles in the range", "/local.one", {**GROUP, b"OVER 7-9": b"423 none\r\n"}, b"", MEDIA),
    ("groups", "/local.*", {b"LIST ACTIVE local.*": b"215 list\r\nlocal.one 9 7 y\r\n.\r\n"}, b"local.one 9 7 y\r\n", MEDIA),
    (
        "an article",
        "/a%2Fb@example.org",
        {b"ARTICLE <a/b@example.org>": b"220 0 <a/b@example.org>\r\n" + ARTICLE + b".\r\n"},
        ARTICLE.replace(b"..", b"."),
        "message/news",
    ),
]


@pytest.mark.parametrize(("path", "replies", "body", "media"), [case[1:] for case in FOUND], ids=[case[0] for case in FOUND])
def test_name_is_fetched_by_its_kind(blobs: Any, run: Any, path: str, replies: Replies, body: bytes, media: str) -> None:
    """A group gives its overview, a pattern the groups, an identifier the article with its dots undoubled; then it is unchanged."""

    async def scenario() -> Any:
        async with line_edge("news", server(replies), blobs) as edge:
            first: Any = await edge.get(path)
            return first, await edge.get(path, validators=first[0].validators)

    (found, event), again = run(scenario())
    assert (found.body, found.content_type, found.time, event.kind) == (body, media, NOW, "fetched")
    assert [record.kind for record in again] == ["unchanged"]


@pytest.mark.parametrize("mode", [b"200 ok\r\n", b"201 no posting\r\n", b"500 what?\r\n", b"501 no\r\n"])
def test_server_without_modes_is_read(blobs: Any, run: Any, mode: bytes) -> None:
    """A server that does not know MODE READER reads anyway."""
    found, _ = run(answers(blobs, server({**GROUP, b"MODE READER": mode}), "/local.one"))
    assert found.body == ROW


def test_only_commands_that_read_are_sent(blobs: Any, run: Any) -> None:
    """The commands of a request are these, and nothing else, whatever is in its URL."""
    heard: list[bytes] = []
    replies = {**GROUP, b"OVER 8-9": GROUP[b"OVER 7-9"]}
    run(answers(blobs, server(replies, heard), "/local.one", root=Root(url="news://x/y", run="run-1", urls=2)))
    assert heard[:3] == [b"MODE READER", b"GROUP local.one", b"OVER 8-9"]
    assert set(heard[3:]) <= {b"QUIT"}


RANGES: list[tuple[str, int, tuple[int, int] | None]] = [
    ("3 7 9 local.one", 10, (7, 9)),
    ("3 7 9", 2, (8, 9)),
    ("0 0 0 x", 10, None),
    ("0 8 7 x", 10, None),
    (f"{1 << 63} 1 {1 << 63} x", 10, ((1 << 63) - 9, 1 << 63)),
    (f"{1 << 63} 1 {1 << 63} x", 0, ((1 << 63) - MAX_CHILDREN + 1, 1 << 63)),
    (f"{1 << 63} 1 {1 << 63} x", 1 << 60, ((1 << 63) - MAX_CHILDREN + 1, 1 << 63)),
]


@pytest.mark.parametrize(("text", "limit", "expected"), RANGES)
def test_newest_articles_are_one_bounded_range(text: str, limit: int, expected: tuple[int, int] | None) -> None:
    """The range ends with the last article, and has at most as many numbers as allowed, however many a group states."""
    assert newest(text, limit) == expected


@pytest.mark.parametrize("text", ["", "x", "1 2", "-1 2 3", f"1 1 {1 << 64} x", "1" * 21 + " 1 1 x"])
def test_group_without_numbers_is_no_empty_group(text: str) -> None:
    """A malformed answer is a failure: as an empty group it would remove all articles."""
    with pytest.raises(FetchError, match="malformed answer"):
        newest(text, 10)


def answered(line: bytes) -> Replies:
    """Return replies of a server that answers everything with one line."""
    return dict.fromkeys((b"GROUP local.one", b"ARTICLE <a@b>", b"OVER 7-9"), line + b"\r\n")


@pytest.mark.parametrize(("path", "line"), [("/local.one", b"411 No such group"), ("/a@b", b"430 No such article")])
def test_missing_name_is_gone(blobs: Any, run: Any, path: str, line: bytes) -> None:
    """What the server says that it does not have is gone."""
    found, event = run(answers(blobs, server(answered(line)), path))
    assert (found, event.kind, event.reason) == (None, "gone", f"status {line.decode()}")


def drip(piece: bytes, pause: float = 0.01) -> Answer:
    """An answer that is sent piece by piece without end."""
    return lambda writer: endless(writer, piece, pause)


def block(rest: Answer) -> Answer:
    """An overview that goes on with `rest`."""

    async def send(writer: asyncio.StreamWriter) -> None:
        writer.write(b"224 follows\r\n" + ROW)
        if isinstance(rest, bytes):
            writer.write(rest)
            await writer.drain()
            writer.close()
        else:
            await rest(writer)

    return send


BAD: list[tuple[str, Answer, Replies, dict[str, Any], str, bool]] = [
    ("a silent greeting", silent, {}, {"answer_timeout": 0.2}, "no answer in time", True),
    ("another protocol", b"SSH-2.0-OpenSSH_9\r\n", {}, {}, "malformed answer: not NNTP", False),
    ("an endless greeting", drip(b"2" * 1_000, 0), {}, {}, "a line of more than", False),
    ("a long greeting", b"200 " + b"x" * 5_000 + b"\r\n", {}, {}, "a line of more than", False),
    ("a greeting a byte a second", drip(b"2"), {}, {"answer_timeout": 0.2}, "no answer in time", True),
    ("no service", b"502 Go away\r\n", {}, {}, "status 502 Go away", False),
    ("no service now", b"400 Later\r\n", {}, {}, "status 400 Later", True),
    ("a login", GREETING, answered(b"480 Who?"), {}, "a login is required", False),
    ("200 to everything", GREETING, answered(b"200 Fine"), {}, "status 200 Fine", False),
    (
        "an overview without end",
        GREETING,
        {**GROUP, b"OVER 7-9": block(drip(ROW * 9, 0))},
        {"max_body": 100_000},
        "body larger",
        False,
    ),
    (
        "a line without end",
        GREETING,
        {**GROUP, b"OVER 7-9": block(drip(b"x" * 999, 0))},
        {"max_body": 100_000},
        "body larger",
        False,
    ),
    ("a byte a second", GREETING, {**GROUP, b"OVER 7-9": block(drip(b"x"))}, {"grace": 0.1, "min_rate": 99_999}, "too slow", True),
    ("no last line", GREETING, {**GROUP, b"OVER 7-9": block(silent)}, {"answer_timeout": 0.2}, "no answer in time", True),
    ("a cut overview", GREETING, {**GROUP, b"OVER 7-9": block(b"2\tx")}, {}, "connection broken", True),
    ("for ever", GREETING, {**GROUP, b"OVER 7-9": block(drip(b"x" * 99))}, {"total_timeout": 0.5}, "not whole after", False),
    ("no numbers", GREETING, {b"GROUP local.one": b"211 many\r\n"}, {}, "malformed answer: GROUP", False),
]


@pytest.mark.parametrize(
    ("greeting", "replies", "settings", "reason", "retryable"), [case[1:] for case in BAD], ids=[case[0] for case in BAD]
)
def test_bad_peer_costs_a_bounded_wait(
    blobs: Any, run: Any, greeting: Answer, replies: Replies, settings: dict[str, Any], reason: str, retryable: bool
) -> None:
    """Whatever a peer does, the answer is one event with a reason: no object, so that no listing is without its articles."""
    found, event = run(answers(blobs, server(replies, greeting=greeting), "/local.one", settings))
    assert (found, event.kind, event.retryable) == (None, "failed", retryable)
    assert event.reason.startswith(reason)


def test_address_is_judged_before_the_connection(blobs: Any, run: Any) -> None:
    """An address that is not allowed is refused."""
    _, event = run(answers(blobs, server(GROUP), "/local.one", {"allow": ()}))
    assert event.kind == "refused"
