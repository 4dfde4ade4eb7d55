from __future__ import annotations

import re
import time
import unicodedata
from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.query.patterns import fuzzy, near, verbatim, wildcard_expression
from processors.query.words import MAX_WORD, fold, kind, words

WORDS = st.text("abcé", min_size=1, max_size=7)


@given(st.text("abÉé*?", min_size=1, max_size=8), st.lists(WORDS, max_size=10))
def test_wildcard_matches_definition(pattern: str, tested: list[str]) -> None:
    """A star is any number of letters, a question mark one; case is folded; the expression for engines means the same."""
    plain = "".join({"*": ".*", "?": "."}.get(char, char) for char in fold(pattern))
    made = wildcard_expression(pattern)
    test = made.test()
    verdicts = [re.fullmatch(plain, word, re.DOTALL) is not None for word in tested]
    assert [test(word) for word in tested] == verdicts
    assert made.of_words
    assert made.test_spaced()("  ".join(["", *tested])) == any(verdicts)


def test_wildcard_is_written_for_engines() -> None:
    """Engines get a wildcard as a regular expression, and the letters that every match has."""
    made = wildcard_expression("WHA**le?s")
    assert (made.lucene(), made.tantivy(), made.required()) == ("wha.*le.s", "(?s:wha.*le.s)", ("wha", "le"))
    assert wildcard_expression("*" + "a?" * 60).tantivy() is None
    assert wildcard_expression("e\u0301*").lucene() == "é.*"
    assert wildcard_expression("a" * MAX_WORD + "*").test()("a" * MAX_WORD)
    assert not wildcard_expression("a-b*").test()("ab")


def distance(first: str, second: str) -> int:
    """Levenshtein's distance by dynamic programming over rows."""
    row = list(range(len(second) + 1))
    for at, char in enumerate(first, start=1):
        above, row[0] = row[0], at
        for other, letter in enumerate(second, start=1):
            above, row[other] = row[other], min(row[other] + 1, row[other - 1] + 1, above + (char != letter))
    return row[-1]


@given(WORDS, st.integers(1, 3), st.lists(WORDS, max_size=10))
def test_fuzzy_matches_definition(text: str, errors: int, tested: list[str]) -> None:
    """Words are found with at most so many letters inserted, deleted or replaced."""
    test = fuzzy(text, errors)
    assert [test(word) for word in tested] == [distance(text, word) <= errors for word in tested]


def test_fuzzy_counts_letters() -> None:
    """Letters are counted, not bytes; the text is folded; two letters that change places are two errors."""
    assert fuzzy("WHALE", 1)("whéle")
    assert fuzzy("cafe\u0301", 1)("cafe")
    assert not fuzzy("whale", 1)("wahle")
    assert fuzzy("whale", 2)("wahle")


def is_near(wanted: list[str], distance: int, value: list[str]) -> bool:
    """Try all choices of distinct positions."""
    found = [at for at, word in enumerate(value) if word in wanted]
    chosen = (places for places in combinations(found, len(wanted)) if Counter(value[at] for at in places) == Counter(wanted))
    return any(places[-1] - places[0] + 1 - len(wanted) <= distance for places in chosen)


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=4), st.integers(0, 6), st.lists(st.sampled_from("abcxy"), max_size=14))
def test_near_matches_definition(wanted: list[str], distance: int, value: list[str]) -> None:
    """All words are there, each at a position of its own, with at most so many others between the first and the last."""
    assert near(wanted, distance)(value) == is_near(wanted, distance, value)


def test_near_is_linear() -> None:
    """The time does not depend on how many words are asked, nor on how far apart they may be."""
    value = ["a", "b"] * 100_000
    start = time.process_time()
    assert not near(["a"] * 20 + ["c"], 50_000)(value)
    assert near(["a", "b", "b"], 1)(value)
    assert time.process_time() - start < 2


def test_near_can_be_used_again() -> None:
    """A test of one value leaves nothing behind for the next."""
    test = near(["white", "whale"], 0)
    assert [test(["whale", "white"]), test(["white"]), test(["whale"]), test(["white", "whale"])] == [True, False, False, True]
    assert not near([], 3)(["a"])


@pytest.mark.parametrize(
    ("text", "value", "found"),
    [
        ("Whale", "the White Whale", True),
        ("Whale", "the white whale", False),
        ("White Whale", "White-Whale", True),
        ("White Whale", "White big Whale", False),
        ("hale", "whale", False),
        ("résumé", "re\u0301sume\u0301", True),
        ("résumé", "resume", False),
        ("resume", "résumé", False),
        ("Straße", "Strasse", False),
        ("ﬁn", "fin", True),
        ("东京", "在东京", True),
        ("co\u00adop", "coop", True),
        ("C++", "the C language", True),
        ("-", "-", False),
        ("", "", False),
        ("x" * 200, "x" * 300, True),
    ],
)
def test_verbatim_words(text: str, value: str, found: bool) -> None:
    """Case and accents matter, forms of one character do not; words are adjacent."""
    assert verbatim(text)(value) is found


@given(st.text(max_size=12), st.text(max_size=12), st.text(max_size=12))
def test_verbatim_matches_definition(before: str, text: str, after: str) -> None:
    """The words of the text follow each other in the value, as NFKC has them."""

    def unfolded(text: str) -> list[str]:
        kinds = {"w": "{}", "c": " {} ", "": "", " ": " "}
        plain = unicodedata.normalize("NFKC", text)
        return "".join(kinds[kind(ord(char))].format(char) for char in plain).split()

    value, wanted = before + text + after, unfolded(text)
    found = unfolded(value)
    adjacent = any(found[at : at + len(wanted)] == wanted for at in range(len(found)))
    assert verbatim(text)(value) == (bool(wanted) and adjacent)


@given(st.text("aAéÉ ß-", min_size=1, max_size=12), st.text("aAéÉ ß-", max_size=12))
def test_verbatim_is_found_as_phrase(text: str, rest: str) -> None:
    """What is found verbatim is found folded, so that an engine can look for the phrase."""
    value = f"{rest} {text} {rest}"
    if verbatim(text)(value):
        assert f" {' '.join(words(text))} " in f" {' '.join(words(value))} "
