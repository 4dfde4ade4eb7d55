from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.query import QueryError, parse, parse_lenient, unparse
from processors.query.limits import MAX_PATTERNS, MAX_TERMS, cost
from processors.query.parser import MAX_DEPTH, MAX_LENGTH
from schemas.query import And, Every, Most, Node, Or, Phrase, Wildcard, Word
from tests.processors.query.readme import readme_rows

WHALE, SQUID = Word("whale"), Word("squid")

MISTAKES: list[tuple[str, str, int]] = [
    ("", "empty", 0),
    ("  \n", "empty", 0),
    ("AND", "before AND", 0),
    ("whale AND", "after AND", 9),
    ("whale AND OR squid", "before OR", 10),
    ("whale OR OR squid", "before OR", 9),
    ("whale OR )", "after OR", 9),
    ("NOT", "after NOT", 3),
    ("-", "after -", 1),
    ("whale - squid", "right after -", 7),
    ("()", "missing", 1),
    ("(whale", "never closed", 0),
    ("whale (squid (fin)", "never closed", 6),
    ("whale) squid", "no opening one", 5),
    ('whale "squid', "quote is never closed", 6),
    ('title:"x', "quote is never closed", 6),
    ("title:", "right after title:", 6),
    ("title: x", "right after title:", 6),
    ("title:(x)", "right after title:", 6),
    ('"a b"://x', "right after a b:", 6),
    ('"":x', "a name is missing", 0),
    ('whale "..."', "needs a letter or a digit", 6),
    ("title:&&", "needs a letter or a digit", 6),
    ('url:" "', "needs a letter or a digit", 4),
    ("x" * (MAX_LENGTH + 1), "longer than", MAX_LENGTH),
    ("(" * (MAX_DEPTH + 2) + "x", "nested parentheses", MAX_DEPTH + 1),
    ("NOT " * (MAX_DEPTH + 2) + "x", "nested parentheses", 4 * (MAX_DEPTH + 1)),
    ("x " * (MAX_TERMS + 1), "more than 100 search terms", 2 * MAX_TERMS),
    ("xx* " * (MAX_PATTERNS + 1), "more than 20 terms with *", 4 * MAX_PATTERNS),
    ("?", "needs a letter or a digit", 0),
    ("whale OR ?", "needs a letter or a digit", 9),
    ("whale ( . )", "needs a letter or a digit", 8),
    ('!"whale"', "needs a letter or a digit", 0),
    ('"whale', 'never closed (did you mean "whale"?)', 0),
    ("(whale", "never closed (did you mean (whale)?)", 0),
    ("title: whale", "(did you mean title:whale?)", 6),
    ("w*", 'at least two letters or digits are needed beside * and ? (did you mean "w"?)', 0),
    ("**", "at least two letters or digits are needed", 0),
    ("title:?a", "at least two letters or digits are needed", 6),
    ("x-ra*", "within one word (did you mean ra*?)", 4),
    ("wha*,", "within one word (did you mean wha*?)", 3),
    ("東京*", "within one word", 2),
    ("whale~9", "1 to 3 errors (did you mean whale~2?)", 0),
    ("whale~0", "1 to 3 errors", 0),
    ("whale~3", "at least 7 letters (did you mean whale~2?)", 0),
    ("ab~", 'for 1 error a word needs at least 3 letters (did you mean "ab"?)', 0),
    ("title:x-ray~2", 'only a single word can have errors (did you mean "x-ray"?)', 6),
    ("whale /wh[ai/", "never closed", 9),
    ("=title:Whale", "(did you mean title:=Whale?)", 0),
    ("=wh*", '(did you mean ="wh*"?)', 3),
    ('="!"', "needs a letter or a digit", 1),
    ('url:="x"', "compared whole", 4),
    ("NEAR whale", "before it", 0),
    ("white NEAR", "after it", 10),
    ("white NEAR/5 AND x", "after it", 13),
    ('"white" NEAR whale', "before it", 8),
    ("white NEAR x-ray", "single words", 11),
    ("title:white NEAR whale", "single words", 6),
    ("a NEAR/3 b NEAR/4 c", "one distance (did you mean NEAR/3?)", 11),
    ("white NEAR/x whale", '(did you mean "white whale"~10?)', 0),
    ('"white whale"~', '(did you mean "white whale"~10?)', 0),
    ('"white whale"~9999', "at most 1,000 words", 0),
    ('"whale"~5', 'at least two words (did you mean "whale"?)', 0),
    ('url:"a b"~5', "compared whole", 4),
    ("pages:20..10", "(did you mean pages:10..20?)", 6),
    ("pages:10..x", "a number is written", 10),
    ("pages:>", "missing after >", 7),
    ("pages:>10MB", "(did you mean 10M?)", 7),
    ("pages:>1e999", "too large", 7),
    ("pages:1,000..", "(did you mean 1000?)", 6),
    ("date:2024-13", "no month 13", 5),
    ("date:2024-02-30", "no day 30 in 2024-02: it has 29 days", 5),
    ("date:2024-3", "(did you mean 2024-03?)", 5),
    ("date:2024-06..2024-01", "(did you mean date:2024-01..2024-06?)", 5),
    ("date:>0000", "no year 0", 6),
    ("date:2024-01-01T24:00..", "hours are 00 to 23", 5),
    ("before:2024-Mar", "(did you mean 2024-03?)", 7),
    ("before:2024-Foo", "no month Foo", 7),
    ("before:20240305", "(did you mean 2024-03-05?)", 7),
    ("after:5.3.2024", "(did you mean 2024-03-05?)", 6),
    ("after:9999", "years 0001 to 9999", 6),
    ("before:", "missing after before", 7),
    ("during:", "missing after during", 7),
    ("during:..", "a moment is written", 7),
    ("during:1995..x", "a moment is written", 13),
    ("during:2024-13", "no month 13", 7),
    ("during:2024-01..2024-02-30", "no day 30 in 2024-02: it has 29 days", 16),
    ("during:2024-06..2024-01", "(did you mean during:2024-01..2024-06?)", 7),
    ("during:Mar-2024", "a moment is written", 7),
    ("during:>2023", "a moment is written", 7),
    ('=="Herman Melville"', 'the name of an attribute before it (did you mean ="Herman Melville"?)', 0),
    ('author:==""', "the value is missing after ==", 9),
    ('author:==" "', "the value is missing after ==", 9),
    ("a NEAR " * 20 + "a", "at most 20 words can be near each other", 0),
    ("author:== Melville", "the value is missing after ==", 9),
    ('type:=="HTML"', "compared whole, without =", 5),
    ("site:http://example.org/x", "(did you mean site:example.org?)", 5),
    ("site:*.example.org", "(did you mean site:example.org?)", 5),
    ("in:docs/*", "(did you mean in:docs/?)", 3),
    ('in:""', "is missing", 3),
]
"""Query, part of the message, position."""

