"""The query language in each engine: what people type, order, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from processors.query import parse
from schemas.ports import BrokerIndex
from schemas.records import Summary
from sinks.index.errors import QueryRefused
from sinks.index.options import Options

Make = Callable[..., Summary]

TEXT: dict[str, Any] = {
    "title": "The White Whale",
    "partial_text": "Harpooneers wrote résumés in C++ near İstanbul; the ship sailed.",
    "pages": "135",
    "date": "2024-03-05",
    "remark": "White walls",
    "size": 3_000_000,
}


@pytest.mark.parametrize(
    "query",
    [
        "whales", "title:WHALES", "resume", "istanbul", "C++", "wha*", "*ale", "wh?le", "title:*hal*", "whle~", "wahle~2",
        "harpoonr~3", "/wh[ai]les?/", "title:/white +whale/", "/^the white/", "=Whale", 'title:="White Whale"', "pages:100..200",
        "pages:>134", "file-size:>2M", "date:2024-01..2024-06", "before:2024-03-06", "after:2023", "site:example.org", "in:docs",
        "in:http://www.example.org/docs/bundle.zip", "white NEAR/1 whale", '"ship harpooneers"~9', "ship sails wrecked",
        "remark:wall", '"C++"', "/^t/ whale",
    ],
)  # fmt: skip
def test_summary_is_found(index: BrokerIndex, summary: Make, query: str) -> None:
    """A summary is found by each kind of term."""
    index.apply([summary("http://www.example.org/docs/bundle.zip#a.txt", **TEXT)], {})
    assert index.search(parse(query)).total == index.count(parse(query)) == 1


@pytest.mark.parametrize(
    "query",
    [
        '"whales"', "=whale", "squ*", "?whale", "whle", "hwale~", "/wh[ai]l/", "title:/whale +white/", "pages:1..134",
        "date:2024-04..", "after:2024", "before:2024-03-05", "site:other.org", "in:other", "in:a.txt", "white NEAR/0 ship",
        '"wrote sailed"~3', "ship wrecked", "C#", "title:ship", 'title:"white walls"',
    ],
)  # fmt: skip
def test_summary_is_not_found(index: BrokerIndex, summary: Make, query: str) -> None:
    """A term does not find what only looks like it."""
    index.apply([summary("http://www.example.org/docs/bundle.zip#a.txt", **TEXT)], {})
    assert index.search(parse(query)).total == index.count(parse(query)) == 0


def test_what_has_all_words_comes_first(index: BrokerIndex, summary: Make) -> None:
    """Of several words most are enough; summaries with all of them come before those with some, on every page."""
    texts = ["white whale ship", "white " * 9 + "whale " * 9, "whale whale ship", "white", "squid " * 40 + "ship whale white"]
    index.apply([summary(f"http://{at}/", partial_text=text) for at, text in enumerate(texts)], {})
    query = parse("white whale ship")
    found = [hit.url for hit in index.search(query).hits]
    assert found[:2] == ["http://0/", "http://4/"]
    assert sorted(found) == ["http://0/", "http://1/", "http://2/", "http://4/"]
    assert [index.search(query, limit=1, offset=at).hits[0].url for at in range(4)] == found
    assert {index.search(query, limit=limit).total for limit in (0, 1, 2, 9)} == {4}
    assert index.search(parse("white AND whale AND ship")).total == 2


def test_too_wide_a_part_is_refused_by_name(index: BrokerIndex, summary: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """If more summaries would have to be checked than may be, the query is refused with the part that is too wide."""
    index.apply([summary(f"http://{at}/", title="White Whale") for at in range(3)], {})
    assert index.search(parse("=White whale")).total == 3
    monkeypatch.setattr(index, "_options", Options(checked=2))
    with pytest.raises(QueryRefused, match="=White would have to be looked for in 3 summaries, more than 2"):
        index.search(parse("=White whale"))
    assert index.search(parse("white whale")).total == 3


def test_denied_part_is_checked(index: BrokerIndex, summary: Make) -> None:
    """Under NOT, a part that an engine answers too widely leaves out no summary that does not match it."""
    index.apply([summary("http://a/", title="White"), summary("http://b/", title="white")], {})
    assert [hit.url for hit in index.search(parse("white NOT =White")).hits] == ["http://b/"]
    assert list(index.scroll(parse("* -=White"))) == [summary("http://b/").oid]
