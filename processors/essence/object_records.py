"""The records about one object and its members: summaries, dead letters, facts about files.

Laws:
- The type and the media type of the last layer that was recognized stay in the summary of an object that is rejected.
- What the header X-Robots-Tag forbids is obeyed for every type, and for all members of an object (`formats/robots_directives.py`):
  a summary under noindex has only a name.
"""

from __future__ import annotations

from collections.abc import Iterator

from processors import identity
from processors.essence.formats.robots_directives import header_directives
from processors.essence.formats.streams import Digest
from processors.essence.member import MAX_LONG, EssenceSettings, MemberRecord, State, Thing, iso, text
from processors.essence.recognize import UNRECOGNIZED
from processors.essence.summarize import Found
from processors.urls import canonical
from schemas.records import DEFAULT_REFRESH, DEFAULT_TTL, FetchedObject, File, Rejected, Summary

ORIGINALS = frozenset(("http", "https", "ftp", "gopher", "news"))
"""Schemes of the URLs under which a member is found."""
MAX_ORIGINAL = 2_000
"""Maximum number of characters of a member's original URL; what is cut there is no URL any more."""


def original_location(url: str) -> str:
    """Return the canonical form of the URL that a crawler's archive states for a member; "" if there is none to be found under.

    It is metadata from the archive: a text that is shown and searched, and that nothing ever opens.
    """
    if len(url) >= MAX_ORIGINAL or url.partition(":")[0].lower() not in ORIGINALS:
        return ""
    return canonical(url) or ""


def describe(thing: Thing, found: Found) -> None:
    """Add the attributes that every type has (Essence, seed 003: type-independent)."""
    found.add("file-name", text(thing.name))
    found.add("target-uri", thing.url)
    found.add("source", thing.source)
    found.add("owner", thing.owner)
    found.add("group", thing.group)
    found.add("mode", f"{thing.mode:04o}" if thing.mode else "")
    found.add("last-modification-time", iso(thing.mtime) if thing.mtime else "")


class ObjectRecords:
    """Builds the records about one object."""

    def __init__(self, obj: FetchedObject, settings: EssenceSettings, attempt: str) -> None:
        self._obj = obj
        self._settings = settings
        self._attempt = attempt
        self.robots = header_directives(obj.headers.get("x-robots-tag", ""), obj.time)
        """Robots directives of the object's header, for its members too."""

    def outcome(self, thing: Thing, digest: Digest, state: State) -> Iterator[MemberRecord]:
        """Yield what is reported of the object, or of a member, at the end of its analysis."""
        if thing.source:
            # Parts of a list are not copies of each other (DESIGN "essence").
            digest = digest._replace(sha256="")
        if self._settings.files:
            yield self.file(thing, digest, state)
        if state.rule and not state.reason:
            return
        self._restrict(state.found)
        if state.reason:
            yield self.rejected(thing.path, state.reason, state.detail)
            if state.recognized.type == UNRECOGNIZED != state.outer.type:
                state.recognized = state.outer
            state.found.attributes["reason"] = [state.reason]
        state.found.set("title", thing.name.decode("utf-8", "replace") or self._obj.url, 300)
        yield self._summary(thing, digest, state)

    def _restrict(self, found: Found) -> None:
        """Add the robots directives of the header and of the file itself; noindex removes all other attributes."""
        robots = found.robots.stricter(self.robots)
        if robots.noindex:
            found.attributes.clear()
        if robots.kept:
            found.attributes["robots"] = list(robots.kept)

    def rejected(self, path: str, reason: str, detail: str = "") -> Rejected:
        """Return a dead letter about the object or one of its members."""
        obj = self._obj
        return Rejected(
            stage="essence",
            reason=reason,
            time=obj.time,
            url=obj.url,
            path=path,
            version=obj.version,
            detail=detail,
            key=obj.url.encode(),
        )

    def _summary(self, thing: Thing, digest: Digest, state: State) -> Summary:
        obj, url = self._obj, identity.member_url(self._obj.url, thing.path)
        return Summary(
            oid=identity.oid(self._settings.gatherer, url),
            url=url,
            object_url=obj.url,
            path=thing.path,
            gatherer=self._settings.gatherer,
            version=obj.version,
            time=obj.time,
            type=state.recognized.type,
            content_type=state.recognized.content_type,
            size=digest.size,
            md5=digest.md5,
            sha256=digest.sha256,
            attempt=self._attempt,
            attributes={k: tuple(v) for k, v in state.found.attributes.items()},
            ttl=obj.root.ttl if obj.root else DEFAULT_TTL,
            refresh=obj.root.refresh if obj.root else DEFAULT_REFRESH,
            location=original_location(thing.url),
        )

    def file(self, thing: Thing, digest: Digest, state: State) -> File:
        """Return the facts about a file, whether or not it is summarized."""
        return File(
            object_url=self._obj.url,
            url=identity.member_url(self._obj.url, thing.path),
            path=thing.path,
            version=self._obj.version,
            type=state.recognized.type,
            evidence=state.recognized.evidence,
            content_type=state.recognized.content_type,
            owner=thing.owner,
            group=thing.group,
            mode=thing.mode,
            mtime=thing.mtime,
            size=min(digest.size, MAX_LONG),
            md5=digest.md5,
            selected=not state.rule,
            reason=state.rule,
        )