LENIENT: list[tuple[str, Node, list[str]]] = [
    ("whale squid", And((WHALE, SQUID)), []),
    ("", Or(()), []),
    ("?", Or(()), ["a search term needs a letter or a digit"]),
    ("whale w* squid", And((WHALE, SQUID)), ["'w*': at least two letters"]),
    ("whale AND OR squid", Or((WHALE, SQUID)), ["before OR"]),
    ("NOT w*", Or(()), ["'w*'"]),
    ("(whale (squid", And((WHALE, SQUID)), ["'(': this parenthesis is never closed"]),
    ("whale)) squid", And((WHALE, SQUID)), ["')': this parenthesis has no opening one"]),
    ('whale "squid', And((WHALE, Phrase("squid"))), ["'\"': this quote is never closed"]),
    ("title: whale", WHALE, ["'title:': right after title"]),
    ("whale date:2024-13 OR pages:20..10", WHALE, ["'date:2024-13'", "'pages:20..10'"]),
    ("a NEAR/5 (whale)", WHALE, ["'a NEAR/5'"]),
    ("/a(b/ whale", WHALE, ["'/a(b/'"]),
    ("(" * 60 + "x y", Or(()), ["nested"]),
    ("xx* " * 30 + "whale", And((*[Wildcard("xx*")] * 20, WHALE)), ["'xx*': more than 20"]),
    ("x " * 200, Most((Word("x"),) * MAX_TERMS), ["more than 100"]),
    ("x" * 3990 + " " * 20 + "y", Word("x" * 3990), ["what follows the first 4,000 characters"]),
]
"""Query, tree, beginnings of the messages about what was left out."""


