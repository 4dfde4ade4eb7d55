from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.query import QueryError, parse, parse_lenient, unparse
from processors.query.limits import MAX_PATTERNS, MAX_TERMS
from processors.query.parser import MAX_DEPTH, MAX_LENGTH
from schemas.query import (
    And,
    Every,
    Exists,
    Fuzzy,
    Inside,
    MomentRange,
    Most,
    Near,
    Node,
    Not,
    NumberRange,
    Or,
    Phrase,
    Regex,
    Site,
    Verbatim,
    Wildcard,
    Word,
)

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
    ("and or not", Most((Word("and"), Word("or"), Word("not")))),
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
    ("whale squid fin", Most((WHALE, SQUID, FIN))),
    ("whale AND squid AND fin", And((WHALE, SQUID, FIN))),
    ("whale squid title:fin", And((WHALE, SQUID, Word("fin", "title")))),
    ("whale squid fin NOT title:x", Most((WHALE, SQUID, FIN, Not(Word("x", "title"))))),
    ("(whale squid fin) OR fin", Or((Most((WHALE, SQUID, FIN)), FIN))),
    ("C++ C# .NET node.js", Most((Word("C++"), Word("C#"), Word(".NET"), Word("node.js")))),
    ("author.email:x", Word("x", "author.email")),
    ("=Whale", Verbatim("Whale")),
    ('="White Whale"', Verbatim("White Whale")),
    ("title:=Whale", Verbatim("Whale", "title")),
    ('title:="White Whale"', Verbatim("White Whale", "title")),
    ("wha*", Wildcard("wha*")),
    ("*ale", Wildcard("*ale")),
    ("wh?le", Wildcard("wh?le")),
    ("*hal*", Wildcard("*hal*")),
    ("wh*", Wildcard("wh*")),
    ("title:wha*", Wildcard("wha*", "title")),
    ("whale~", Fuzzy("whale", 1)),
    ("whale~2", Fuzzy("whale", 2)),
    ("leviath~3", Fuzzy("leviath", 3)),
    ("title:whale~2", Fuzzy("whale", 2, "title")),
    ("/wh[ai]le?s/", Regex("wh[ai]le?s")),
    ("title:/white +whale/", Regex("white +whale", "title")),
    (r"/a\/b\.c/", Regex(r"a/b\.c")),
    ("/usr/bin/file", Word("/usr/bin/file")),
    ("http://h/a?b=1", Word("http://h/a?b=1")),
    ("http://h/~2", Word("http://h/~2")),
    ('"white whale"~5', Near(("white", "whale"), 5)),
    ('title:"white whale"~0', Near(("white", "whale"), 0, "title")),
    ("pages:10..20", NumberRange("pages", 10, 20)),
    ("pages:10..", NumberRange("pages", 10)),
    ("pages:..20", NumberRange("pages", None, 20)),
    ("pages:-1.5..1e+22", NumberRange("pages", -1.5, 1e22)),
    ("date:2024-01..2024-06", MomentRange("date", 1704067200, 1719791999)),
    ("date:2024-03-05..", MomentRange("date", 1709596800)),
    ("date:2023..2024", MomentRange("date", 1672531200, 1735689599)),
    ("seen:2024-01..2025-12", MomentRange("seen", 1704067200, 1767225599)),
    ("seen:2024-03-05T10:00:00Z..2024-03-05T10:30:15Z", MomentRange("seen", 1709632800, 1709634615)),
    ("before:2024-03-05", MomentRange("", None, 1709596799)),
    ("after:2023", MomentRange("", 1704067200)),
    ("site:example.org", Site("example.org")),
    ("in:docs/bundle.zip", Inside("docs/bundle.zip")),
    ("in:file:///srv/docs/", Inside("file:///srv/docs/")),
    ('in:"my docs"', Inside("my docs")),
    ('"site":x', Word("x", "site")),
    ("title:a..b", Word("a..b", "title")),
    ("date:2024-03-05", Word("2024-03-05", "date")),
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
    ("whale !!! squid", And((WHALE, SQUID))),
    ("wings ?", Word("wings")),
    ("whale squid .", And((WHALE, SQUID))),
    ("whale -- squid / fin", Most((WHALE, SQUID, FIN))),
    ('"white whale"?', Phrase("white whale")),
    ("whale squid fin?", Most((WHALE, SQUID, FIN))),
    ("whale squid (fin?)", And((WHALE, SQUID, Wildcard("fin?")))),
    ("whale squid fin? x", Most((WHALE, SQUID, Wildcard("fin?"), Word("x")))),
    ("whale fin?", And((WHALE, Wildcard("fin?")))),
    ("Title : windsurfing", Word("windsurfing", "Title")),
    ('Title : "white whale" fin', And((Phrase("white whale", "Title"), FIN))),
    ("Site : example.org", Site("example.org")),
    ("IN:docs", Inside("docs")),
    ("a:b : c", And((Word("b", "a"), Word("c")))),
    ("whale : ", WHALE),
    ("whale : OR squid", Or((WHALE, SQUID))),
    ("White NEAR/5 whale", Near(("white", "whale"), 5)),
    ("white NEAR whale NEAR squid", Near(("white", "whale", "squid"), 10)),
    ("-white NEAR/05 whale fin", And((Not(Near(("white", "whale"), 5)), FIN))),
    ("whale~1", Fuzzy("whale")),
    ("wha\u200cle*", Wildcard("whale*")),
    ("pages:>10", NumberRange("pages", math.nextafter(10, 11))),
    ("pages:<10", NumberRange("pages", None, math.nextafter(10, 9))),
    ("file-size:>=1.5k", NumberRange("file-size", 1536)),
    ("file-size:<=2M", NumberRange("file-size", None, 2 * 1024**2)),
    ("file-size:1g..1T", NumberRange("file-size", 1024**3, 1024**4)),
    ("date:>2023", MomentRange("date", 1704067200)),
    ("date:>=2023", MomentRange("date", 1672531200)),
    ("date:<2023", MomentRange("date", None, 1672531199)),
    ("date:<=2023-02", MomentRange("date", None, 1677628799)),
    ("seen:2024-01..2025", MomentRange("seen", 1704067200, 1767225599)),
    ("before:2024-03-05T10:00:01Z", MomentRange("", None, 1709632800)),
    ('after:"2024-02-29"', MomentRange("", 1709251200)),
    ("/a , /, b//", And((Word("/a"), Word("b//")))),
    ("/a , // b/", And((Word("/a"), Word("b/")))),
    ("url:/a*b/ type:x~", And((Word("/a*b/", "url"), Word("x~", "type")))),
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


def readme_rows(header: str) -> list[tuple[str, str]]:
    """Return the first two columns of the README's table whose header begins so."""
    table = README.read_text("utf-8").split(f"\n| {header} |")[1].split("\n\n")[0]
    rows = [line.removeprefix("| ").removesuffix(" |").split(" | ") for line in table.splitlines()[2:]]
    return [(row[0].strip("`"), row[1].strip("`")) for row in rows]


def test_readme_queries_parse() -> None:
    """Every query in the README's table parses."""
    queries = [query for query, _ in readme_rows("query")]
    assert len(queries) == 38
    for query in queries:
        assert parse(unparse(parse(query))) == parse(query)


def test_readme_mistakes_give_printed_message() -> None:
    """Every mistake in the README gives the message printed there."""
    rows = readme_rows("typed")
    assert len(rows) == 15
    for query, shown in rows:
        with pytest.raises(QueryError) as caught:
            parse(query)
        assert caught.value.line(query) == shown
