"""Routes of the streams of Brokers: the whole archive, and what matches a query."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from starlette.testclient import TestClient

from processors.collector import listing_of
from processors.urls import canonical
from schemas.records import Removed, Summary
from schemas.soif import parse
from sinks.feed import choosing
from sinks.feed.feed import Feed
from tests.sinks.feed.conftest import Stream, gone, made, oid
from tests.sinks.gateway.doubles import BrokersDouble

PATH = "/brokers/main/soif"
WHALES = f"{PATH}?q=title:whale"


class Source:
    """A gateway over the stream of the Broker `main`."""

    def __init__(self, feed: Feed, client: TestClient) -> None:
        self.feed, self.client = feed, client
        self._published = 0

    def apply(self, *changes: Summary | Removed) -> None:
        """Publish summaries and removals."""
        for change in changes:
            self._published += 1
            self.feed.apply([replace(change, published=self._published)], {})

    def get(self, path: str, **headers: str) -> tuple[int, str, Stream | None]:
        """Return status, ETag and stream of an answer."""
        with self.client.stream("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()}) as answer:
            body = b"".join(answer.iter_raw())
        stream = Stream([body]) if body and answer.status_code in (200, 226) else None
        return answer.status_code, answer.headers.get("etag", ""), stream

    def stream(self, path: str) -> tuple[Stream, str]:
        """Return a whole stream, and its ETag."""
        status, tag, stream = self.get(path)
        assert status == 200
        assert stream is not None
        return stream, tag

    def changes(self, path: str, tag: str) -> tuple[Stream, str]:
        """Return the stream of what has changed since a mark, and its ETag."""
        status, after, stream = self.get(path, If_None_Match=tag, A_IM="soif")
        assert status == 226
        assert stream is not None
        return stream, after


@pytest.fixture
def source(tmp_path: Path, client: Callable[..., TestClient], brokers: BrokersDouble) -> Iterator[Source]:
    """A source with three summaries, one of which is a copy."""
    feed = Feed(tmp_path / "stream", "tests", broker="main")
    found = Source(feed, client())
    own: dict[str, Any] = {"copies": ("http://example.org/c",), "copies_count": 1, "views": ("sea",)}
    found.apply(made("a", title="A whale", **own), made("b", title="A ship"), made("c", title="A whale", copy_of=oid("a")))
    brokers.stream_path = feed.path
    yield found
    feed.close()


def test_archive_of_a_broker(source: Source) -> None:
    """The stream has every summary of the Broker, copies too, without counters, copies and views; parts are those of the OIDs."""
    stream, tag = source.stream(PATH)
    assert stream.titles == ["A ship", "A whale", "A whale"]
    assert {(one.published, one.copy_of, one.copies, one.copies_count, one.views) for one in stream.live.values()} == {
        (0, "", (), 0, ())
    }
    assert stream.head["gatherer-name"] == "tests"
    listed = {one.url for one in parse(source.client.get(f"{PATH}/").content) if one.url}
    found = [source.stream(f"{PATH}/{part}")[0].titles for part in sorted(listed)]
    assert sorted(title for titles in found for title in titles) == stream.titles
    assert source.get(PATH, If_None_Match=tag)[0] == 304


def test_publication_again_changes_nothing(source: Source) -> None:
    """What the Broker publishes again with another role or view is no change; a removal, and taking up again, are."""
    tag = source.stream(PATH)[1]
    source.apply(made("a", title="A whale", copies_count=2), made("b", title="A ship", views=("sea",)))
    assert source.get(PATH, If_None_Match=tag, A_IM="soif")[0] == 304
    source.apply(gone("a", 1))
    stream, tag = source.changes(PATH, tag)
    assert (stream.titles, stream.removed) == ([], {oid("a")})
    source.apply(made("a", title="A whale"))
    assert source.changes(PATH, tag)[0].titles == ["A whale"]


def test_description(source: Source) -> None:
    """A Broker is described by its name and title, the number of its summaries and its mark."""
    (found,) = parse(source.client.get("/brokers/main").content)
    assert found.type == "BROKER"
    assert {name: found.values(name)[0] for name in ("broker-name", "gatherer-name", "summaries")} == {
        "broker-name": b"main", "gatherer-name": b"tests", "summaries": b"3",
    }  # fmt: skip


def test_bulk_query(source: Source) -> None:
    """With a query the stream has what matches, whole, by part and since a mark; what does not match any more is withdrawn."""
    stream, tag = source.stream(WHALES)
    assert (stream.titles, stream.head["query"]) == (["A whale", "A whale"], "title:whale")
    source.apply(made("a", 2, title="A boat"), made("b", 2, title="A whale and a ship"), made("d", title="A harbour"), gone("c", 2))
    stream, tag = source.changes(WHALES, tag)
    assert stream.head["coverage"] == "changes"
    assert stream.titles == ["A whale and a ship"]
    assert stream.removed == {oid("a"), oid("c"), oid("d")}
    assert stream.count == 4
    assert source.get(WHALES, If_None_Match=tag, A_IM="soif")[0] == 304


@pytest.mark.parametrize("term", ["view:sea", "VIEW:Sea"])
def test_view_of_a_broker_as_a_stream(source: Source, term: str) -> None:
    """A query may name a view of the Broker, in capitals or not, as in a search."""
    assert source.stream(f"{PATH}?q={term}")[0].titles == ["A whale", "A whale"]


def test_mark_is_bound_to_its_query(source: Source) -> None:
    """A mark of the whole, or of another query, is unknown, so that everything that matches is sent."""
    whole, whales, ships = (source.stream(path)[1] for path in (PATH, WHALES, f"{PATH}?q=title:ship"))
    assert len({whole, whales, ships}) == 3
    for tag, path in ((whole, WHALES), (ships, WHALES), (whales, PATH)):
        status, _, stream = source.get(path, If_None_Match=tag, A_IM="soif")
        assert status == 200
        assert stream is not None
        assert stream.head["coverage"] == "complete"
    assert source.stream(f"{PATH}?q=title:ship&since={whales.strip(chr(34))}")[0].titles == ["A ship"]


def test_prefix_of_a_query(source: Source) -> None:
    """`prefix` chooses among what matches, of everything and of changes."""
    path = f"{WHALES}&prefix=http://example.org/a"
    stream, tag = source.stream(path)
    assert stream.titles == ["A whale"]
    source.apply(made("a", 2, title="A white whale"), made("c", 2, title="A white whale"))
    assert source.changes(path, tag)[0].titles == ["A white whale"]


def test_too_many_changes(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where too much has changed since a mark, everything that matches is sent: no answer keeps more than so many removals."""
    monkeypatch.setattr(choosing, "MOST", 3)
    tag = source.stream(WHALES)[1]
    source.apply(*(made(f"x{number}", title="A ship") for number in range(4)))
    assert source.get(WHALES, If_None_Match=tag, A_IM="soif")[0] == 200


