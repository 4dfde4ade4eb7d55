"""A small world for the simulator: folders, files, archives and pages that change, and the edges that read them."""

from __future__ import annotations

import hashlib
import io
import random
import tarfile
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from processors.frontier.settings import FrontierSettings
from processors.identity import file_url, frontier_key, member_url, oid, url_digest
from schemas.codec import decode, encode
from schemas.records import (
    Complete,
    CrawlEvent,
    Entry,
    FetchedObject,
    FetchRequest,
    Link,
    LinkKind,
    Listing,
    Record,
    Root,
    Span,
    Summary,
    Validators,
)
from streams.fetch.answers import Answers
from streams.simulator import Simulator
from streams.topology.flow import TopologySettings, topology

FULL = b"\xff" * 16


class World:
    """A tree of files (name to bytes, or to a dict: an archive of members) and a site of pages (URL to links)."""

    def __init__(self) -> None:
        self.files: dict[str, bytes | dict[str, bytes]] = {}
        self.pages: dict[str, tuple[str, tuple[str, ...]]] = {}
        self.moves: dict[str, str] = {}
        """The present URL of each page that has moved."""
        self.robots: dict[str, bytes] = {}
        self.failing: set[str] = set()
        self.away: dict[str, int] = {}
        self.hidden: set[str] = set()
        self.stamp: dict[str, int] = {}
        self.device = self.inode = 0
        """Of every folder."""
        self.changed: dict[str, int] = {}
        """The ctime of each file; 0: the listing does not give it."""

    def write(self, name: str, content: bytes | dict[str, bytes]) -> None:
        """Write a file; its mtime and ctime change."""
        self.stamp[name] = self.stamp.get(name, 0) + 1
        self.overwrite(name, content)

    def overwrite(self, name: str, content: bytes | dict[str, bytes]) -> None:
        """Write a file and set its mtime back; only its ctime changes."""
        self.files[name] = content
        self.changed[name] = self.changed.get(name, 0) + 1

    def body(self, name: str) -> bytes:
        """The bytes of a file."""
        content = self.files[name]
        if isinstance(content, bytes):
            return content
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as tar:
            for member, data in content.items():
                info = tarfile.TarInfo(member)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
        return out.getvalue()

    def listing(self, folder: str) -> tuple[Entry, ...] | None:
        """The entries of a folder ("" is the top); None if it does not exist."""
        inside = [n for n in self.files if n.startswith(folder)]
        if not inside and folder:
            return None
        names = {n[len(folder) :].partition("/") for n in inside}
        names = {n for n in names if n[0] not in self.hidden}
        entries = {}
        for name, slash, _ in names:
            stamp = 0 if slash else self.stamp[folder + name]
            size = 0 if slash else len(self.body(folder + name))
            changed = 0 if slash else self.changed[folder + name]
            kind: LinkKind = "folder" if slash else "file"
            entries[name] = Entry(name=name.encode(), kind=kind, size=size, mtime=stamp, inode=0, ctime=changed)
        return tuple(entries[n] for n in sorted(entries))


def event(request: FetchRequest, now: int, kind: Any, **more: Any) -> CrawlEvent:
    """The event with which the edge answers a request."""
    return CrawlEvent(
        kind=kind,
        host=request.host,
        url=request.url,
        version=request.version,
        depth=request.depth,
        root=request.root,
        time=now,
        **more,
    )


def fetcher(world: World) -> Callable[[FetchRequest, int], list[Record]]:
    """The fetch edge over a world."""

    def answer(request: FetchRequest, now: int) -> list[Record]:
        if request.kind == "resolve" and request.host in world.away:
            return [event(request, now, "resolved", reason="no answer", retryable=True, wait=world.away[request.host])]
        if request.kind == "resolve":
            robots = world.robots.get(request.host, b"")
            return [event(request, now, "resolved", addresses=("127.0.0.1",), robots=robots)]
        if request.url in world.failing:
            return [event(request, now, "failed", reason="503", retryable=True)]
        if request.url in world.moves:
            return Answers(request, now).moved(world.moves[request.url])
        name = request.url.removeprefix("file:///w/")
        folder = request.url.endswith("/") and request.url.startswith("file:")
        if folder:
            entries = world.listing(name)
            body = encode(Listing(entries=entries, device=world.device, inode=world.inode)) if entries is not None else None
        elif request.url.startswith("file:"):
            body = world.body(name) if name in world.files else None
        else:
            page = world.pages.get(request.url)
            body = (page[0] + "\n" + "\n".join(page[1])).encode() if page else None
        if body is None:
            return [event(request, now, "gone")]
        md5 = hashlib.md5(body).hexdigest()
        known = Validators(md5=md5, size=len(body), mtime=world.stamp.get(name, 0), ctime=world.changed.get(name, 0))
        if request.validators is not None and request.validators.md5 == md5:
            return [event(request, now, "unchanged", validators=known, listing=folder, rules=request.rules)]
        fetched = FetchedObject(
            url=request.url,
            version=request.version,
            time=now,
            outcome="fetched",
            root=request.root,
            depth=request.depth,
            body=body,
            size=len(body),
            md5=md5,
            sha256=hashlib.sha256(body).hexdigest(),
            content_type="inode/directory" if folder else "",
            validators=known,
        )
        return [fetched, event(request, now, "fetched", validators=known, listing=folder, rules=request.rules)]

    return answer


