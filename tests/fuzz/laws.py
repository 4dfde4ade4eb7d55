"""The laws of each target: what must hold of a parser for any input. A violated law raises Broken."""

from __future__ import annotations

import hashlib
import io
import math
import random
import re
import traceback
import zlib
from collections.abc import Hashable
from typing import Any

from processors import urls
from processors.essence import listing, recognize
from processors.essence.formats.container import Budget, Reader, UnnestError, UnnestLimits
from processors.essence.formats.streams import Hashed
from processors.essence.selection import Selection
from processors.essence.stage import EssenceSettings, essence
from processors.essence.summarize import Facts, Found, SummaryError, summarize
from processors.essence.summarize._base import MAX_LINKS, MAX_SUMMARY, MAX_URL, MAX_VALUES
from processors.essence.unnest import Container, Unnester
from processors.frontier import robots
from processors.query.parser import QueryError, parse
from processors.query.predicate import matches
from processors.query.snippet import snippet, terms
from processors.query.unparse import unparse
from processors.query.words import spans, words
from schemas.codec import DecodeError, decode, encode
from schemas.records import Complete, Entry, FetchedObject, Listing, Partial, Summary
from schemas.soif import Parser, SoifError, Template, dumps
from schemas.soif import parse as parse_soif
from schemas.soif_summary import RecordError, to_record, to_template
from tests.fuzz.watch import Overrun

LIMITS = UnnestLimits(bytes=1 << 21, entries=500, names=1 << 16, memory=1 << 16, member=1 << 20, depth=6)
"""Limits of unnesting for an input of the fuzzer: small, so that inputs also exhaust the budget."""
OURS_TO_BLAME = (AssertionError, AttributeError, MemoryError, NameError, TypeError, ZeroDivisionError)
"""Exceptions that indicate a defect of the parser, rather than damaged input, if the project's own code raises them."""
NAME = re.compile(r"[^\s\x00-\x1f]{1,200}")
URL = "http://example.org/d/x"


class Broken(Exception):  # noqa: N818 - it says what became of the law
    """A law is violated."""


def hold(law: bool, what: str) -> None:
    """Raise Broken unless a law holds."""
    if not law:
        raise Broken(what)


class Source(io.BytesIO):
    """An input that counts its reads and raises Overrun if they are more than its length explains."""

    def __init__(self, data: bytes, *, forward: bool = False) -> None:
        super().__init__(data)
        self._left = 200_000 + 64 * len(data)
        self._forward = forward

    def read(self, size: int | None = -1, /) -> bytes:
        self._left -= 1
        if self._left < 0:
            raise Overrun("reads without end")
        return super().read(min(size or 0, 1_000) if self._forward and size is not None and size > 0 else size)

    def seekable(self) -> bool:
        return not self._forward


def unnest(plugin: Unnester, data: bytes) -> Hashable:
    """Only UnnestError is raised; a body that failed fails again; names are bounded; all output is paid from the budget."""
    turn = zlib.crc32(data)
    source: Reader = Source(data, forward=bool(turn & 1))
    budget, outcome = Budget(LIMITS, len(data)), hashlib.sha256()
    if isinstance(plugin, Container) and plugin.about:
        for key, value in plugin.about(data[: 1 << 16]):
            hold(bool(key.encode()) and len(value.encode()) <= 1 << 16, f"about gives {key!r}: {value!r:.50}")
    reason = ""
    try:
        if not isinstance(plugin, Container):
            _drain(Hashed(plugin.open(source, budget), budget), outcome)
            return outcome.hexdigest(), reason
        for number, member in enumerate(plugin.open(source, budget)):
            budget.enter(member.name)
            hold(member.size >= -1, f"member {member.name!r:.50} of {member.size} bytes")
            outcome.update(repr(member._replace(body=None)).encode("utf-8", "surrogatepass"))
            # All bodies, every other body, or no body is read: an unnester must allow each.
            if member.body is not None and (turn >> 1) % 3 >= (number + 1) % 2:
                _body(Hashed(member.body, budget), outcome)
    except UnnestError as error:
        reason = error.reason
        hold(0 < len(reason) <= 200, "a reason of no use")
    return outcome.hexdigest(), reason


def _drain(body: Reader, outcome: Any) -> None:
    while part := body.read(7_001):
        outcome.update(part)


