from __future__ import annotations

import math

import pytest

from processors.query import parse, unparse
from processors.query.bounds import FIRST, LAST
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
    Whole,
    Wildcard,
    Word,
)
from tests.processors.query.readme import readme_rows

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
    ('author:=="Herman Melville"', Whole("Herman Melville", "author")),
    ("author:==Melville", Whole("Melville", "author")),
    ("author:==wh*", Whole("wh*", "author")),
    ('author:=="a \\"b\\""', Whole('a "b"', "author")),
    ('"re mark":=="a b"', Whole("a b", "re mark")),
    ("NOT language:==en", Not(Whole("en", "language"))),
    ("==Whale", Verbatim("=Whale")),
    ("before:2024-03-05", MomentRange("", None, 1709596799)),
    ("after:2023", MomentRange("", 1704067200)),
    ("during:1995", MomentRange("", 788918400, 820454399)),
    ("during:2024-03-05", MomentRange("", 1709596800, 1709683199)),
    ("during:2024-01..2024-06", MomentRange("", 1704067200, 1719791999)),
    ("during:0001..", MomentRange("", FIRST)),
    ("during:..9999", MomentRange("", None, LAST)),
    ('"during":x', Word("x", "during")),
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
    ("during:2024-01..", MomentRange("", 1704067200)),
    ("during:..2024", MomentRange("", None, 1735689599)),
    ("During : 1995", MomentRange("", 788918400, 820454399)),
    ('during:"1995"', MomentRange("", 788918400, 820454399)),
    ('author : =="Herman Melville"', Whole("Herman Melville", "author")),
    ("/a , /, b//", And((Word("/a"), Word("b//")))),
    ("/a , // b/", And((Word("/a"), Word("b/")))),
    ("url:/a*b/ type:x~", And((Word("/a*b/", "url"), Word("x~", "type")))),
]
"""Other spellings."""


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


def test_empty_groups_are_unparsed() -> None:
    """Trees that no query parses to are unparsed to a query of the same meaning."""
    assert unparse(And(())) == "*"
    assert unparse(Or(())) == "NOT *"
    assert unparse(And((WHALE,))) == "whale"
    assert unparse(Word("a b", "title")) == 'title:"a b"'


def test_readme_queries_parse() -> None:
    """Every query in the README's table parses."""
    queries = [query for query, _ in readme_rows("query")]
    assert len(queries) == 41
    views = {"computing/unix": WHALE}
    for query in queries:
        assert parse(unparse(parse(query, views))) == parse(query, views)
