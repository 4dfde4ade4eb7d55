"""Another Gatherer's database, collected: its listing of parts as links, and the summaries of a part as summaries of ours.

A part is a stream of SOIF (`sinks/feed`), of everything or of the changes since the last one (status 226). It is an object without
a summary of its own; each of its templates is a member, whose path is the foreign OID. Streams of the Gatherers of 1995 have
templates without our properties, in collections UPDATE, REFRESH and DELETE.

Laws:
- What is below a root that is such a listing is a stream or a listing, by its media type; anything else, such as the page of a
  proxy in its place, gives nothing and removes nothing.
- A stream is read twice: first to its end, so that one that is cut short, or has a wrong count, gives nothing and removes nothing.
- A template that is SOIF, but no summary, is left out and rejected; then, too, nothing is removed.
- Of several templates with the same OID the last counts; one in DELETE counts as none.
- A stream of a Gatherer with the name of this one is rejected: its summaries would be taken for ours, and left out.
- A summary that comes from this Gatherer, directly or by way of others (`via`), is left out: so a ring of Gatherers comes to rest.
- OIDs are computed from the part and the foreign OID, so no foreign summary replaces one of ours. What a template states of its URL
  is kept as `location`, which nothing ever opens.
- A stream of changes alone ends in Partial: what it does not mention is kept, and each template in DELETE is a record Withdrawn. A
  template in DELETE without the name of its Gatherer withdraws that URL of the Gatherer that the stream names first.
- What did not become summaries as a whole is requested again, without validators: the event UNUSED tells the frontier so. A later
  stream of changes would not mention it. So are changes alone in place of the whole (status 200): they are no base of later ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from processors import identity
from processors.collector import CHANGED, is_part, unused
from processors.essence import listing
from processors.essence.member import bounded
from processors.urls import canonical
from schemas.records import (
    DEFAULT_REFRESH,
    DEFAULT_TTL,
    MAX_REASON,
    CrawlEvent,
    FetchedObject,
    Link,
    Rejected,
    Summary,
    Withdrawn,
)
from schemas.soif import SoifError, Template, read
from schemas.soif_summary import DELETE, RecordError, parts

if TYPE_CHECKING:
    from processors.essence.walk import Walk

STREAM, LISTING = "application/x-harvest-soif", "application/x-harvest-soif-parts"
"""Media types of a stream and of a listing, as `sinks/feed/templates.py` has them."""
GATHERER, END, REFRESH, PART = "GATHERER", "END", "REFRESH", "PART"
CHANGES_ALONE = "a stream of changes: the rest is kept"
MAX_PARTS = 1_000
MAX_LOCATION = 8_000
MAX_NAME = 200
"""Characters of the name of a Gatherer, a type, a media type."""
MAX_VIA = 50
"""Gatherers that a summary may have come through."""
MAX_ATTRIBUTES = 2 << 20
"""Bytes of names and values of a summary's attributes; further ones are left out."""
MAX_LONG = (1 << 63) - 1

_OID = re.compile("[0-9a-f]{64}")
_DIGESTS = {"md5": re.compile("[0-9a-f]{32}"), "sha256": re.compile("[0-9a-f]{64}")}
VIA, FOREIGN_OID, FOREIGN_GATHERER = "via", "foreign-oid", "foreign-gatherer"


class StreamError(ValueError):
    """A stream that cannot be used: the message is bounded."""


class Survey(NamedTuple):
    """What the first reading of a stream found."""

    last: Mapping[bytes, int]
    """Number of the template that counts, by OID."""
    gone: Sequence[bytes]
    """OIDs that the stream states to be gone."""
    gatherer: str
    """Name that the stream states; "": none."""
    complete: bool


