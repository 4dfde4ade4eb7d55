"""State of a search page to URL and back, and the query that it asks for."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.query import unparse
from processors.query.facets import FACETS
from schemas.query import Or
from sinks.gateway.refinement import asked
from sinks.gateway.state import MAX_HIT, SIZES, SORTS, State, read
from sinks.gateway.views import chips

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
WORD = TEXT.filter(str.strip)
CHOICES = st.lists(st.tuples(st.sampled_from(FACETS), WORD), max_size=4, unique=True).map(tuple)
STATES = st.builds(
    State, text=TEXT, chosen=CHOICES, since=TEXT.map(str.strip), until=TEXT.map(str.strip), inside=TEXT.map(str.strip),
    like=st.sampled_from(["", "a" * 64]), copies=st.booleans(), sort=st.sampled_from(SORTS), size=st.sampled_from(SIZES),
    page=st.integers(1, 100),
)  # fmt: skip


@given(STATES)
def test_url_of_a_state_gives_it_back(state: State) -> None:
    """Every state can be linked: its URL is read as the same state."""
    parameters = parse_qsl(state.query.removeprefix("?"), keep_blank_values=True)
    # A page beyond the last hit that is shown is the last page.
    assert read(parameters) == state.changed(page=min(state.page, MAX_HIT // state.size))


@given(
    st.lists(st.tuples(st.sampled_from(["q", "page", "size", "sort", "from", "like", "type", "not-site", "x"]), TEXT), max_size=8)
)
def test_any_parameters_are_a_state(parameters: list[tuple[str, str]]) -> None:
    """No URL is an error: what is impossible is the default, and the state's own URL gives it back."""
    state = read(parameters)
    assert read(parse_qsl(state.query.removeprefix("?"), keep_blank_values=True)) == state


def test_choosing_twice_changes_nothing() -> None:
    """A value is chosen, then no longer; excluding a chosen value takes the choice back."""
    state = State("whale", page=3)
    chosen = state.toggled("type", "PDF")
    assert (chosen.chosen, chosen.page) == ((("type", "PDF"),), 1)
    assert chosen.toggled("type", "PDF") == state.changed()
    excluded = chosen.without("type", "PDF")
    assert (excluded.chosen, excluded.excluded) == ((), (("type", "PDF"),))
    assert excluded.without("type", "PDF") == state.changed()


@pytest.mark.parametrize(
    ("state", "query"),
    [
        (State("white whale"), "white whale"),
        (State("whale", chosen=(("type", "PDF"),)), "whale type:PDF"),
        (State("whale", chosen=(("type", "PDF"), ("type", "HTML"))), "whale (type:PDF OR type:HTML)"),
        (State("whale", excluded=(("site", "example.org"),)), "whale NOT site:example.org"),
        (State("whale", since="2024-03", until="2024-03-05"), "whale during:2024-03-01..2024-03-05"),
        (State("", chosen=(("language", "en"),)), "language:==en"),
        (State("a OR b", inside="docs/bundle.zip"), "(a OR b) in:docs/bundle.zip"),
        (State("old white whale", chosen=(("type", "PDF"),)), "old white whale type:PDF"),
    ],
)
def test_refinements_are_conditions_of_the_query(state: State, query: str) -> None:
    """What is chosen on the page could have been typed."""
    assert unparse(asked(state).tree) == query


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"since": "soon"}, "from 'soon'"),
        ({"since": "2024", "until": "2023-05"}, "the first is after the last"),
        ({"until": "2024-02-30"}, "that exists"),
        ({"chosen": (("year", "soon"),)}, "year"),
        ({"inside": "http://"}, "in 'http://'"),
    ],
)
def test_impossible_refinement_is_left_out_and_reported(changes: dict[str, Any], said: str) -> None:
    """What cannot be looked for does not hide what can."""
    found = asked(State("whale", **changes))
    assert unparse(found.tree) == "whale"
    assert said in found.left_out[0]


def test_mistake_in_a_query_is_reported_with_its_place() -> None:
    """The rest of the query is looked for."""
    found = asked(State("whale AND (krill"))
    assert found.mistake is not None
    assert (found.mistake.before, found.mistake.after) == ("whale AND ", "(krill")
    assert unparse(found.tree) == "whale krill"
    assert asked(State("AND")).tree == Or(())


def test_refinement_that_is_not_in_force_is_no_chip() -> None:
    """The page shows as a refinement what narrows the search, and nothing else."""
    state = State("whale", since="2024", until="Mar 2026", inside="docs", chosen=(("type", "PDF"),))
    assert [(chip.label, chip.value) for chip in chips(state)] == [("Type", "PDF"), ("From", "2024"), ("Only in", "docs")]
    assert [chip.removed for chip in chips(State("whale", like="a" * 64), "Moby Dick")] == [State("whale")]
