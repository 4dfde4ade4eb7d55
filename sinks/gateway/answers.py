"""Answers of an index to a state of the search page: hits for display, facets, proposals. All of it is called in threads.

Laws:
- A query is asked only within its budget: an engine cannot be interrupted.
- Text of summaries is returned without controls and marks of direction; matches are between U+0002 and U+0003.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from processors.identity import readable, split_url
from processors.query import unparse
from processors.query.facets import FACETS, VIEW
from processors.query.forms import Analyzer
from processors.query.limits import cost
from processors.query.similar import similar
from processors.query.snippet import marked, plain, terms
from processors.query.terms import Views
from processors.schemes import scheme_of
from schemas.ports import BrokerIndex, FacetValue, Hit, Part
from schemas.query import Every, Or, Query, Word
from schemas.records import Summary
from sinks.gateway.brokers.tree import scope
from sinks.gateway.refinement import Asked, asked, check
from sinks.gateway.state import State
from sinks.index import hints
from sinks.index.errors import QueryRefused
from sinks.index.matches import matches

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ShownHit(NamedTuple):
    """A hit for display."""

    oid: str
    url: str
    place: str
    """The URL for people: percent-decoded, without controls."""
    container: str
    """URL of the folder or archive that it lies in; empty if there is none."""
    title: str
    """With marks; empty if the summary has none."""
    type: str
    date: str
    """The document's own day, such as 2024-03-05; empty if it states none."""
    score: float
    snippet: str
    """With marks."""
    attributes: Sequence[tuple[str, str]]
    """Names and snippets of the attributes that matched, where neither title nor snippet shows a match."""
    copies: Sequence[tuple[str, str]]
    """URL and readable URL of copies."""
    copies_count: int
    parts: Sequence[Part] = ()
    """The parts of its score, if they were asked for."""


class Answer(NamedTuple):
    """Answer to a state."""

    state: State
    asked: Asked
    hits: Sequence[ShownHit]
    total: int
    facets: Mapping[str, Sequence[FacetValue]]
    left_out: Sequence[str]
    """Messages about what is not looked for or not shown."""
    spelling: str
    """The query in another spelling; empty if there is none."""
    by_itself: Sequence[tuple[str, int | None]]
    """Parts of a query that finds nothing, and how many summaries each finds by itself; None: too many to check."""
    unknown: Sequence[str] = ()
    """Attributes that a query names, which finds nothing, and no summary has."""
    like: str = ""
    """Title or URL of the summary that the hits are similar to."""
    plan: str = ""
    """The engine's own query, if it was asked for."""
    views: Sequence[FacetValue] = ()
    """The views that hits are in, if they were asked for: of the query without the view that it begins with."""


class Wanted(NamedTuple):
    """Parts of an answer that are wanted."""

    hits: bool = True
    facets: bool = True
    expert: bool = False
    views: bool = False
    strict: bool = False
    """Whether a mistake in the query is an error."""


ALL = Wanted(views=True)


class NotFoundError(Exception):
    """There is no such summary; the message says why."""