class Tally:
    """Which templates of a stream count, and which OIDs are gone, as far as the stream was read."""

    def __init__(self) -> None:
        self.count = 0
        self.changes = False
        """Whether the stream has templates that only a stream of changes has: it is none of everything, if it does not say so."""
        self._last: dict[bytes, int] = {}
        self._gone: dict[bytes, None] = {}
        self._unnamed: list[tuple[str, int]] = []
        self._name = ""

    def take(self, one: Template, number: int) -> None:
        """Note a template of a summary or a removal."""
        self.count += 1
        self.changes |= bool({DELETE, REFRESH} & {*one.within})
        if DELETE in one.within:
            self._delete(one, number)
        elif REFRESH not in one.within:
            self._name = self._name or _first(one, "gatherer-name")
            self._update(_key(one), number)

    def _delete(self, one: Template, number: int) -> None:
        if not (_first(one, "gatherer-name") or _OID.fullmatch(_first(one, "oid"))):
            self._unnamed.append((one.url, number))
        self._withdraw(_key(one), number)

    def _update(self, key: bytes, number: int) -> None:
        self._last[key] = number
        self._gone.pop(key, None)

    def _withdraw(self, key: bytes, number: int) -> None:
        if self._last.get(key, -1) < number:
            self._last.pop(key, None)
            self._gone[key] = None

    def survey(self, gatherer: str, *, complete: bool) -> Survey:
        """Return the result; `gatherer`: the name that the stream states of itself."""
        for url, number in self._unnamed:
            self._withdraw(bytes.fromhex(identity.oid(gatherer or self._name, url)), number)
        return Survey(self._last, tuple(self._gone), gatherer, complete)


def collected(walk: Walk, body: BinaryIO) -> Iterator[Summary | Withdrawn | CrawlEvent | Rejected]:
    """Yield the links of a listing, or the summaries of a part; a stream that cannot be used is rejected, and marks the damage."""
    try:
        yield from _used(walk, body)
    except (SoifError, StreamError) as error:
        walk.damage = f"not a stream of summaries: {error}"
    if walk.damage and walk.damage != CHANGES_ALONE:
        walk.damage = bounded(walk.damage, MAX_REASON)
        yield walk.rejected("", walk.damage)
        yield unused(walk.obj)
    elif walk.damage and walk.obj.status != CHANGED:
        yield unused(walk.obj)


def _used(walk: Walk, body: BinaryIO) -> Iterator[Summary | Withdrawn | CrawlEvent]:
    """Yield the records of a listing or a stream. Raises SoifError, StreamError."""
    if "" in walk.skip:
        raise StreamError(walk.skip[""])
    if _media(walk.obj) not in (STREAM, LISTING):
        raise StreamError(f"its media type is {bounded(_media(walk.obj), MAX_NAME) or 'not stated'}")
    if _media(walk.obj) == LISTING:
        yield from listing.references(walk.obj, _parts(walk.obj, body))
        return
    survey = _survey(body)
    if survey.gatherer == walk.settings.gatherer:
        raise StreamError(f"its Gatherer has the name of this one, {survey.gatherer}")
    body.seek(0)
    yield from _summaries(walk, body, survey)
    if not survey.complete or walk.obj.status == CHANGED:
        yield from _withdrawn(walk, survey)
        walk.damage = walk.damage or CHANGES_ALONE


def _withdrawn(walk: Walk, survey: Survey) -> Iterator[Withdrawn]:
    obj = walk.obj
    for key in survey.gone:
        yield Withdrawn(object_url=obj.url, version=obj.version, time=obj.time, attempt=walk.attempt, path=key.hex())


def _media(obj: FetchedObject) -> str:
    return obj.content_type.partition(";")[0].strip().lower()


def _parts(obj: FetchedObject, body: BinaryIO) -> list[Link]:
    """Return the parts that a listing names. Raises SoifError, StreamError."""
    found = [canonical(one.url, obj.url) for one in read(body) if one.type == PART]
    links = [Link(url=url, kind="page") for url in found if url and is_part(obj.url, url)]
    if not links or len(found) > MAX_PARTS:
        raise StreamError(f"a listing of {len(links)} parts")
    return links


