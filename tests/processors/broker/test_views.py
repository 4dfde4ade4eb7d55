"""Paths, order, tree and mistakes of views, and `view:` in a query."""

from __future__ import annotations

import itertools

import pytest

from processors.broker.views import ViewError, created, latest, normal, queries, removed, tags, tree
from processors.query import QueryError, parse, parse_lenient, unparse
from schemas.query import And, Most, Word
from schemas.records import Summary, View

VIEWS = latest(
    View(path=path, query=query, time=1)
    for path, query in (
        ("Computing", "unix OR windows"),
        ("Computing/Unix", "unix"),
        ("Computing/Unix/Shells", "shell"),
        ("Sea", "sea"),
    )
)


def summary(text: str) -> Summary:
    """A summary with one attribute."""
    plain = {"oid": "o", "url": "http://h/", "object_url": "http://h/", "gatherer": "g", "version": 1, "time": 1, "type": "Text"}
    return Summary(**plain, attributes={"title": (text,)})  # type: ignore[arg-type]


def test_summary_is_in_view_only_with_all_above() -> None:
    """A summary is in the views whose queries accept it, as far as it is in the view above."""
    assert tags(tree(VIEWS), summary("a unix shell")) == ("Computing", "Computing/Unix", "Computing/Unix/Shells")
    assert tags(tree(VIEWS), summary("a sea shell")) == ("Sea",)


def test_view_without_parent_holds_nothing() -> None:
    """A view whose parent was removed by another writer holds nothing, and is no view of a query."""
    views = {key: view for key, view in VIEWS.items() if key != "computing"}
    assert tags(tree(views), summary("a unix shell")) == ()
    assert set(queries(views)) == {"sea"}


def test_latest_does_not_depend_on_order() -> None:
    """Whatever order definitions are read in, the same ones hold; a removal is greater than a definition of the same time."""
    events = [View(path="a", query=q, time=t) for q, t in (("x", 1), ("y", 2), ("z", 2))]
    events += [View(path="A", time=2, removed=True), View(path="b", query="x", time=1), View(path="b", query="w", time=3)]
    found = {tuple(sorted(latest(order).items())) for order in itertools.permutations(events)}
    assert found == {(("b", View(path="b", query="w", time=3)),)}


@pytest.mark.parametrize(("path", "query"), [("a", '"open'), ("a", ""), ("", "x"), ("a//b", "x"), ("A ", "x"), ("a\x1b", "x")])
def test_unusable_definition_defines_nothing(path: str, query: str) -> None:
    """A definition of another writer whose path or query cannot be used is as none: the other views go on."""
    found = latest([View(path="sea", query="sea", time=1), View(path=path, query=query, time=2)])
    assert set(found) == set(queries(found)) == {"sea"}
    assert tags(tree(found), summary("sea")) == ("sea",)


@pytest.mark.parametrize("path", ["", "/", "a//b", "a/../b", "-a", "a\x1b", "a:b", 'a"b', "a/" * 16 + "a", "x" * 61, "a*"])
def test_path_is_refused(path: str) -> None:
    """A path with an empty, too long, or otherwise wrong name is refused in one line that a terminal can show."""
    with pytest.raises(ViewError) as caught:
        normal(path)
    assert str(caught.value).isprintable()


def test_path_is_made_normal() -> None:
    """Blanks and slashes at the ends are left out, and letters composed."""
    assert normal(" /computing/ unix   shells/e\u0301") == "computing/unix shells/é"


def test_mistakes_of_definitions() -> None:
    """A parent or a view that is not there names the nearest; a view with others below it stays; a query has its position."""
    with pytest.raises(ViewError, match=r"did you mean Computing\?"):
        created(VIEWS, "computin/games", "game", 5)
    with pytest.raises(ViewError, match="is there already"):
        created(VIEWS, "sea", "sea", 5)
    with pytest.raises(ViewError, match="below"):
        removed(VIEWS, "computing", 5)
    with pytest.raises(ViewError, match="no such view"):
        removed(VIEWS, "seas", 5)
    with pytest.raises(QueryError) as caught:
        created(VIEWS, "games", "a (", 5)
    assert caught.value.position
    with pytest.raises(QueryError, match="cannot be used here"):
        created(VIEWS, "games", "view:sea", 5)


def test_definition_follows_known_one() -> None:
    """A changed definition keeps the spelling of its path, and is later than the known one even if the clock is behind."""
    assert created(VIEWS, "COMPUTING/unix", "bsd", 0) == View(path="Computing/Unix", query="bsd", time=2)
    assert created(VIEWS, "computing/Games", "game", 9) == View(path="Computing/Games", query="game", time=9)


def test_view_in_query_is_written_out() -> None:
    """A view in a query is the AND of its path's queries, and none of the words of which most are wanted."""
    found = queries(VIEWS)
    assert parse("view:computing/unix/Shells", found) == parse("(unix OR windows) AND unix AND shell")
    assert parse("view:sea old white whale", found) == And((Word("sea"), Most((Word("old"), Word("white"), Word("whale")))))
    assert parse("NOT view:sea", found) == parse("NOT sea")
    for text in ("view:computing/unix/shells whale", "view:sea old white whale", 'view:"computing" OR x'):
        assert parse(unparse(parse(text, found))) == parse(text, found)


def test_unknown_view_names_nearest() -> None:
    """A query with an unknown view is refused with the nearest; the lenient parser leaves it out, and says so."""
    with pytest.raises(QueryError, match="did you mean view:computing/unix"):
        parse("view:computing/unx", queries(VIEWS))
    tree, messages = parse_lenient("whale view:zzz", queries(VIEWS))
    assert tree == Word("whale")
    assert messages == ("'view:zzz': there is no such view",)
