"""The summary of a registration: the attributes that its server states, found under the server's own URL.

Laws:
- Nothing but a registration gives a summary of the type Server here: no file, page or member is recognized as one.
- A registration that cannot be read gives nothing and removes nothing; it is rejected.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO

from processors import identity
from processors.essence.member import bounded
from processors.registry.template import MAX_BODY, MEDIA, STATISTICS, TYPE, Registration, RegistrationError, parse
from schemas.records import MAX_REASON, FetchedObject, Rejected, Summary

if TYPE_CHECKING:
    from processors.essence.walk import Walk


def registered(walk: Walk, body: BinaryIO) -> Iterator[Summary | Rejected]:
    """Yield the summary of a registration, or its rejection."""
    walk.progress("")  # a crash while it is read is that of the object
    if "" in walk.skip:
        walk.damage = walk.skip[""]
    else:
        try:
            found = parse(body.read(MAX_BODY + 1))
            yield _summary(walk.obj, found, walk.settings.gatherer, walk.attempt)
        except RegistrationError as error:
            walk.damage = bounded(f"not a registration: {error}", MAX_REASON)
    if walk.damage:
        yield walk.rejected("", walk.damage)


def _summary(obj: FetchedObject, found: Registration, gatherer: str, attempt: str) -> Summary:
    attributes: dict[str, tuple[str | bytes, ...]] = {}
    for name, value in found.attributes:
        attributes[name] = (*attributes.get(name, ()), value if name == STATISTICS else value.decode())
    return Summary(
        oid=identity.oid(gatherer, obj.url),
        url=obj.url,
        object_url=obj.url,
        gatherer=gatherer,
        version=obj.version,
        time=obj.time,
        type=TYPE,
        content_type=MEDIA,
        size=obj.size,
        md5=obj.md5,
        sha256=obj.sha256,
        ttl=found.ttl,
        refresh=max(1, found.ttl // 2),
        attempt=attempt,
        attributes=attributes,
        location=found.url,
    )