def _survey(body: BinaryIO) -> Survey:
    """Read a stream to its end. Raises SoifError, StreamError."""
    tally = Tally()
    around: dict[str, Template] = {}
    for number, one in enumerate(read(body)):
        if END in around:
            raise StreamError("something behind its end")
        if one.type in (GATHERER, END) and not one.within:
            around[one.type] = one
        elif one.url:
            tally.take(one, number)
    head, end = around.get(GATHERER), around.get(END)
    if head is None:
        if not tally.count:
            raise StreamError("it has no template")
        return tally.survey("", complete=not tally.changes)
    if end is None:
        raise StreamError("it has no end: cut short")
    if end.values("count") != (str(tally.count).encode(),):
        raise StreamError(f"it has {tally.count} templates, not {_first(end, 'count')}")
    return tally.survey(_first(head, "gatherer-name"), complete=_first(head, "coverage") == "complete")


def _first(template: Template, name: str) -> str:
    """Return the first value of an attribute as bounded text."""
    return bounded(next(iter(template.values(name)), b"").decode("utf-8", "replace"), MAX_NAME)


def _key(template: Template) -> bytes:
    """Return the foreign OID of a template; that of a stream of 1995 is computed."""
    stated = _first(template, "oid")
    return bytes.fromhex(stated if _OID.fullmatch(stated) else identity.oid(_first(template, "gatherer-name"), template.url))


def _summaries(walk: Walk, body: BinaryIO, survey: Survey) -> Iterator[Summary]:
    for number, one in enumerate(read(body)):
        if not one.url or survey.last.get(key := _key(one)) != number:
            continue
        try:
            found = _summary(walk, one, key.hex(), survey.gatherer)
        except RecordError as error:
            walk.damage = walk.damage or bounded(f"{one.url[:MAX_NAME]}: {error}", MAX_REASON)
            continue
        if found is not None:
            yield found


def _summary(walk: Walk, template: Template, foreign: str, stream: str) -> Summary | None:
    """Return a template as a summary of this Gatherer; None if it has come from here. Raises RecordError."""
    obj, settings = walk.obj, walk.settings
    properties, attributes, annotations = parts(template)
    source = bounded(str(properties.get("gatherer", "")) or stream, MAX_NAME)
    via = [bounded(value, MAX_NAME) for value in attributes.get(VIA, ()) if isinstance(value, str)]
    passed = [name for name in dict.fromkeys([*via, source]) if name]
    if settings.gatherer in passed or len(passed) > MAX_VIA:
        return None
    merged = {name: (*attributes.get(name, ()), *annotations.get(name, ())) for name in (*attributes, *annotations)}
    own = {FOREIGN_OID: (foreign,), FOREIGN_GATHERER: (source,), VIA: tuple(passed)}
    url = identity.member_url(obj.url, foreign)
    return Summary(
        oid=identity.oid(settings.gatherer, url),
        url=url,
        object_url=obj.url,
        path=foreign,
        gatherer=settings.gatherer,
        version=obj.version,
        time=obj.time,
        attempt=walk.attempt,
        attributes=_fitting({name: values for name, values in merged.items() if name not in own}) | own,
        location=bounded(str(properties.get("location", "")) or template.url, MAX_LOCATION),
        **_kept(properties),
    )


def _kept(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties that are kept as they are, as far as they can be true."""
    digests = {name: value if pattern.fullmatch(value := properties.get(name, "")) else "" for name, pattern in _DIGESTS.items()}
    return {
        "type": bounded(properties.get("type", ""), MAX_NAME) or "Unrecognized",
        "content_type": bounded(properties.get("content_type", ""), MAX_NAME) or "application/octet-stream",
        "size": _between(properties.get("size", 0), 0),
        "ttl": _between(properties.get("ttl", DEFAULT_TTL), 1),
        "refresh": _between(properties.get("refresh", DEFAULT_REFRESH), 1),
        **digests,
    }


def _between(value: int, least: int) -> int:
    return max(least, min(value, MAX_LONG))


def _fitting(attributes: Mapping[str, tuple[str | bytes, ...]]) -> dict[str, tuple[str | bytes, ...]]:
    """Return the attributes for which there is room, in their order."""
    room, found = MAX_ATTRIBUTES, dict[str, tuple[str | bytes, ...]]()
    for name, values in attributes.items():
        room -= len(name) + sum(len(value if isinstance(value, bytes) else value.encode()) for value in values)
        if room < 0:
            break
        found[name] = values
    return found
