from __future__ import annotations

from collections.abc import Callable

from processors.essence.listings.ftp import MEDIA
from processors.essence.stage import Output
from schemas.records import Complete, CrawlEvent, Partial, Rejected, Root, Summary

Run = Callable[..., list[Output]]
URL = "ftp://example.org/pub/"
ROOT = Root(url="ftp://example.org/", run="r1", host="ftp://example.org")
BODY = b"type=file;size=1;modify=20240102030405; a b\ntype=dir; .git\ntype=dir; sub\ntype=file;size=2;modify=20240102030405; x~\n"


def test_directory_gives_its_children_and_no_summary(run: Run) -> None:
    """The selected children of a directory are discovered on its host; what a rule drops is refused by that rule."""
    *events, end = run(BODY, URL, content_type=MEDIA, root=ROOT, depth=2)
    assert isinstance(end, Complete)
    assert end.count == 0
    crawl = [event for event in events if isinstance(event, CrawlEvent)]
    assert len(crawl) == len(events)
    assert all((e.host, e.url, e.depth, e.root) == ("ftp://example.org", URL, 2, ROOT) for e in crawl)
    (found,) = [event for event in crawl if event.kind == "discovered"]
    assert {link.url: (link.kind, link.mark) for link in found.links} == {
        f"{URL}a%20b": ("page", "1 20240102030405"),
        f"{URL}sub/": ("listing", ""),
    }
    assert (found.coverage, found.span and found.span.is_whole) == ("complete", True)
    assert {e.reason: [link.url for link in e.links] for e in crawl if e.kind == "refused"} == {
        "version-control": [f"{URL}.git/"],
        "editor-backup": [f"{URL}x~"],
    }


def test_listing_that_is_not_whole_is_rejected_and_partial(run: Run) -> None:
    """The readable children of a broken listing are discovered; it is rejected once, with the reason, and is only a part."""
    *events, letter, end = run(BODY + b"type=unreadable; \xff\x00" + b"x" * 500, URL, content_type=MEDIA, root=ROOT)
    assert isinstance(letter, Rejected)
    assert isinstance(end, Partial)
    assert (letter.url, letter.path, letter.reason) == (URL, "", end.reason)
    assert "a line that is no entry" in end.reason
    assert [event.coverage for event in events if isinstance(event, CrawlEvent) and event.kind == "discovered"] == ["rolling"]


def test_our_media_type_from_a_web_server_is_an_ordinary_document(run: Run) -> None:
    """A web server that sends the media type of listings has no listing: what it sends is summarized, and names no children."""
    records = run(BODY, "http://example.org/pub/", content_type=MEDIA, root=Root(url="http://example.org/", run="r1"))
    assert [record.url for record in records if isinstance(record, Summary)] == ["http://example.org/pub/"]
    assert not [record for record in records if isinstance(record, CrawlEvent)]


def test_directory_that_is_gone_has_no_children(run: Run) -> None:
    """A directory that is gone says that all its children are."""
    event, end = run(b"", URL, outcome="gone", as_listing=True, md5="", sha256="", root=ROOT)
    assert isinstance(event, CrawlEvent)
    assert isinstance(end, Complete)
    assert (event.host, event.url, event.links, event.coverage) == ("ftp://example.org", URL, (), "complete")


def test_listing_below_a_file_url_is_rejected(run: Run) -> None:
    """Only the URL of a directory has a listing."""
    letter, end = run(BODY, "ftp://example.org/pub", content_type=MEDIA, root=ROOT)
    assert isinstance(letter, Rejected)
    assert isinstance(end, Partial)
    assert "not the URL of an FTP directory" in letter.reason
