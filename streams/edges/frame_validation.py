"""Validates frames from the untrusted parser processes: a compromised child may send anything, about any object.

Laws:
- Only records of the object that the child was given are accepted: its URL, its version, the OIDs of its own members. So no other
  summary is replaced or removed, and the state of no other URL changes.
- In `crawl`, a child may report links and refusals, never seeded or fetched events, and only under the object's own root; a file
  has no links, a folder links to its own content, and nothing from the network links to a file. No page, sitemap or menu states
  that what it does not list is gone. Of another Gatherer's stream it may report that it was not used: exactly that event.

A child can still do what the object itself could have done: have any attributes, and any links.
Cost: 8 us a summary, since only these fields are read, which come first.
"""

from __future__ import annotations

from processors.collector import is_collected, unused
from processors.identity import oid
from processors.schemes import has_complete_listings, is_listing, may_name, scheme_of
from schemas.codec import HEADER, record_type
from schemas.records import Complete, CrawlEvent, FetchedObject, File, Partial, Record, Rejected, Summary, Withdrawn
from streams.edges.parse_job import Frame
from streams.store.murmur2 import partition as partition_of

ENDS = (Complete, Partial, Withdrawn)
"""Records of `made` that begin with the URL of the object and its version."""


class FrameValidator:
    """The records that are acceptable for one object."""

    def __init__(self, obj: FetchedObject, gatherer: str, partitions: int) -> None:
        self._key = obj.url.encode()
        self._version = obj.version
        self._object = (obj.url, obj.version)
        self._root = obj.root
        self._depth = obj.depth
        self._gatherer = gatherer
        self._partitions = partitions
        self._partition = partition_of(self._key, partitions)
        self._unused = unused(obj) if is_collected(obj) else None

    def check(self, frame: Frame) -> None:
        """Raise ValueError (DecodeError) for a frame that this object cannot have produced."""
        if frame.topic == "crawl":
            known = self._crawl(frame)
        elif frame.key != self._key or frame.partition != self._partition:
            known = False
        elif frame.topic == "rejected":
            known = self._rejected(frame.record)
        else:
            known = self._made(frame)
        if not known:
            raise ValueError(f"not a frame: what no object but another can give on {frame.topic}")

    def _made(self, frame: Frame) -> bool:
        """Check a summary, the end of an attempt, or the facts of a file; a carried record must agree with its bytes."""
        kind, value, record = record_type(frame.value), frame.value, frame.record
        if frame.topic == "files":
            url, at = _text(value, HEADER)
            _, at = _text(value, at)
            _, at = _text(value, at)
            return kind is File and url == self._key and _long(value, at)[0] == self._version
        if kind is not Summary:
            url, at = _text(value, HEADER)
            own = kind in ENDS and url == self._key and _long(value, at)[0] == self._version
            return own and (not isinstance(record, ENDS) or (record.object_url, record.version) == self._object)
        name, at = _text(value, HEADER)
        url, at = _text(value, at)
        of, at = _text(value, at)
        path, at = _text(value, at)
        gatherer, at = _text(value, at)
        whole = self._key + b"#" + path if path else self._key
        own = of == self._key and url == whole and gatherer == self._gatherer.encode() and _long(value, at)[0] == self._version
        if not own or name.decode("ascii") != oid(self._gatherer, url.decode()):
            return False
        return not isinstance(record, Summary) or self._is(record, name.decode(), url.decode(), path.decode())

    def _is(self, record: Summary, name: str, url: str, path: str) -> bool:
        """Return whether a record is that summary, without any field that a Broker sets."""
        return (
            (record.object_url, record.version) == self._object
            and (record.oid, record.url, record.path, record.gatherer) == (name, url, path, self._gatherer)
            and not (record.published or record.copy_of or record.copies or record.copies_count or record.views)
        )

    def _rejected(self, letter: Record | None) -> bool:
        """Check a dead letter about the object or a member; it may hold no bytes that a retry would put anywhere."""
        return (
            isinstance(letter, Rejected)
            and (letter.stage, letter.version, letter.topic, letter.value) == ("essence", self._version, "", None)
            and letter.url.encode() == letter.key == self._key
        )

    def _crawl(self, frame: Frame) -> bool:
        event = frame.record
        if not isinstance(event, CrawlEvent) or event.host.encode() != frame.key:
            return False
        if partition_of(frame.key, self._partitions) != frame.partition:
            return False
        return event == self._unused or (
            (event.kind, event.version) in (("discovered", self._version), ("refused", 0))
            and (event.url.encode(), event.depth, event.root) == (self._key, self._depth, self._root)
            and event.robots is None
            and event.validators is None
            and (event.coverage != "complete" or has_complete_listings(event.url))
            and self._leads(event)
        )

    def _leads(self, event: CrawlEvent) -> bool:
        """Return whether the links may occur in such an object."""
        if is_listing(event.url):
            return all(link.url.startswith(event.url) for link in event.links)
        if scheme_of(event.url).realm == "machine":
            return event.kind == "refused" and all(link.url == event.url for link in event.links)
        return all(may_name(event.url, link.url) for link in event.links)


def _text(data: bytes, at: int) -> tuple[bytes, int]:
    """Return a string in Avro, and the offset behind it."""
    length, at = _long(data, at)
    if not 0 <= length <= len(data) - at:
        raise ValueError("not a frame: shorter than its record")
    return data[at : at + length], at + length


def _long(data: bytes, at: int) -> tuple[int, int]:
    """Return a number in Avro (zigzag, 7 bits a byte), and the offset behind it."""
    number = shift = 0
    while at < len(data) and shift <= 63:
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
        shift += 7
    raise ValueError("not a frame: no number where one must be")
