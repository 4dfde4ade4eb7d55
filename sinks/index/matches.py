"""Attributes that show why a summary is a hit, where neither its title nor its snippet does."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from processors.query import QueryError
from processors.query.forms import Analyzer
from processors.query.snippet import OPEN, marked, matched, terms
from processors.query.words import searchable_values
from schemas.ports import BrokerIndex, Hit
from schemas.query import Query

LIMIT = 3
"""Maximum number of attributes for a hit."""
SHOWN_ANYWAY = frozenset(("title", "full-text", "partial-text", "description", "abstract", "terms"))
"""Attributes that the title and the snippet of a hit show."""


def matches(index: BrokerIndex, hits: Sequence[Hit], query: Query) -> dict[str, list[tuple[str, str]]]:
    """Return the names and snippets of the attributes that matched, by OID; none for hits that show a match as they are."""
    wanted = terms(query, Analyzer(index.languages))
    unclear = [hit.oid for hit in hits if OPEN not in hit.snippet and OPEN not in marked(hit.title, wanted)]
    if not unclear or not (wanted.runs or wanted.forms or wanted.tests):
        return {}
    # An index alone, without the records, shows none.
    with suppress(QueryError):
        found = {oid: searchable_values(summary) for oid, summary in index.records(unclear).items()}
        others = {oid: {k: v for k, v in values.items() if k not in SHOWN_ANYWAY} for oid, values in found.items()}
        return {oid: matched(values, wanted, LIMIT) for oid, values in others.items()}
    return {}
