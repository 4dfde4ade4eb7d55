from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from processors.essence.selection import Selection
from processors.essence.stage import Output
from processors.identity import file_url, frontier_key, url_digest
from schemas.codec import encode
from schemas.records import MAX_LINKS, Complete, CrawlEvent, Entry, LinkKind, Listing, Partial, Rejected, Root

Run = Callable[..., list[Output]]
List = Callable[..., tuple[list[CrawlEvent], list[CrawlEvent]]]


def entry(name: bytes, kind: LinkKind = "file") -> Entry:
    """Return an entry with distinct facts."""
    return Entry(name=name, kind=kind, size=len(name), mtime=5, inode=9, ctime=7)


@pytest.fixture
def listed(run: Run) -> List:
    """Function from entries to the events (discovered, refused) of their folder, which ends in an empty Complete."""

    def list_folder(entries: list[Entry], url: str = "file:///d/f/", **fields: Any) -> tuple[list[CrawlEvent], list[CrawlEvent]]:
        body = encode(Listing(entries=tuple(sorted(entries, key=lambda e: e.name))))
        *events, end = run(body, url, content_type="inode/directory", **fields)
        assert isinstance(end, Complete)
        assert end.count == 0
        crawl = [e for e in events if isinstance(e, CrawlEvent)]
        assert len(crawl) == len(events)
        assert all((e.host, e.url, e.time) == (url, url, 1_000) for e in crawl)
        return [e for e in crawl if e.kind == "discovered"], [e for e in crawl if e.kind == "refused"]

    return list_folder


def test_children_are_links_with_their_facts(listed: List) -> None:
    """Each child is a link under the folder's URL, folders with a slash, ordered by digest."""
    (event,), refused = listed([entry(b"a b"), entry(b"sub", "folder"), entry(b"l", "symlink"), entry(b"\xff#")], depth=3)
    assert {link.url: link.kind for link in event.links} == {
        "file:///d/f/a%20b": "file",
        "file:///d/f/sub/": "folder",
        "file:///d/f/l": "symlink",
        "file:///d/f/%FF%23": "file",
    }
    assert all((link.mtime, link.inode, link.ctime) == (5, 9, 7) and frontier_key(link.url) == event.host for link in event.links)
    assert [url_digest(link.url) for link in event.links] == sorted(url_digest(link.url) for link in event.links)
    assert (event.depth, event.version, event.root) == (3, 7, Root(url="file:///d/", run="r1"))
    assert not refused


def test_empty_folder_covers_everything(listed: List) -> None:
    """An empty listing gives one event that covers all digests."""
    (event,), _ = listed([])
    assert event.links == ()
    assert event.span is not None
    assert (event.span.low, event.span.high) == (b"", b"\xff" * 16)


@pytest.mark.parametrize("count", [999, 1_000, 1_001, 2_500])
def test_slices_cover_every_digest_once(count: int, listed: List) -> None:
    """The slices of a large folder are contiguous, and each has the links of its span."""
    events, _ = listed([entry(b"f%d" % n) for n in range(count)])
    spans = [e.span for e in events if e.span]
    assert len(spans) == len(events) == -(-count // MAX_LINKS)
    assert [s.low for s in spans] == [b"", *(s.high for s in spans[:-1])]
    assert spans[-1].high == b"\xff" * 16
    for event, span in zip(events, spans, strict=True):
        assert all(span.low < url_digest(link.url) <= span.high for link in event.links)
    assert sum(len(e.links) for e in events) == count


def test_events_are_bounded_in_bytes(listed: List) -> None:
    """Long names make smaller slices, so that no event exceeds the message limit."""
    events, _ = listed([entry(b"\xff" * 250 + b"%04d" % n) for n in range(900)], "file:///" + "%FF" * 300 + "/")
    assert len(events) > 1
    assert all(len(encode(e)) < 900_000 for e in events)


def test_unselected_names_are_refused_with_rule(listed: List) -> None:
    """Devices, backups, version control and compiled code are refused with the rule's name, in events of the folder."""
    entries = [entry(b"fifo", "other"), entry(b"a~"), entry(b".git", "folder"), entry(b"x.o"), entry(b"x.c"), entry(b"y.o")]
    (event,), refused = listed(entries)
    assert {link.url.rpartition("/")[2] for link in event.links} == {"x.c", "y.o"}
    assert {e.reason: [link.url for link in e.links] for e in refused} == {
        "special-file": ["file:///d/f/fifo"],
        "editor-backup": ["file:///d/f/a~"],
        "version-control": ["file:///d/f/.git/"],
        "object-beside-source": ["file:///d/f/x.o"],
    }
    assert all(e.version == 0 and e.span is None for e in refused)


def test_many_refused_come_in_chunks(listed: List) -> None:
    """No event has more than 1,000 links."""
    _, refused = listed([entry(b"%d~" % n) for n in range(2_100)])
    assert [len(e.links) for e in refused] == [1_000, 1_000, 100]


@pytest.mark.parametrize("body", [b"", b"no listing", encode(Root(url="x", run="r")), encode(Listing(entries=(entry(b"a/b"),)))])
def test_invalid_listing_removes_nothing(body: bytes, run: Run) -> None:
    """A body that is not a listing is rejected, and ends as Partial."""
    rejected, end = run(body, "file:///d/f/", content_type="inode/directory")
    assert isinstance(rejected, Rejected)
    assert isinstance(end, Partial)
    assert end.reason == rejected.reason


def test_object_of_a_stopped_name_is_refused(run: Run) -> None:
    """An object with a name on the stop list is refused wherever it was found, unless it is a root."""
    event, end = run(b"x", "http://w.example/a~")
    assert isinstance(event, CrawlEvent)
    assert (event.kind, event.host, event.reason, event.links[0].url) == (
        "refused",
        "http://w.example",
        "editor-backup",
        "http://w.example/a~",
    )
    assert isinstance(end, Complete)
    assert end.count == 0
    assert len(run(b"x", "file:///d/a~", root=Root(url="file:///d/a~", run="r"))) == 2
    assert len(run(b"x", "file:///d/a~", root=None)) == 2


def test_object_of_a_stopped_type_is_refused(run: Run) -> None:
    """An object of a type on the stop list gives no summary, and the reason is reported."""
    stop = {"select": Selection(stop_types=("Python",))}
    event, end = run(b"import os\n", "file:///d/a.py", settings=stop)
    assert isinstance(event, CrawlEvent)
    assert (event.kind, event.reason) == ("refused", "stop-type")
    assert isinstance(end, Complete)


def test_child_url_decodes_to_name() -> None:
    """The URL of a child decodes to the bytes of its name."""
    assert file_url(b"/d/\xff #") == "file:///d/%FF%20%23"
