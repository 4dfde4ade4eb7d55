"""Requests for the changes of another Gatherer's database (RFC 3229)."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from schemas.records import OTHER_BASE, CrawlEvent, FetchedObject, Root, Validators

PARTS = "/gatherer/soif/"
PART = f"{PARTS}3"
BODY = b"@GATHERER {\n}\n"
KNOWN = Validators(etag='"e-1"', md5=hashlib.md5(BODY).hexdigest(), size=len(BODY))
STREAM = "application/x-harvest-soif"


def changes(make_answer: Any, **fields: str) -> bytes:
    """Return an answer with changes since the known mark."""
    usual = {"ETag": '"e-2"', "IM": "soif", "Delta_Base": '"e-1"', "Content_Type": STREAM}
    return bytes(make_answer("226 IM Used", BODY, **(usual | fields)))


async def collect(world: Any, path: str = PART, root: str = PARTS, validators: Validators | None = KNOWN) -> Any:
    """Send a request for a part."""
    return await world.get(path, validators=validators, root=Root(url=world.server.host + root, run="run-1"))


def test_changes_are_an_object(edge: Any, run: Any, split: Any, make_answer: Any) -> None:
    """The object and the event have status 226 and the new mark; an equal body of changes is still one to apply."""

    async def scenario() -> None:
        async with edge({PART: changes(make_answer)}) as world:
            got, event = split(await collect(world))
            headers = world.server.heard[0].headers
        assert (headers["a-im"], headers["if-none-match"]) == ("soif", '"e-1"')
        assert (got.outcome, got.status, got.body, got.md5) == ("fetched", 226, BODY, KNOWN.md5)
        assert (event.kind, event.status) == ("fetched", 226)
        # No later body is compared with that of changes.
        assert got.validators == event.validators == Validators(etag='"e-2"', md5="", size=len(BODY))

    run(scenario())


def test_whole_answer_to_a_request_for_changes(edge: Any, run: Any, split: Any, make_answer: Any) -> None:
    """A gateway that does not know the mark sends everything: status 200, as an object of any kind."""

    async def scenario() -> None:
        async with edge({PART: make_answer(body=BODY + b"\n", ETag='"f-9"')}) as world:
            got, event = split(await collect(world))
        assert (got.status, event.status, event.validators.etag) == (200, 0, '"f-9"')
        assert event.validators.md5 == got.md5

    run(scenario())


@pytest.mark.parametrize(
    "fields",
    [{"Delta_Base": '"e-0"'}, {"Delta_Base": ""}, {"Delta_Base": "e-1"}, {"IM": "vcdiff"}, {"IM": ""}, {"IM": "soif, gzip"}],
)
def test_changes_of_another_base_are_refused(fields: dict[str, str], edge: Any, run: Any, split: Any, make_answer: Any) -> None:
    """Changes of anything but the mark that was sent, or in another form, are no object; the frontier asks for the whole."""

    async def scenario() -> None:
        async with edge({PART: changes(make_answer, **fields)}) as world:
            got, event = split(await collect(world))
        assert got is None
        assert (event.kind, event.reason, event.retryable) == ("failed", OTHER_BASE, True)

    run(scenario())


@pytest.mark.parametrize(
    "given",
    [
        {"validators": None},
        {"validators": Validators(modified="Mon, 01 Jan 2024 00:00:00 GMT")},
        {"validators": Validators(etag='W/"e-1"')},
        {"path": PARTS},
        {"root": "/"},
        {"path": "/other/3"},
    ],
)
def test_changes_that_were_not_requested_are_a_failure(
    given: dict[str, Any], edge: Any, run: Any, split: Any, make_answer: Any
) -> None:
    """Without a strong mark, or elsewhere than below a listing of parts, no changes are asked for, and none are taken."""

    async def scenario() -> None:
        async with edge({given.get("path", PART): changes(make_answer)}) as world:
            got, event = split(await collect(world, **given))
            headers = world.server.heard[0].headers
        assert got is None
        assert "a-im" not in headers
        assert (event.kind, event.reason, event.retryable) == ("failed", "status 226", False)

    run(scenario())


def test_unchanged_part_keeps_its_mark(edge: Any, run: Any, split: Any, make_answer: Any) -> None:
    """A status 304 with another ETag does not move the mark: the changes up to that one were not received."""

    async def scenario() -> None:
        async with edge({PART: make_answer("304 Not Modified", ETag='"e-9"')}) as world:
            _, event = split(await collect(world))
        assert (event.kind, event.validators.etag) == ("unchanged", '"e-1"')

    run(scenario())


@pytest.mark.parametrize("path", [PART, PARTS])
@pytest.mark.parametrize(
    ("to", "kinds"),
    [
        ("/login?next=/gatherer/soif/3", ["failed"]),
        ("http://portal.example/", ["failed"]),
        ("http://portal.example{path}?session=1", ["failed"]),
        ("http://portal.example/gatherer/soif/44", ["failed"]),
        ("http://moved.example/harvest{path}", ["gone", "discovered"]),
    ],
)
def test_redirect_to_what_is_no_gateway_is_a_failure(
    path: str, to: str, kinds: list[str], edge: Any, run: Any, make_answer: Any
) -> None:
    """A login, or the portal of a network, in place of a gateway removes nothing; a gateway with another address has moved."""

    async def scenario() -> None:
        async with edge({path: make_answer("302 Found", Location=to.format(path=path))}) as world:
            records = await collect(world, path)
        assert [one.kind for one in records if isinstance(one, CrawlEvent)] == kinds
        assert any(isinstance(one, FetchedObject) for one in records) == ("gone" in kinds)

    run(scenario())