class Searcher:
    """Answers states from one index."""

    def __init__(self, index: BrokerIndex, budget: int, facets: Sequence[str] = FACETS, views: Views | None = None) -> None:
        """`facets`: those that are counted; `views`: what `view:PATH` is written out as, None: no query may name one."""
        self._index = index
        self._budget = budget
        self._facets = facets
        self._views = views

    def answer(self, state: State, wanted: Wanted = ALL) -> Answer:
        """Return the answer to a state. Raises QueryError, IndexDamaged, OSError, NotFoundError."""
        like = self.summary(state.like) if state.like else None
        found = self.asked(state, like, strict=wanted.strict)
        size = state.size if wanted.hits and found.tree != Or(()) else 0
        within = scope(state.text).path
        names = (*(self._facets if wanted.facets else ()), *((VIEW,) if wanted.views and not within else ()))
        page = self._index.search(found.tree, size, state.offset, state.copies, sort=state.sort, facets=names)
        relevance = state.sort == "relevance"
        parts = self._index.explain(found.tree, [hit.oid for hit in page.hits]) if wanted.expert and relevance else {}
        shown = tuple(self._shown(page.hits, found, parts))
        left_out = (*found.left_out, *page.left_out)
        facets = {name: values for name, values in page.facets.items() if name != VIEW}
        views = self.views(state, like) if wanted.views and within else page.facets.get(VIEW, ())
        answer = Answer(state, found, shown, page.total, facets, left_out, "", (), like=title(like), views=views)
        if wanted.hits:
            other = hints.respelled(self._index, found.typed, page.total)
            spelling = self._address(state.text, page.total) or ("" if other is None else unparse(other))
            answer = answer._replace(spelling=spelling)
        if wanted.hits and not page.total:
            by_itself = [(unparse(part), total) for part, total in hints.by_itself(self._index, found.tree)]
            answer = answer._replace(by_itself=by_itself, unknown=list(hints.unknown(self._index, found.typed)))
        return answer._replace(plan=self._index.plan(found.tree)) if wanted.expert else answer

    def views(self, state: State, like: Summary | None = None, *, strict: bool = False) -> Sequence[FacetValue]:
        """Return the views that the hits of a state are in, without the view that its query begins with. Raises as `asked`."""
        found = self.asked(state.changed(text=scope(state.text).rest), like, strict=strict)
        return self._index.search(found.tree, 0, 0, state.copies, facets=(VIEW,)).facets.get(VIEW, ())

    def completed(self, beginning: str, limit: int) -> list[tuple[str, int]]:
        """Return words that begin so, with the numbers of summaries that have them, the most frequent first."""
        return list(self._index.complete(beginning, limit))

    def asked(self, state: State, like: Summary | None = None, *, strict: bool = False) -> Asked:
        """Return the query of a state; `like`: the summary that it names, if it has been read.

        Raises QueryRefused above the budget, NotFoundError; with `strict`, QueryError.
        """
        if state.like and like is None:
            like = self.summary(state.like)
        found = asked(state, None if like is None else self._similar(like), self._views)
        if strict:
            check(state, found, self._views)
        check_budget(found.tree, self._budget)
        return found

    def _similar(self, like: Summary) -> Query:
        try:
            return similar(like, self._index.frequencies, self._index.count(Every()), Analyzer(self._index.languages))
        except ValueError as error:
            raise QueryRefused(str(error)) from None

    def summary(self, oid: str) -> Summary:
        """Return a summary. Raises NotFoundError."""
        match self._index.record(oid):
            case Summary() as found:
                return found
            case None:
                raise NotFoundError("there is no summary with this OID")
        raise NotFoundError("the summary with this OID was removed")

    def _shown(self, hits: Sequence[Hit], found: Asked, parts: Mapping[str, Sequence[Part]]) -> Iterator[ShownHit]:
        wanted = terms(found.tree, Analyzer(self._index.languages))
        attributes = matches(self._index, hits, found.tree)
        for hit in hits:
            copies = [(url, plain(readable(url))) for url in hit.copies]
            titled = marked(hit.title, wanted)
            yield ShownHit(
                hit.oid, hit.url, plain(readable(hit.url)), container(hit.url), titled, plain(hit.type), day(hit.date),
                hit.score, hit.snippet, attributes.get(hit.oid, ()), copies, hit.copies_count, parts.get(hit.oid, ()),
            )  # fmt: skip

    def _address(self, text: str, total: int) -> str:
        """Return the query for the summary of a URL, if that is all that was typed and it exists; else an empty text."""
        url = text.strip()
        if total or "://" not in url or any(map(str.isspace, url)):
            return ""
        query = Word(url, "url")
        return unparse(query) if hints.count_found(self._index, query) else ""


def check_budget(query: Query, budget: int) -> None:
    """Raise QueryRefused for a query that costs more than the budget."""
    if (price := cost(query)) > budget:
        raise QueryRefused(
            f"this query would take too long: it costs {price:,} of at most {budget:,} (a plain word costs 1); "
            "use fewer wildcards, errors and regular expressions"
        )


def title(summary: Summary | None) -> str:
    """Return the title of a summary for display, or its URL if it has none; empty for None."""
    if summary is None:
        return ""
    found = next((str(value) for value in summary.attributes.get("title", ()) if isinstance(value, str)), "")
    return plain(found) or plain(readable(summary.shown_url))


def day(seconds: int | None) -> str:
    """Return the day of a moment in seconds since the epoch; empty for None, and for one outside the years 1 to 9999."""
    if seconds is None:
        return ""
    try:
        return (_EPOCH + timedelta(seconds=seconds)).date().isoformat()
    except OverflowError:
        return ""


def container(url: str) -> str:
    """Return the URL of the archive that a member lies in, or of the folder of an object; empty if there is none."""
    object_url, path = split_url(url)
    if path:
        archive, nested, _ = path.rpartition("#")
        return f"{object_url}#{archive}" if nested else object_url
    # Only the network has queries: in the name of a file, a question mark is a character.
    place = object_url if scheme_of(object_url).realm == "machine" else object_url.partition("?")[0]
    head, slash, _ = place.rstrip("/").rpartition("/")
    return f"{head}/" if slash and "://" in head and not head.endswith("://") else ""
