"""Essence: turns one object into records by recognition, unnesting, selection and summarizing, in one call (seed 003, figure 2).

This is the only entry point for runners, which call it in a sandboxed child process. Its only I/O is reading the given body.

Laws:
- Every object that was fetched, is gone or has expired ends in exactly one Complete or Partial, the last record of its attempt;
  `count` is the number of its summaries. Partial: some container or encoding could not be read to its end, or the object states
  changes alone (law 3).
- An object that is unchanged is one Confirmed, and nothing else.
- A path with a Rejected has a summary with the attribute `reason`, and vice versa; its type is the recognized one. Only what
  has no summary of its own, a folder's listing or another Gatherer's stream, is rejected without one, and a registration that
  cannot be read.
- The same object, settings and members to skip give the same records in the same order.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator, Mapping
from typing import BinaryIO
from urllib.parse import unquote_to_bytes

from processors.collector import is_collected
from processors.essence import ftp_directory, listing, selection
from processors.essence.collected import collected
from processors.essence.fingerprint import rules_fingerprint
from processors.essence.formats.mail.mime import moment
from processors.essence.formats.refresh import refresh_target
from processors.essence.formats.streams import Digest
from processors.essence.listings.registry import HEAD, Format, listing_format
from processors.essence.member import DigestedBody, EssenceSettings, Thing, bounded, digest_of
from processors.essence.walk import Walk
from processors.identity import frontier_key, last_segment
from processors.registry.summary import registered
from processors.registry.template import is_registration
from processors.schemes import has_complete_listings, is_listing, scheme_of
from schemas.codec import DecodeError, decode
from schemas.records import (
    MAX_REASON,
    Complete,
    CompleteReason,
    Confirmed,
    CrawlEvent,
    FetchedObject,
    File,
    Link,
    Listing,
    Partial,
    Rejected,
    Summary,
    Withdrawn,
)

__all__ = ["EssenceSettings", "essence"]

FOLDER, SYMLINK = "inode/directory", "inode/symlink"
MAX_TARGET = 65_536
MAX_LISTING = 256 << 20

Output = File | Summary | Withdrawn | Confirmed | Rejected | CrawlEvent | Complete | Partial


def essence(
    obj: FetchedObject,
    body: BinaryIO | None,
    settings: EssenceSettings,
    skip: Mapping[str, str] | frozenset[str] = frozenset(),
    progress: Callable[[str], None] = lambda _: None,
    stop: str = "",
    ends: Mapping[str, str] | None = None,
) -> Iterator[Output]:
    """Yield all records of an object. `body`: seekable; None: the body is in the record, or there is none.

    `skip`: paths of members that are not opened; a mapping has the reason of each; members of a set get the reason "crashed".
    `progress(path)` is called before each member ("": the object itself), `progress(BEHIND + path)` after it (BEHIND: a prefix).
    `stop`: the last member that is opened; later ones are only listed, as given up. "": no such limit.
    `ends`: members after which their container is not read any further, each with the reason; enclosing containers are read on.
    """
    if obj.outcome == "unchanged":
        yield Confirmed(object_url=obj.url, version=obj.version, time=obj.time)
        return
    reasons = skip if isinstance(skip, Mapping) else dict.fromkeys(skip, "crashed")
    said = [*sorted(reasons), *([f"\n{stop}"] if stop else []), *(f"\n\n{path}" for path in sorted(ends or ()))]
    skipped = hashlib.sha256("\n".join(said).encode("utf-8", "surrogatepass")).hexdigest()[:12]
    # With the digest: a fetch that was repeated under the same version may have received other content.
    attempt = f"{obj.version}-{obj.md5[:8]}-{rules_fingerprint(settings)}-{skipped}"
    if obj.outcome in ("gone", "expired"):
        yield from _ended(obj, attempt)
        return
    if obj.blob and body is None:
        raise ValueError("the body is in the blob store, and was not handed over")
    walk = Walk(obj, settings, attempt, reasons, progress, stop, ends)
    count = 0
    read = registered if is_registration(obj.url) else _fetched
    for record in read(walk, body if body is not None else io.BytesIO(obj.body or b"")):
        count += isinstance(record, Summary)
        yield record
    yield _end(walk, count)


def _end(walk: Walk, count: int) -> Complete | Partial:
    obj = walk.obj
    if not walk.damage:
        return Complete(object_url=obj.url, version=obj.version, time=obj.time, attempt=walk.attempt, count=count)
    return Partial(object_url=obj.url, version=obj.version, time=obj.time, attempt=walk.attempt, count=count, reason=walk.damage)


def _ended(obj: FetchedObject, attempt: str) -> Iterator[Output]:
    """Yield the records of an object that is gone or has expired; for a folder, this removes all its children."""
    if is_listing(obj.url) and not scheme_of(obj.url).paced:
        yield from listing.slices(obj, [])
    elif obj.as_listing:
        # What a sitemap or menu had may exist without it; what a folder had does not. One that has expired proves nothing.
        complete = obj.outcome == "gone" and has_complete_listings(obj.url)
        yield from listing.covered(obj, frontier_key(obj.url), (), "complete" if complete else "open")
    reason: CompleteReason = "gone" if obj.outcome == "gone" else "expired"
    yield Complete(object_url=obj.url, version=obj.version, time=obj.time, attempt=attempt, count=0, reason=reason)


def _fetched(walk: Walk, body: BinaryIO) -> Iterator[Output]:
    """Yield the records of a fetched object, except the final Complete or Partial."""
    obj, thing = walk.obj, _thing(walk.obj)
    media = obj.content_type.partition(";")[0].strip().lower()
    digest = Digest(obj.size, obj.md5, obj.sha256) if obj.md5 and obj.sha256 else digest_of(body)
    if media == FOLDER:
        yield from _folder(walk, body)
    elif ftp_directory.is_directory(obj, media):
        yield from _directory(walk, body)
    elif is_collected(obj):
        yield from collected(walk, body)
    elif "" in walk.skip:
        yield from walk.skipped(thing, digest)
    elif media == SYMLINK:
        yield from walk.link(thing, body.read(MAX_TARGET))
    elif rule := _stopped(obj, thing, walk.settings):
        yield from _refused(obj, rule)
    elif kind := _listing_format(walk, body):
        yield from _listing(walk, kind, thing, DigestedBody(body, digest))
    else:
        yield from walk.thing(thing, DigestedBody(body, digest))
        if walk.rule:
            yield from _refused(obj, walk.rule)
        elif walk.followed:
            yield from listing.references(obj, [*_refreshes(obj), *walk.links])


def _listing_format(walk: Walk, body: BinaryIO) -> Format | None:
    """Return the format of listing that an object of a root has, or None; nofollow makes any object none."""
    obj = walk.obj
    if obj.root is None or scheme_of(obj.url).realm == "machine" or walk.records.robots.nofollow:
        return None
    body.seek(0)
    head = body.read(HEAD)
    body.seek(0)
    return listing_format(obj.url, obj.content_type, head, expected=obj.as_listing or not obj.depth)


def _listing(walk: Walk, kind: Format, thing: Thing, stored: DigestedBody) -> Iterator[Output]:
    """Yield the records of a listing from the network: its summary, if its format has one, and the events of its children.

    One that cannot be read to its end is rejected, keeps its members, and removes nothing.
    """
    walk.progress("")  # a crash while it is parsed is that of the object
    try:
        parsed = kind.parse(stored.file, walk.obj.url)
        walk.fault = bounded("" if parsed.whole else parsed.reason or "not read to its end", MAX_REASON)
        events = list(listing.listed(walk.obj, parsed))
    except Exception as error:  # noqa: BLE001 - whatever a hostile body raises, MemoryError included, is an outcome
        walk.fault = bounded(str(error) if isinstance(error, ValueError) else type(error).__name__, MAX_REASON)
        events = []
    stored.file.seek(0)
    if kind.summarized:
        yield from walk.thing(thing, stored)
    elif walk.fault:
        yield walk.rejected("", walk.fault)
    walk.damage = walk.damage or walk.fault
    yield from events


def _refreshes(obj: FetchedObject) -> Iterator[Link]:
    """Yield the target of the response's Refresh header, which leads on from a document of any type (HTML, 7.4.5)."""
    if target := refresh_target(obj.headers.get("refresh", "")):
        yield Link(url=target, kind="page")