@pytest.mark.parametrize("seed", range(3))
def test_reader_of_changes_has_what_matches(source: Source, seed: int) -> None:
    """Whoever applies the changes of a query, at any time, has what a whole stream of that query has."""
    rng = random.Random(seed)
    stream, tag = source.stream(WHALES)
    held = dict(stream.live)
    for version in range(2, 12):
        for _ in range(rng.randrange(6)):
            name = rng.choice("abcdef")
            source.apply(gone(name, version) if rng.random() < 0.3 else made(name, version, title=rng.choice(["whale", "ship"])))
        status, after, changes = source.get(WHALES, If_None_Match=tag, A_IM="soif")
        if status != 304:
            assert status == 226
            assert changes is not None
            held = {key: one for key, one in (held | changes.live).items() if key not in changes.removed}
            tag = after
        assert held == source.stream(WHALES)[0].live


def test_parts_of_a_query(source: Source) -> None:
    """The parts of a listing with a query have it too, as it was written, so that they are below it."""
    listing = listing_of("http://localhost/brokers/main?q=title:whale AND (a)")
    assert listing is not None
    parts = [one for one in parse(source.client.get(listing.removeprefix("http://localhost")).content) if one.url]
    urls = [canonical(one.url, listing) or "" for one in parts]
    assert len(urls) == 16
    assert {url.partition("?")[2] for url in urls} == {listing.partition("?")[2]}
    found = [source.stream(url.removeprefix("http://localhost")) for url in urls]
    assert sorted(title for stream, _ in found for title in stream.titles) == ["A whale", "A whale"]
    assert [tag.strip('"') for _, tag in found] == [one.values("mark")[0].decode() for one in parts]


def test_wrong_query(source: Source) -> None:
    """A query with a mistake is answered by one line with a caret; so is one that takes too long."""
    for path in (PATH, f"{PATH}/", f"{PATH}/3"):
        answer = source.client.get(f"{path}?q=title:(whale")
        assert answer.status_code == 400
        assert "^" in answer.json()["error"]
        assert source.client.get(f"{path}?q={'%20'.join(['*a~3'] * 20)}").status_code == 400


def test_broker_without_stream(client: Callable[..., TestClient], brokers: BrokersDouble) -> None:
    """A Broker that has no stream is 404, and says what makes one; so is one that is not there."""
    assert brokers.stream_path is None
    for path in ("", "/soif", "/soif/", "/soif/3"):
        for name in ("main", "other"):
            answer = client().get(f"/brokers/{name}{path}")
            assert answer.status_code == 404
            assert "stream = true" in answer.json()["error"]


def test_token(client: Callable[..., TestClient], brokers: BrokersDouble, source: Source) -> None:
    """With a token, streams of Brokers are for those who have it."""
    brokers.stream_path = source.feed.path
    guarded = client(token="secret-secret-secret")
    assert guarded.get(PATH).status_code == 401
    assert guarded.get(PATH, headers={"Authorization": "Bearer secret-secret-secret"}).status_code == 200