def _body(body: Reader, outcome: Any) -> None:
    """Read a body; its damage does not end the archive, unless the budget is exhausted."""
    try:
        _drain(body, outcome)
    except UnnestError as error:
        outcome.update(error.reason.encode())
        again: UnnestError | None = None
        try:
            body.read(1)
        except UnnestError as second:
            again = second
        if again is None:
            raise Broken(f"reads on behind: {error.reason}") from error
        if type(error).__name__ == "Exhausted":
            raise


def summarized(kind: str, media: str, name: bytes, data: bytes) -> Hashable:
    """A summarizer raises only SummaryError, never for a defect of its own; a summary has a bounded size and a title."""
    found, reason = Found(), ""
    try:
        summarize(Facts(name, URL, kind, media, len(data), 0, ""), Source(data), found)
    except SummaryError as error:
        reason = str(error)
        hold(0 < len(reason) <= 200, "a reason of no use")
        _blamed(error.__cause__)
    size = 0
    for key, values in found.attributes.items():
        hold(bool(NAME.fullmatch(key)) and 0 < len(values) <= MAX_VALUES, f"attribute {key!r:.50}, {len(values)} values")
        size += sum(len(v.encode() if isinstance(v, str) else v) for v in values)
    hold(size <= MAX_SUMMARY, f"a summary of {size} bytes")
    hold(len(found.links) <= MAX_LINKS and all(0 < len(k.url) <= MAX_URL for k in found.links), "links out of bounds")
    hold(bool(found.attributes.get("title")), "no title")
    return repr(found.attributes), tuple(k.url for k in found.links), reason


def _blamed(error: BaseException | None) -> None:
    """Raise Broken for an exception that indicates a defect: raised by the project's own code, and not explained by the format."""
    if isinstance(error, OURS_TO_BLAME):
        last = traceback.extract_tb(error.__traceback__)[-1]
        if "/processors/" in last.filename or isinstance(error, MemoryError):
            raise Broken(f"{type(error).__name__} at {last.name}: {error}") from error


def recognized(data: bytes) -> Hashable:
    """Any name and content have a known type, a media type, and evidence. Input: the name, a line feed, the content."""
    name, _, content = data.partition(b"\n")
    head = content[: recognize.HEAD]
    found = recognize.recognize(name, head)
    hold(found.type in recognize.table().rules, f"no type: {found.type!r:.50}")
    hold(bool(re.fullmatch(r"[a-z]+/[a-z0-9.+-]+", found.content_type)), f"no media type: {found.content_type!r:.50}")
    hold(found.evidence in ("stated", "name", "content", "program"), f"no evidence: {found.evidence!r:.50}")
    hold(recognize.recognize(name, head, "text/plain") == found, "text/plain says something")
    for stated in ("text/html; charset=x", content[:40].decode("latin-1")):
        hold(recognize.recognize(name, head, stated).type in recognize.table().rules, "no type where one is stated")
    return found


def soif(data: bytes) -> Hashable:
    """SOIF gives the same result however it is split; templates and their records survive writing and reading."""
    whole = _pieces([data])
    hold(whole == _pieces([data[i : i + 1] for i in range(len(data))]), "byte by byte it is another")
    cut = random.Random(zlib.crc32(data)).randrange(len(data) + 1)
    hold(whole == _pieces([data[:cut], b"", data[cut:]]), f"cut at {cut} it is another")
    templates = whole[0]
    # A collection without a template is not written, since templates carry its name.
    hold(parse_soif(dumps(templates)) == templates, "what is written is another")
    for template in templates:
        try:
            record = to_record(template)
        except RecordError as error:
            hold(0 < len(str(error)) <= 400, "a reason of no use")
            continue
        hold(to_record(to_template(record)) == record, "its record is another when it was written")
        hold(decode(encode(record)) == record, "its record is another in Avro")
    return whole


def _pieces(pieces: list[bytes]) -> tuple[tuple[Template, ...], str]:
    parser, found = Parser(), list[Template]()
    try:
        for piece in pieces:
            found.extend(parser.feed(piece))
        parser.close()
    except SoifError as error:
        hold(0 <= error.offset <= sum(map(len, pieces)) and len(str(error)) <= 400, f"an error out of place: {error!s:.50}")
        return tuple(found), str(error)
    return tuple(found), ""


SUMMARY = Summary(
    oid="o",
    url=URL,
    object_url=URL,
    path="",
    gatherer="g",
    version=1,
    time=1,
    type="HTML",
    content_type="text/html",
    size=1,
    md5="",
    sha256="",
    attempt="a",
    attributes={"title": ("Whales of the sea",), "keywords": ("whale, sea", "ÄÖ ß"), "data": (b"\xff",)},
)