def _stopped(obj: FetchedObject, thing: Thing, settings: EssenceSettings) -> str:
    """Return the rule that drops an object by its name, or "". An object that a root names is always selected."""
    named = obj.root is None or obj.root.url == obj.url
    return "" if named else selection.by_name(thing.name, settings.select)


def _refused(obj: FetchedObject, rule: str) -> Iterator[CrawlEvent]:
    return listing.refused(obj, frontier_key(obj.url), [Link(url=obj.url)], rule)


def _folder(walk: Walk, body: BinaryIO) -> Iterator[Output]:
    """Yield the events of a folder's listing; an invalid listing is rejected and removes nothing."""
    try:
        decoded = decode(body.read(MAX_LISTING))
        if not isinstance(decoded, Listing):
            raise DecodeError(f"not a Listing, but a {type(decoded).__name__}")
        events = list(listing.children(walk.obj, decoded, walk.settings.select))
    except Exception as error:  # noqa: BLE001 - a listing of millions may raise MemoryError
        walk.damage = bounded(str(error) if isinstance(error, ValueError) else type(error).__name__, MAX_REASON)
        yield walk.rejected("", walk.damage)
        return
    yield from events


def _directory(walk: Walk, body: BinaryIO) -> Iterator[Output]:
    """Yield the events of an FTP directory's listing. One that was not read to its end is rejected too, and removes nothing."""
    try:
        events, walk.damage = ftp_directory.children(walk.obj, body, walk.settings.select)
    except Exception as error:  # noqa: BLE001 - a listing of millions may raise MemoryError
        events, walk.damage = [], str(error) if isinstance(error, ValueError) else type(error).__name__
    yield from events
    if walk.damage:
        walk.damage = bounded(walk.damage, MAX_REASON)
        yield walk.rejected("", walk.damage)


def _thing(obj: FetchedObject) -> Thing:
    """Return the metadata of the object itself, as its source states them."""
    name = unquote_to_bytes(last_segment(obj.url))
    # Only some schemes define these headers; an HTTP server may send fields of the same names.
    described = obj.headers if scheme_of(obj.url).described else {}
    return Thing(
        path="",
        name=name,
        size=obj.size,
        mtime=_mtime(obj),
        owner=bounded(described.get("owner", ""), MAX_REASON),
        group=bounded(described.get("group", ""), MAX_REASON),
        mode=_mode(described.get("mode", "")),
        stated=obj.content_type,
    )


def _mode(stated: str) -> int:
    """Return the permissions that a header states in octal digits; 0: unknown."""
    try:
        return int(stated, 8) & 0o7777 if stated else 0
    except ValueError:
        return 0


def _mtime(obj: FetchedObject) -> int:
    """Return the time of the last change in nanoseconds since the epoch, as stated by the file or the server; 0: unknown."""
    if obj.validators and obj.validators.mtime:
        return obj.validators.mtime
    return moment(obj.headers.get("last-modified", ""))
