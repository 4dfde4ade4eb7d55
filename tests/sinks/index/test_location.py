"""Summaries that were collected from another Gatherer: found and shown under the URL of what they describe."""

from __future__ import annotations

from pathlib import Path

import pytest

from processors.query import parse
from processors.query.predicate import matches
from schemas.records import Summary
from sinks.index.tantivy.index import TantivyIndex

URL, PART = "http://www.example.org/papers/whale.html", f"http://source.example/gatherer/soif/3#{'a' * 64}"


def collected() -> Summary:
    """Return a collected summary."""
    own = {"oid": "b" * 64, "url": PART, "object_url": PART.partition("#")[0], "path": "a" * 64, "gatherer": "us"}
    return Summary(**own, version=1, time=1, type="HTML", published=1, location=URL, attributes={"title": ("Whales",)})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        *((query, True) for query in (f'url:"{URL}"', "in:http://www.example.org/papers/", "site:example.org", "whales")),
        *((query, False) for query in (f'url:"{PART}"', "site:source.example")),
    ],
)
def test_location_is_searched(tmp_path: Path, query: str, found: bool) -> None:
    """The index and the predicate agree on the URL, the places and the site of a collected summary."""
    index = TantivyIndex(tmp_path / "index")
    index.apply([collected()], {0: 1})
    hits = index.search(parse(query)).hits
    index.close()
    assert [hit.url for hit in hits] == ([URL] if found else [])
    assert matches(parse(query), collected()) == found
