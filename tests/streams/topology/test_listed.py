"""Children of a listing, compared with the rows of the frontier."""

from __future__ import annotations

import msgspec
import pytest

from processors.frontier.settings import FrontierSettings
from processors.frontier.stage import frontier
from schemas.ports import Origin
from schemas.records import CrawlEvent, FetchRequest, Link, Record, Root, Span, Validators
from streams.simulator import MemoryRows

FOLDER, FILE = "file:///tree/", "file:///tree/a"
ROOT = Root(url=FOLDER, run="1", urls=0)
CHILD = Link(url=FILE, kind="file", size=4, mtime=10, inode=3, ctime=20)


class Folder:
    """A partition of the frontier that knows one folder with one child."""

    def __init__(self, child: Link = CHILD) -> None:
        self.rows = MemoryRows()
        self.offset = 0
        (request,) = self.listed(child)
        self.fetched(request, child)

    def give(self, event: CrawlEvent) -> list[Record]:
        self.offset += 1
        return list(frontier(self.rows, event, Origin("crawl", 0, self.offset, self.offset), FrontierSettings()))

    def listed(self, child: Link) -> list[FetchRequest]:
        """The requests that a listing with one child causes."""
        span = Span(low=b"", high=b"\xff" * 16)
        event = CrawlEvent(kind="discovered", host=FOLDER, time=1, url=FOLDER, version=1, root=ROOT, links=(child,), span=span)
        return [record for record in self.give(event) if isinstance(record, FetchRequest)]

    def fetched(self, request: FetchRequest, child: Link) -> None:
        """Answer a request with the facts of a child."""
        facts = Validators(md5="m", size=child.size, mtime=child.mtime, inode=child.inode, ctime=child.ctime)
        of = {"url": request.url, "version": request.version, "root": ROOT, "validators": facts}
        self.give(CrawlEvent(kind="fetched", host=FOLDER, time=1, **of))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["file", "symlink"])
@pytest.mark.parametrize("change", [{"ctime": 21}, {"ctime": 19}, {"mtime": 11}, {"size": 5}, {"inode": 4}], ids=str)
def test_child_with_any_other_fact_is_requested(kind: str, change: dict[str, int]) -> None:
    """A child is requested, with its validators, if its size, mtime, inode or ctime differs from the last fetch."""
    child = msgspec.structs.replace(CHILD, kind=kind)
    folder = Folder(child)
    assert folder.listed(child) == []
    (request,) = folder.listed(msgspec.structs.replace(child, **change))
    assert (request.url, request.validators and request.validators.md5) == (FILE, "m")


@pytest.mark.parametrize("unknown", [0, -1])
def test_unknown_ctime_equals_every_other(unknown: int) -> None:
    """A listing or a row without a ctime causes no request by itself, but other differences still count."""
    bare = msgspec.structs.replace(CHILD, ctime=unknown)
    for before, after in ((bare, CHILD), (CHILD, bare), (bare, bare)):
        assert Folder(before).listed(after) == []
        assert len(Folder(before).listed(msgspec.structs.replace(after, mtime=11))) == 1


def test_row_without_ctime_takes_that_of_the_next_listing() -> None:
    """After an upgrade, the first listing adds the ctime to a row, and the second is compared by it."""
    folder = Folder(msgspec.structs.replace(CHILD, ctime=0))
    assert folder.listed(CHILD) == []
    assert folder.listed(CHILD) == []
    (request,) = folder.listed(msgspec.structs.replace(CHILD, ctime=21))
    assert request.validators == Validators(md5="m", size=4, mtime=10, inode=3, ctime=20)


def test_listing_without_ctime_keeps_the_known_one() -> None:
    """A listing without a ctime does not erase that of the last fetch."""
    folder = Folder()
    assert folder.listed(msgspec.structs.replace(CHILD, ctime=0)) == []
    assert len(folder.listed(msgspec.structs.replace(CHILD, ctime=21))) == 1