def plain_essence(obj: FetchedObject) -> list[Record]:
    """A stand-in for Essence: the members of a tar, the links of a page, the children of a listing; else one summary."""
    if obj.outcome in ("gone", "expired"):
        made: list[Record] = []
        if obj.url.startswith("file:") and obj.url.endswith("/"):
            made.append(children(obj, ()))
        return [*made, Complete(object_url=obj.url, version=obj.version, time=obj.time, attempt="", count=0, reason=obj.outcome)]
    body = obj.body or b""
    attempt = f"{obj.version}-{obj.md5}"
    if obj.content_type == "inode/directory":
        listing = decode(body)
        assert isinstance(listing, Listing)
        done = Complete(object_url=obj.url, version=obj.version, time=obj.time, attempt=attempt, count=0)
        return [replace(children(obj, listing.entries), device=listing.device, inode=listing.inode), done]
    summaries = [summary(obj, "", body, attempt)]
    events: list[Record] = []
    if obj.url.startswith("http"):
        hosts: dict[str, list[Link]] = {}
        for url in body.decode().split("\n")[1:]:
            if url:
                hosts.setdefault(frontier_key(url), []).append(Link(url=url, kind="page"))
        for host, links in hosts.items():
            events.append(
                CrawlEvent(
                    kind="discovered", host=host, url=obj.url, depth=obj.depth, root=obj.root, links=tuple(links), time=obj.time
                )
            )
    elif obj.url.endswith(".tar"):
        with tarfile.open(fileobj=io.BytesIO(body)) as tar:
            for info in tar:
                member = tar.extractfile(info)
                assert member is not None
                summaries.append(summary(obj, info.name, member.read(), attempt))
    done = Complete(object_url=obj.url, version=obj.version, time=obj.time, attempt=attempt, count=len(summaries))
    return [*summaries, *events, done]


def children(obj: FetchedObject, entries: tuple[Entry, ...]) -> CrawlEvent:
    """The children of a folder as one discovered event."""
    base = obj.url.removeprefix("file://").encode()
    links = [
        Link(
            url=file_url(base + e.name, folder=e.kind == "folder"),
            kind=e.kind,
            size=e.size,
            mtime=e.mtime,
            inode=e.inode,
            ctime=e.ctime,
        )
        for e in entries
    ]
    links.sort(key=lambda link: url_digest(link.url))
    return CrawlEvent(
        kind="discovered",
        host=obj.url,
        url=obj.url,
        depth=obj.depth,
        root=obj.root,
        links=tuple(links),
        span=Span(low=b"", high=FULL),
        time=obj.time,
        version=obj.version,
    )


def summary(obj: FetchedObject, path: str, body: bytes, attempt: str) -> Summary:
    """A summary whose only content is the first bytes and the digests of a body."""
    url = member_url(obj.url, path)
    return Summary(
        oid=oid("g", url),
        url=url,
        object_url=obj.url,
        path=path,
        gatherer="g",
        version=obj.version,
        time=obj.time,
        type="RawText",
        size=len(body),
        md5=hashlib.md5(body).hexdigest(),
        sha256=hashlib.sha256(body).hexdigest(),
        attempt=attempt,
        attributes={"text": (body[:40].hex(),)},
    )


@pytest.fixture
def seeded() -> Callable[..., CrawlEvent]:
    """A function that makes the event for one partition that starts a run, or ends a root."""

    def make(root: Root, now: int, *, owner: bool, kind: Any = "seeded") -> CrawlEvent:
        folder = root.url.endswith("/") and root.url.startswith("file:")
        links = (Link(url=root.url, kind="folder" if folder else "page"),) if owner else ()
        return CrawlEvent(kind=kind, host=frontier_key(root.url), time=now, url=root.url, root=root, links=links)

    return make


@pytest.fixture
def make_simulator() -> Callable[[World, int, random.Random], Simulator]:
    """A function that makes a simulator over a world, with choices from a random generator."""

    def make(world: World, partitions: int, rng: random.Random) -> Simulator:
        return Simulator(
            topology(TopologySettings(frontier=FrontierSettings(part=3))), partitions, rng.randrange, fetcher(world), plain_essence
        )

    return make


@pytest.fixture
def make_world() -> type[World]:
    """The class of worlds, to make empty ones."""
    return World


@pytest.fixture
def world() -> World:
    """An empty world."""
    return World()
