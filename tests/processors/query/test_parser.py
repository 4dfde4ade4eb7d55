from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.query import QueryError, parse, unparse
from processors.query.parser import MAX_DEPTH, MAX_LENGTH
from schemas.query import And, Every, Exists, Node, Not, Or, Phrase, Word

README = Path(__file__).parents[3] / "processors" / "query" / "README.md"

WHALE, SQUID, FIN = Word("whale"), Word("squid"), Word("fin")

CANONICAL: list[tuple[str, Node]] = [
    ("whale", WHALE),
    ("*", Every()),
    ("whale squid", And((WHALE, SQUID))),
    ("whale OR squid", Or((WHALE, SQUID))),
    ("NOT whale", Not(WHALE)),
    ("NOT NOT whale", Not(Not(WHALE))),
    ("(whale NOT squid) OR fin", Or((And((WHALE, Not(SQUID))), FIN))),
    ("(whale OR squid) fin", And((Or((WHALE, SQUID)), FIN))),
    ("whale (squid fin)", And((WHALE, And((SQUID, FIN))))),
    ("NOT (whale squid)", Not(And((WHALE, SQUID)))),
    ('"white whale"', Phrase("white whale")),
    ('"a \\"b\\" \\\\ c"', Phrase('a "b" \\ c')),
    ('"AND"', Phrase("AND")),
    ("and or not", And((Word("and"), Word("or"), Word("not")))),
    ("title:whale", Word("whale", "title")),
    ('title:"white whale"', Phrase("white whale", "title")),
    ("title:AND", Word("AND", "title")),
    ("title:-x", Word("-x", "title")),
    ("title:a:b", Word("a:b", "title")),
    ("author:*", Exists("author")),
    ('"re mark":*', Exists("re mark")),
    ('"re:\\"mark":x', Word("x", 're:"mark')),
    ('"-a":x', Word("x", "-a")),
    ("url:http://h/*?q=1", Word("http://h/*?q=1", "url")),
    ("http://h/a", Word("http://h/a")),
    ("std::sort", Word("std::sort")),
    (":x", Word(":x")),
    ("--help", Word("--help")),
    ("x-ray", Word("x-ray")),
    ("東京 été", And((Word("東京"), Word("été")))),
]
"""Query and tree as `unparse` writes it, for both directions."""

ALSO: list[tuple[str, Node]] = [
    ("whale NOT squid OR fin", Or((And((WHALE, Not(SQUID))), FIN))),
    ("  whale\t\n squid ", And((WHALE, SQUID))),
    ("whale AND squid fin", And((WHALE, SQUID, FIN))),
    ("-whale", Not(WHALE)),
    ("-(whale OR squid)", Not(Or((WHALE, SQUID)))),
    ('-"white whale" -title:x', And((Not(Phrase("white whale")), Not(Word("x", "title"))))),
    ("((whale))", WHALE),
    ("(whale)(squid)", And((WHALE, SQUID))),
    ('whale"squid"', And((WHALE, Phrase("squid")))),
    ("NOT(whale)", Not(WHALE)),
    ("whale OR(squid)", Or((WHALE, SQUID))),
    ("whale\u3000squid", And((WHALE, SQUID))),
]
"""Other spellings."""

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
    ("wh*le", "* is only allowed alone", 2),
    ("title:wh*", "* is only allowed alone", 8),
    ("whale !!! squid", "needs a letter or a digit", 6),
    ('whale "..."', "needs a letter or a digit", 6),
    ("title:&&", "needs a letter or a digit", 6),
    ('url:" "', "needs a letter or a digit", 4),
    ("x" * (MAX_LENGTH + 1), "longer than", MAX_LENGTH),
    ("(" * (MAX_DEPTH + 2) + "x", "nested parentheses", MAX_DEPTH + 1),
    ("NOT " * (MAX_DEPTH + 2) + "x", "nested parentheses", 4 * (MAX_DEPTH + 1)),
]
"""Query, part of the message, position."""


@pytest.mark.parametrize(("text", "tree"), CANONICAL)
def test_parse_and_unparse_are_inverse(text: str, tree: Node) -> None:
    """Each construct parses to one tree, and the tree is unparsed to the same text."""
    assert parse(text) == tree
    assert unparse(tree) == text


@pytest.mark.parametrize(("text", "tree"), ALSO)
def test_other_spellings_parse_to_same_tree(text: str, tree: Node) -> None:
    """Extra white space, minus signs and redundant parentheses parse to the intended tree."""
    assert parse(text) == tree
    assert parse(unparse(tree)) == tree


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


def test_empty_groups_are_unparsed() -> None:
    """Trees that no query parses to are unparsed to a query of the same meaning."""
    assert unparse(And(())) == "*"
    assert unparse(Or(())) == "NOT *"
    assert unparse(And((WHALE,))) == "whale"
    assert unparse(Word("a b", "title")) == 'title:"a b"'


def readme_rows(header: str) -> list[tuple[str, str]]:
    """Return the first two columns of the README's table whose header begins so."""
    table = README.read_text("utf-8").split(f"\n| {header} |")[1].split("\n\n")[0]
    rows = [line.removeprefix("| ").removesuffix(" |").split(" | ") for line in table.splitlines()[2:]]
    return [(row[0].strip("`"), row[1].strip("`")) for row in rows]


def test_readme_queries_parse() -> None:
    """Every query in the README's table parses."""
    queries = [query for query, _ in readme_rows("query")]
    assert len(queries) == 23
    for query in queries:
        assert parse(unparse(parse(query))) == parse(query)


def test_readme_mistakes_give_printed_message() -> None:
    """Every mistake in the README gives the message printed there."""
    rows = readme_rows("typed")
    assert len(rows) == 8
    for query, shown in rows:
        with pytest.raises(QueryError) as caught:
            parse(query)
        assert caught.value.line(query) == shown