def queried(data: bytes) -> Hashable:
    """A query is a tree or a QueryError with a position; the unparsed tree parses to the same tree; snippets are short."""
    text = data.decode("utf-8", "replace")
    last = (0, 0)
    for start, end, word in spans(text):
        # A character that folds into several words is the position of each of them.
        hold((last[1] <= start or (start, end) == last) and start < end <= len(text) and bool(word), "words that overlap")
        last = start, end
    hold(all(words(text)), "an empty word")
    try:
        tree = parse(text)
    except QueryError as error:
        hold(0 <= error.position <= len(text) and "\n" not in error.line(text), f"a mistake out of place: {error.position}")
        return str(error), error.position
    hold(parse(unparse(tree)) == tree, f"written again it is another: {unparse(tree)!r:.80}")
    shown = snippet(["Whales of the sea " * 30, text], terms(tree))
    hold(len(shown) <= 2_000, f"a snippet of {len(shown)} characters")
    return repr(tree), matches(tree, SUMMARY), shown


def robotic(data: bytes) -> Hashable:
    """Any robots.txt yields yes or no, and a crawl delay that is None or a finite number."""
    delay = robots.crawl_delay(data, "harvest")
    hold(delay is None or (math.isfinite(delay) and delay >= 0), f"a pause of {delay}")
    return delay, *(robots.allowed(data, "harvest", f"http://example.org/{path}") for path in ("", "a/b?c=d", "a*$", "%7Ea/" * 50))


def located(data: bytes) -> Hashable:
    """Canonical URLs stay canonical, relative or not; suspicions and addresses are decided. Input: URL and base, a line each."""
    url, base = (*data.decode("utf-8", "surrogateescape").split("\n"), "")[:2]
    found = urls.canonical(url, base)
    if found is not None:
        hold(urls.canonical(found) == found, f"not canonical: {found!r:.100}")
        hold(urls.canonical(found, found) == found, f"relative to itself it is another: {found!r:.100}")
        hold(found.isascii() and found.partition(":")[0] in ("http", "https", "file"), f"no URL: {found!r:.100}")
    return found, urls.suspicion(found or URL), urls.guard(url, ())


def avro(data: bytes) -> Hashable:
    """Bytes are a record that survives encoding and decoding, or raise DecodeError."""
    try:
        record = decode(data)
    except DecodeError as error:
        hold(0 < len(str(error)) <= 200, "a reason of no use")
        return str(error)
    hold(decode(encode(record)) == record, "written again it is another")
    return repr(record)


def listed(data: bytes) -> Hashable:
    """Each entry of a folder is in exactly one event. Input: names, each followed by a NUL."""
    obj = FetchedObject(url="file:///d/", version=1, time=1, outcome="fetched")
    names = sorted({name[:255] for name in data.split(b"\0")[:500]})
    entries = tuple(Entry(name=n, kind="folder" if n.endswith(b"d") else "file", size=0, mtime=0, inode=1) for n in names)
    try:
        events = list(listing.children(obj, Listing(entries=entries), Selection()))
    except ValueError as error:
        return str(error)
    given = [link.url for event in events for link in event.links]
    hold(len(given) == len(set(given)) == len(names), f"{len(names)} names are {len(given)} links")
    hold(all(u.startswith("file:///d/") and urls.canonical(u) is not None for u in given), "a link to elsewhere")
    hold(all(decode(encode(e)) == e for e in events), "an event is another in Avro")
    return tuple(given)


SETTINGS = EssenceSettings(gatherer="g", limits=LIMITS)


def walked(data: bytes) -> Hashable:
    """Any object yields records that Avro can carry, ending with one that counts the summaries; nothing is raised."""
    md5, sha256 = hashlib.md5(data, usedforsecurity=False).hexdigest(), hashlib.sha256(data).hexdigest()
    obj = FetchedObject(url=URL, version=1, time=1, outcome="fetched", size=len(data), md5=md5, sha256=sha256)
    made = list(essence(obj, io.BytesIO(data), SETTINGS))
    ends = [r for r in made if isinstance(r, Complete | Partial)]
    hold(ends == made[-1:], "more or less than one end")
    hold(ends[0].count == sum(isinstance(r, Summary) for r in made) > 0, "a count that is wrong, or no summary")
    hold(all(decode(encode(r)) == r for r in made), "a record is another in Avro")
    return tuple(map(encode, made))
