from __future__ import annotations

import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.query import QueryError, parse, parse_glimpse, unparse
from processors.query.limits import MAX_DEPTH, MAX_LENGTH, MAX_PATTERNS, MAX_TERMS
from schemas.query import And, Fuzzy, Node, Not, Or, Phrase, Regex, Verbatim, Wildcard

POLITICAL, COMPUTER, SCIENCE = Wildcard("*political*"), Wildcard("*computer*"), Wildcard("*science*")

PATTERNS: list[tuple[str, Node]] = [
    ("science", SCIENCE),
    (" science ", SCIENCE),
    ("computer;science", And((COMPUTER, SCIENCE))),
    ("political,computer", Or((POLITICAL, COMPUTER))),
    ("{political,computer};science", And((Or((POLITICAL, COMPUTER)), SCIENCE))),
    ("{political , computer} ; science", And((Or((POLITICAL, COMPUTER)), SCIENCE))),
    ("{{science}}", SCIENCE),
    ("fame;~glory", And((Wildcard("*fame*"), Not(Wildcard("*glory*"))))),
    ("-W ~{computer;science}", Not(And((COMPUTER, SCIENCE)))),
    ("#whale#", Wildcard("*whale*")),
    ("com#ter", Wildcard("*com*ter*")),
    ("comp.ter", Wildcard("*comp?ter*")),
    ("-w comp.ter", Wildcard("comp?ter")),
    ("-w wha#", Wildcard("wha*")),
    ("-w car", Verbatim("car")),
    ("-w -i car", Phrase("car")),
    ("-iw political science", Phrase("political science")),
    ("political science", Regex("political science")),
    ("x-ray", Regex("x-ray")),
    ("node\\.js", Regex("node\\.js")),
    ("t.j@#uk", Regex("t.j@.*uk")),
    ("\\ whale", Regex("[ ]whale")),
    ("^glimpse", Regex("^glimpse")),
    ("\\.c$", Regex("\\.c$")),
    ("wh[ai]le", Regex(".*wh[ai]le.*")),
    ("-w wh[^i-n]le", Regex("wh[^i-n]le")),
    ("whale|squid", Regex(".*(whale|squid).*")),
    ("abc.*xyz", Regex(".*abc.*xyz.*")),
    ("a\\;b\\,c\\{d", Regex("a;b,c\\{d")),
    ("white wh[ai]le", Regex("white wh[ai]le")),
    ("-1 whale", Or((Wildcard("*whale*"), Fuzzy("whale", 1)))),
    ("-2 -w -i Anestesiology", Fuzzy("Anestesiology", 2)),
    ("-w2 whale", Fuzzy("whale", 2)),
    ("-1 <whale>", Wildcard("*whale*")),
    ("<wha>le", Wildcard("*whale*")),
    ("-w -1 <wha>l", Regex("wha(.?l|.?|l.?)")),
    ("TITLE=whale", Wildcard("*whale*", "TITLE")),
    ("TITLE={political,computer}", Or((Wildcard("*political*", "TITLE"), Wildcard("*computer*", "TITLE")))),
    ("science;type=Directory-Listing", And((SCIENCE, Phrase("Directory-Listing", "type")))),
    ("Title : windsurfing", Wildcard("*windsurfing*", "Title")),
    ("-w Author: karl mustermann", Verbatim("karl mustermann", "Author")),
    ("http://h/a", Regex("http://h/a")),
    ("\\-x-ray", Regex("-x-ray")),
    ("-w E\\=mc", Verbatim("E=mc")),
]
"""Pattern and tree."""

