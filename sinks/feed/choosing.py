"""Reader of the summaries of a feed that match a query: the same streams, marks and changes, of those alone.

Strategy: each summary that a stream would have is decoded, and tested by a predicate. Nothing is kept of a query: a summary that
has changed since a mark, and does not match now, is stated as removed, whether it matched before or not.

Laws:
- A mark is bound to its query: its epoch is made from that of the feed and from the query, so a mark of another query, or of the
  whole, is unknown.
- A complete stream has each match that exists while it is sent. What changes meanwhile comes with the changes since its mark.
- Changes since a mark more than MOST changes ago are unknown: the reader gets everything that matches, which takes no longer.
- Between two pages a stream yields, if only nothing, so that a query that matches little does not hold up other streams.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator

from schemas.records import Removed, Summary
from schemas.soif import dumps, parse
from schemas.soif_summary import to_record, to_template
from sinks.feed.compression import GzipStream
from sinks.feed.mark import Mark
from sinks.feed.reader import FeedReader, FeedState, PartState, Range, head
from sinks.feed.templates import CLOSED, DELETE, UPDATE, end, inner, opened

MOST = 50_000
"""Changes between a mark and now at the most: of those that do not match, the removals are kept in memory until the end."""


class ChoosingReader(FeedReader):
    """Reads what matches a query; used by one thread at a time."""

    keeps = False

    def __init__(self, whole: FeedReader, query: str, identity: str, matches: Callable[[Summary], bool]) -> None:
        """Open the feed that another reader reads. `query` is stated in streams; `identity` differs for queries that differ.

        Raises FeedMissing, OSError.
        """
        super().__init__(whole.path)
        self.epoch = whole.epoch
        self._query = query
        self._identity = identity
        self._matches = matches

    def state(self) -> FeedState:
        """Return the state of the feed, with marks of this query; numbers of summaries are those of the feed. Raises OSError."""
        found = super().state()
        parts = [PartState(one.part, self._bound(one.mark), one.summaries) for one in found.parts]
        return FeedState(found.gatherer, self._bound(found.mark), found.horizon, parts)

    def is_known(self, since: Mark, part: int | None = None) -> bool:
        """Return whether the changes since a mark are known, and not too many. Raises OSError."""
        return super().is_known(since, part) and self.state().mark.number - since.number <= MOST

    def mark_at(self, time_ms: int) -> Mark | None:
        """See FeedReader."""
        found = super().mark_at(time_ms)
        return None if found is None or super().state().mark.number - found.number > MOST else self._bound(found)

    def complete(self, part: int | None = None) -> Iterator[bytes]:
        """Iterate over the compressed stream of all matches, or of a part's. Raises OSError, StreamInterrupted."""
        return self.changes(None, part)

    def changes(self, since: Mark | None = None, part: int | None = None, prefix: str = "") -> Iterator[bytes]:
        """Iterate over the compressed stream of changes since a mark; None: of all matches, without removals. See FeedReader."""
        found = super().state()
        # What changes meanwhile, too, where everything is asked for; a prefix alone is no base of later changes.
        last = sys.maxsize if since is None and not prefix else found.mark_of(part).number
        mark, count = self._bound(found.mark_of(part)), 0
        stream = GzipStream()
        named = found._replace(mark=mark)
        yield stream.text(head(named, mark, part, since, prefix, self._query) + opened(UPDATE))
        gone: list[bytes] = []
        chosen = Range(since.number if since is not None else 0, last, prefix=prefix)
        for page in self._changed(found, chosen, part):
            kept = [template for template in page if self._keep(template, None if since is None else gone)]
            count += len(kept)
            yield stream.text(b"".join(kept)) if kept else b""
        if since is not None:
            yield stream.text(CLOSED + opened(DELETE) + b"".join(gone))
            count += len(gone)
            for page in self._changed(found, chosen._replace(lives=False), part):
                count += len(page)
                yield stream.text(b"".join(page))
        yield stream.text(CLOSED + end(count, mark)) + stream.end()

    def _keep(self, template: bytes, gone: list[bytes] | None) -> bool:
        """Return whether a summary matches; the removal of one that does not is added to `gone`."""
        (found,) = parse(template)
        record = to_record(found)
        if isinstance(record, Removed) or self._matches(record):
            return True
        if gone is not None:
            gone.append(_removal(record))
        return False

    def _bound(self, mark: Mark) -> Mark:
        """Return a mark of the feed as one of this query."""
        epoch = hashlib.sha256(f"{mark.epoch}\n{self._identity}".encode()).hexdigest()[: len(mark.epoch)]
        return Mark(epoch, mark.number)


def _removal(summary: Summary) -> bytes:
    """Return the template of the removal of a summary that does not match."""
    gone = Removed(
        oid=summary.oid,
        url=summary.url,
        object_url=summary.object_url,
        version=summary.version,
        time=summary.time,
        reason="filtered",
    )
    return inner(dumps([to_template(gone)]))
