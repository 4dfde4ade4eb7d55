"""The tree of views on the search page and in the API: its counts, its links, its feeds, and the way to save a search."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from processors.query import QueryError, parse
from schemas.ports import FacetValue
from sinks.gateway.brokers.tree import Branch, scope, scoped, shown
from sinks.gateway.state import State
from tests.sinks.gateway.doubles import VIEWS, CollectionDouble, Made, summary
from tests.sinks.gateway.test_admin import TOKEN, log_in

Client = Callable[..., TestClient]
KNOWN = {path.casefold(): query for path, query in VIEWS.items()}
TERM = st.sampled_from(
    ["whale", "krill", "(a OR b)", '"a OR b"', "OR", "AND", "NOT", "type:HTML", "view:sea", "view:sea/dated", ")"]
)
ROW = re.compile(
    r'<a href="([^"]*)" rel="nofollow"( aria-current="true")?><span class="name" dir="auto">([^<]*)</span>'
    r'<span class="total"><span class="unseen">: </span>([\d,]+)</span></a>'
)


def section(page: str) -> str:
    """Return the part of a page with the tree; empty if there is none."""
    found = re.search(r'<section class="tree">(.*?)</section>', page, re.DOTALL)
    return found[1] if found else ""


def rows(page: str) -> list[tuple[str, str, int, bool]]:
    """Return query of the link, name, count and whether it is the current one, of each view in a page."""
    return [
        (dict(parse_qsl(urlsplit(html.unescape(link)).query))["q"], html.unescape(name), int(total), bool(current))
        for link, current, name, total in ROW.findall(section(page))
    ]


@given(st.lists(TERM, max_size=5).map(" ".join), st.sampled_from(["view:sea ", 'VIEW:"Sea" ', "view:sea AND ", " view:sea/ ", ""]))
def test_scope_and_rest_mean_what_the_query_means(text: str, before: str) -> None:
    """A query that is taken apart and put together again finds what it found, whatever follows the view."""
    try:
        whole = parse(before + text, KNOWN)
    except QueryError:
        return
    assert parse(scoped(*scope(before + text)), KNOWN) == whole


def test_scope_is_a_view_that_all_of_the_query_is_looked_for_in() -> None:
    """A view in another place, or joined by OR, is no scope; a rest with OR gets parentheses."""
    assert scope('view:"small animals" krill') == ("small animals", "krill")
    assert scope("view:sea") == ("sea", "")
    for text in ("krill view:sea", "view:sea krill OR whale", "view:sea OR krill", "views:sea", "", "(view:sea)", 'view:sea"x"'):
        assert scope(text) == ("", text)
    assert scoped("sea/a b", "krill OR whale") == 'view:"sea/a b" (krill OR whale)'
    assert scoped("sea", "") == "view:sea"
    assert scoped("", "krill") == "krill"


def test_views_are_below_the_nearest_one_that_is_there() -> None:
    """The tree is in order of path, each view is named as it was made, and those above the scope are open."""
    counts = [FacetValue("Sea", 5), FacetValue("Sea/Straße/x", 1), FacetValue("Sea/Straße", 3), FacetValue("Land/far/away", 2)]
    tree = shown(State(text="view:sea/STRASSE whale", page=3), counts)

    def names(branches: tuple[Branch, ...]) -> list[object]:
        return [(one.name, one.total, one.is_current, one.is_open, names(tuple(one.below))) for one in branches]

    inner: object = ("Straße", 3, True, True, [("x", 1, False, False, [])])
    assert names(tuple(tree.top)) == [("Land/far/away", 2, False, False, []), ("Sea", 5, False, True, [inner])]
    assert tree.without == State(text="whale")
    assert tree.top[0].state == State(text="view:Land/far/away whale")


@pytest.mark.parametrize(
    "query",
    [
        "",
        "whale",
        "krill OR ship",
        "view:sea",
        "view:sea/dated ship",
        'view:"small animals" whale type:HTML',
        "view:sea (krill OR ship)",
    ],
)
def test_count_of_a_view_is_what_its_link_finds(client: Client, query: str) -> None:
    """Each view has the number of hits of the search that it leads to, on the page, in its part for the script, and in the API."""
    ask = client()
    page, part = (rows(ask.get(path, params={"q": query}).text) for path in ("/", "/facets"))
    assert page
    assert page == part
    for led, _, total, _ in page:
        assert ask.get("/api/search", params={"q": led}).json()["total"] == total, led
    views = ask.get("/api/views", params={"q": query}).json()["views"]
    assert sorted(one["total"] for one in views) == sorted(total for _, _, total, _ in page)
    assert [one["path"] for one in views] == sorted(one["path"] for one in views)


def test_refinements_hold_in_the_tree(client: Client) -> None:
    """Counts and links keep the refinements of the search."""
    ask = client()
    page = ask.get("/", params={"q": "view:sea whale", "author": "Herman Melville"}).text
    assert [(name, total) for _, name, total, _ in rows(page)] == [("sea", 2), ("dated", 2)]
    assert all("author=Herman+Melville" in link for link, *_ in ROW.findall(section(page)))
    found = ask.get("/api/views", params={"q": "whale", "author": "Herman Melville"}).json()
    assert found == {"views": [{"path": "sea", "total": 2}, {"path": "sea/dated", "total": 2}]}


def test_current_view_is_marked_open_and_can_be_left(client: Client) -> None:
    """The scope of a search is marked, the views above it are open, and a link leads to the search without it."""
    ask = client()
    tree = section(ask.get("/", params={"q": "view:sea/dated ship"}).text)
    assert [name for _, name, _, current in rows(f'<section class="tree">{tree}</section>') if current] == ["dated"]
    assert '<details data-fold="view sea" open>' in tree
    assert re.search(r'<a href="/\?q=ship" rel="nofollow" aria-label="any view">', tree)
    assert " open>" not in section(ask.get("/").text)


def test_view_has_feeds(client: Client) -> None:
    """A search in a view links the Atom feed of the view and its summaries as SOIF: the stream of the Broker if it has one."""
    ask = client()
    tree = section(ask.get("/", params={"q": "view:sea/dated ship"}).text)
    atom, soif = (html.unescape(link) for link in re.findall(r'href="([^"]*)"[^>]*>(?:Atom|SOIF)', tree))
    assert atom == "/feed?q=view%3Asea%2Fdated"
    assert ask.get(atom).text.count("<entry>") == 2
    assert ask.get(soif).text.count("@FILE {") == 2
    streamed = section(client(stream=True, broker="main").get("/", params={"q": "view:sea"}).text)
    assert 'href="/brokers/main/soif?q=view%3Asea"' in streamed
    assert "Atom" not in section(ask.get("/").text)


def test_many_views_are_folded(client: Client, tmp_path: Path) -> None:
    """Of a level with many views the first are shown and the rest is folded, but for a rest with the scope in it."""
    made = Made(tmp_path / "index", [summary("http://a/", more={"views": ("top", *(f"top/{at:02}" for at in range(30)))})])
    ask = client(made.open)
    tree = section(ask.get("/").text)
    assert len(rows(ask.get("/").text)) == 31
    assert '<details data-fold="more views top">' in tree
    assert '10 more<span class="unseen"> views top</span>' in tree
    assert '<details data-fold="more views top" open>' in section(ask.get("/", params={"q": "view:top/25"}).text)


def test_mistake_beside_a_view(client: Client, collection: CollectionDouble) -> None:
    """A view that is not there is a mistake of the query, and the tree is there to choose another; the API refuses a mistake."""
    ask = client()
    page = ask.get("/", params={"q": "view:sae whale"})
    assert page.status_code == 200
    assert {name for _, name, _, _ in rows(page.text)} == {"sea", "dated", "Small animals"}
    assert "Atom" not in section(page.text)
    assert ask.get("/api/views", params={"q": "whale AND ("}).status_code == 400


def save_link(page: str) -> dict[str, str] | None:
    """Return what the link to save a search fills in; None if there is none."""
    found = re.search(r'<a href="/admin/views\?([^"#]*)#save"', page)
    return dict(parse_qsl(html.unescape(found[1]), keep_blank_values=True)) if found else None


def test_search_is_saved_with_its_refinements(client: Client) -> None:
    """Where there is an administration page, a search leads to a form with all of it in words, below the view that it is in."""
    ask = client(token=TOKEN)
    log_in(ask)
    bearer = {"Authorization": f"Bearer {TOKEN}"}

    def link(**asked: str) -> dict[str, str] | None:
        return save_link(ask.get("/", params=asked, headers=bearer).text)

    assert link(q="krill") == {"path": "", "query": "krill"}
    assert link(q="view:sea krill", type="HTML", **{"not-language": "en"}) == {
        "path": "sea", "query": "krill type:HTML NOT language:==en",
    }  # fmt: skip
    assert link(q="krill view:sea") == {"path": "", "query": "krill whale"}
    for nothing in ({}, {"q": "view:sea"}, {"q": "krill AND ("}, {"q": "krill", "from": "yesterday"}, {"q": "krill" * 300}):
        assert link(**nothing) is None
    assert save_link(client().get("/", params={"q": "krill"}).text) is None
    assert save_link(client(token=TOKEN, admin_token="").get("/", params={"q": "krill"}, headers=bearer).text) is None
    assert save_link(client(admin_token=TOKEN).get("/", params={"q": "krill"}).text) == {"path": "", "query": "krill"}
    page = ask.get("/admin/views", params={"path": "sea", "query": '"<b>" krill'}).text
    assert 'name="query" value="&#34;&lt;b&gt;&#34; krill"' in page
    assert 'name="path" value="sea"' in page
    assert 'name="broker" value="main"' in page


def test_title_with_a_slash_is_refused(client: Client) -> None:
    """A title is one name; what was typed is in the form again."""
    ask = client(token=TOKEN)
    form = {"form": log_in(ask), "broker": "main", "path": "", "title": "a/b", "query": "krill"}
    answer = ask.post("/admin/views/save", data=form, headers={"Origin": "http://localhost"})
    assert answer.status_code == 422
    assert "Title: has a slash" in answer.text
    assert 'name="title" value="a/b"' in answer.text