MISTAKES: list[tuple[str, str, int]] = [
    ("", "a pattern is missing", 0),
    ("-w", "a pattern is missing", 2),
    ("whale;", "a pattern is missing", 6),
    ("whale;;squid", "a pattern is missing", 6),
    ("{}", "a pattern is missing", 1),
    ("{whale", "never closed", 0),
    ("whale}", "no opening {", 5),
    ("{whale}squid", "; or , is expected", 7),
    ("aa;bb,cc", "(did you mean {a,b};c?)", 5),
    ("whale;squid,fin", "(did you mean {a,b};c?)", 11),
    ("-4 whale", "1 to 3 errors (did you mean -3?)", 1),
    ("-F html needle", "the options are -i, -w, -W and -1 to -3", 1),
    ("- whale", "an option is missing", 0),
    ("w", "at least two letters or digits", 0),
    ("..", "at least two letters or digits", 0),
    ("^$", "at least two letters or digits", 0),
    ("-w !!", "needs a letter or a digit", 3),
    ("[abc", "[ is never closed", 0),
    ("<whale", "< is never closed", 0),
    ("whale>", "> has no partner", 5),
    ("<<whale>>", "< has no partner", 1),
    ("whale\\", "a character is missing", 5),
    ("-1 wh", "at least 3 letters", 3),
    ("-2 wh#le", "errors go with letters only", 3),
    ("-1 white whale", "only a single word can have errors", 3),
    ("-3 <a>bcdefghijkl", "too many errors", 3),
    ("-w x[-]ray y", "-w takes words", 3),
    ("(whale", "", 0),
    ("type=HT#", "compared whole", 5),
    ("-1 type=HTML", "compared whole", 8),
    ("x" * (MAX_LENGTH + 1), "longer than", MAX_LENGTH),
    ("{" * (MAX_DEPTH + 2), "nested", MAX_DEPTH + 1),
    ("xx," * MAX_PATTERNS + "xx", "more than 20", 3 * MAX_PATTERNS),
    ("type=x," * MAX_TERMS + "type=x", "more than 100", 7 * MAX_TERMS + 5),
]
"""Pattern, part of the message, position."""


@pytest.mark.parametrize(("text", "tree"), PATTERNS)
def test_pattern_of_glimpse_is_read_as_tree(text: str, tree: Node) -> None:
    """Each construct of Glimpse's manual has its tree, which can be written in the query language."""
    assert parse_glimpse(text) == tree
    assert parse(unparse(tree)) == tree


@pytest.mark.parametrize(("text", "message", "position"), MISTAKES)
def test_mistake_in_pattern_has_message_and_position(text: str, message: str, position: int) -> None:
    """A mistake is a QueryError with its cause and position, on one line."""
    with pytest.raises(QueryError) as caught:
        parse_glimpse(text)
    assert message in caught.value.message
    assert caught.value.position == position
    assert caught.value.line(text).isprintable()


def test_case_is_compared_with_whole_words_unless_told_otherwise() -> None:
    """Brokers that ignore case read -w as a phrase."""
    assert parse_glimpse("-w Whale") == Verbatim("Whale")
    assert parse_glimpse("-w Whale", case=False) == Phrase("Whale")


def distance(one: str, other: str) -> int:
    """Return Levenshtein's distance."""
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one, 1):
        before, row[0] = row[0], at
        for place, sign in enumerate(other, 1):
            before, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, before + (letter != sign))
    return row[-1]


@pytest.mark.parametrize("errors", [1, 2])
def test_exact_part_has_no_errors_and_the_rest_has_all(errors: int) -> None:
    """`<a>bc` finds, of all words over a few letters, those of `a` and a rest with so many errors."""
    tree = parse_glimpse(f"-w -{errors} <a>bc")
    assert isinstance(tree, Regex)
    expression = re.compile(tree.text)
    for length in range(6):
        for word in map("".join, product("abx", repeat=length)):
            expected = word.startswith("a") and distance(word[1:], "bc") <= errors
            assert bool(expression.fullmatch(word)) == expected, word


FRAGMENTS = (
    *("whale", "a", "x-ray", "#", ".", "*", "|", "(", ")", "[a-z]", "[", "]", "^", "$", "<", ">", "{", "}", ";", ",", "~", "\\"),
    *("TITLE=", "type=", "Title : ", "-w ", "-i ", "-1 ", "-2 ", "-", " ", "é", "東", "\n", "\ud800"),
)


def read(text: str) -> tuple[Node, QueryError | None]:
    """Return the tree of a pattern, or the mistake in it."""
    try:
        return parse_glimpse(text), None
    except QueryError as error:
        return Or(()), error


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=9).map("".join) | st.text(max_size=20))
def test_any_pattern_gives_tree_or_query_error(text: str) -> None:
    """Any text gives a QueryError within the text, or a tree that can be written in the query language."""
    tree, mistake = read(text)
    if mistake:
        assert 0 <= mistake.position <= len(text)
        assert mistake.line(text).isprintable()
    else:
        assert parse(unparse(tree)) == tree