@pytest.mark.parametrize(("text", "message", "position"), MISTAKES)
def test_mistake_has_message_and_position(text: str, message: str, position: int) -> None:
    """A mistake is a QueryError with its cause and position, on one line with a caret there."""
    with pytest.raises(QueryError, match=re.escape(message)) as caught:
        parse(text)
    assert caught.value.position == position
    line = caught.value.line(text)
    assert line.isprintable()
    assert len(line) < 200
    if text.isprintable():
        assert line.count("^") == 1
        assert line.split("^")[1].startswith(text[position : position + 20])


@given(st.text(st.sampled_from('aB1 "\\():*-\n東AND OR NOT://é\ud800') | st.characters(), max_size=30))
def test_any_text_parses_or_raises_query_error(text: str) -> None:
    """Any text gives a QueryError within the text, or a tree that is unparsed and parsed again unchanged."""
    tree, mistake = read(text)
    if mistake:
        assert 0 <= mistake.position <= len(text)
        assert mistake.line(text).isprintable()
    else:
        assert parse(unparse(tree)) == tree


def read(text: str) -> tuple[Node, QueryError | None]:
    """Return the tree of a query, or the mistake in it."""
    try:
        return parse(text), None
    except QueryError as error:
        return Every(), error


@pytest.mark.parametrize(("text", "tree", "messages"), LENIENT)
def test_lenient_parser_leaves_out_what_it_cannot_read(text: str, tree: Node, messages: list[str]) -> None:
    """The rest of a query with mistakes is read, and each part that is left out has one message on one line."""
    found, left_out = parse_lenient(text)
    assert found == tree
    assert len(left_out) == len(messages)
    for message, line in zip(messages, left_out, strict=True):
        assert message in line
        assert line.isprintable()


FRAGMENTS = (
    *(
        "whale",
        "a",
        "東",
        "é",
        "x-ray",
        "1",
        "2024-03",
        "2024",
        "..",
        "10..20",
        ">",
        "<=",
        "1M",
        "k",
        "*",
        "?",
        "~",
        "~2",
        "=",
        "/",
        "//",
    ),
    *(
        '"',
        '"a b"',
        "\\",
        "(",
        ")",
        ":",
        "::",
        ":/",
        "-",
        "--",
        ".",
        ",",
        "!",
        "[a]",
        "|",
        "AND",
        "OR",
        "NOT",
        "NEAR",
        "NEAR/5",
        "AND?",
    ),
    *(
        "title:",
        "date:",
        "url:",
        "site:",
        "in:",
        "before:",
        "after:",
        "terms:",
        "Title",
        " : ",
        "\n",
        "\u200c",
        "\u0301",
        "？",
        "T10:00Z",
    ),
)
QUERIES = st.lists(st.sampled_from(FRAGMENTS) | st.just(" ") | st.characters(), max_size=14).map("".join) | st.lists(
    st.sampled_from(FRAGMENTS), max_size=10
).map(" ".join)


@given(QUERIES)
def test_any_query_parses_or_raises_and_lenient_parser_never_raises(text: str) -> None:
    """A tree that any text has is unparsed and parsed again unchanged; the lenient parser gives it, too, or a part of the text."""
    tree, mistake = read(text)
    found, left_out = parse_lenient(text)
    if mistake:
        assert 0 <= mistake.position <= len(text)
        assert mistake.line(text).isprintable()
        assert left_out or not text.strip()
        assert all(line.isprintable() for line in left_out)
    else:
        assert parse(unparse(tree)) == tree
        assert (found, left_out) == (tree, ())
    if found != Or(()):
        assert parse(unparse(found)) == found


def test_readme_mistakes_give_printed_message() -> None:
    """Every mistake in the README gives the message printed there."""
    rows = readme_rows("typed")
    assert len(rows) == 17
    for query, shown in rows:
        with pytest.raises(QueryError) as caught:
            parse(query)
        assert caught.value.line(query) == shown


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("whale", 1), ("old white whale", 3), ('"white whale" NOT type:PDF', 2), ("whal*", 10), ("*hale", 20), ("whale~", 5),
        ("leviathan~3", 60), ("/wh[ai]le/", 20), ("=Whale white NEAR whale", 20), ("(a OR b) -(c krill~)", 8),
        ("date:2024..2025", 1),
    ],
)  # fmt: skip
def test_cost_of_a_query_grows_with_its_patterns(query: str, expected: int) -> None:
    """A plain word costs 1, and each part of a query adds its own cost."""
    assert cost(parse(query)) == expected
