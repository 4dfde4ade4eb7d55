from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable

import pytest
import tantivy
from hypothesis import assume, given
from hypothesis import strategies as st

from processors.query import regex_size
from processors.query.regex import MAX_TANTIVY, RegexError, parse, spread
from processors.query.regex_parser import MAX_LENGTH
from processors.query.regex_tree import changes
from processors.query.words import MAX_WORD, fold, spaced, words

Pair = tuple[str, str]
"""An expression in our grammar, and the same for Python's `re` on folded text."""

ATOMS: list[Pair] = [
    *[("a", "a"), ("B", "b"), ("c", "c"), ("é", "é"), ("e\u0301", "é"), ("1", "1"), ("ß", "(?:ss)"), (".", ".")],
    *[
        ("[ab]", "[ab]"),
        ("[A-C]", "[a-c]"),
        ("[^A]", "[^a]"),
        (r"[\d-]", "[0-9-]"),
        ("[a-cß]", "(?:[a-c]|ss)"),
        ("[^s-u]", "[^s-u]"),
    ],
    *[
        (r"\d", "[0-9]"),
        (r"\D", "[^0-9]"),
        (r"\w", r"\w"),
        (r"[\wx]", r"[\wx]"),
        (r"\S", r"\S"),
        ("[é-ê]", "[é-ê]"),
        ("[^\\D]", "[0-9]"),
    ],
]
SIGNS: list[Pair] = [
    (" ", " "),
    ("\t ", " "),
    (r"\s", " "),
    (r"\W", r"\W"),
    (r"\.", r"\."),
    ("-", "-"),
    ("[ ,]", "[ ,]"),
    ("東", "東"),
]
COUNTS = ["", "", "", "*", "+", "?", "{2}", "{0,2}", "{1,}", "{2,3}"]


def expressions(atoms: list[Pair], leaves: int = 8) -> st.SearchStrategy[Pair]:
    """Expressions of atoms, in both languages."""

    def several(inner: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
        group = inner.map(lambda pair: (f"({pair[0]})", f"(?:{pair[1]})"))
        counted = st.tuples(st.sampled_from(atoms) | group, st.sampled_from(COUNTS)).map(lambda p: (p[0][0] + p[1], p[0][1] + p[1]))
        rows = st.lists(counted, max_size=4).map(lambda row: ("".join(a for a, _ in row), "".join(b for _, b in row)))
        return st.lists(rows, min_size=1, max_size=3).map(lambda many: ("|".join(a for a, _ in many), "|".join(b for _, b in many)))

    return st.recursive(st.sampled_from(atoms), several, max_leaves=leaves).filter(lambda pair: 0 < len(pair[0]) <= MAX_LENGTH)


WORDS = st.text("aabbcés1x", min_size=1, max_size=8)
VALUES = st.text("aabcAéßs1x .-_,\t東", max_size=14)


@given(expressions(ATOMS), st.lists(WORDS, min_size=1, max_size=20))
def test_words_match_as_in_python(pair: Pair, tested: list[str]) -> None:
    """An expression of words gives the same verdicts as Python's, of whole words, one by one or all at once."""
    made = parse(pair[0])
    test = made.test()
    assert made.of_words
    verdicts = [re.fullmatch(pair[1], word, re.DOTALL) is not None for word in tested]
    assert [test(word) for word in tested] == verdicts
    assert made.test_spaced()("  ".join(["", *tested])) == any(verdicts)


@given(expressions(ATOMS + SIGNS), st.sampled_from(["", "^"]), st.sampled_from(["", "$"]), VALUES)
def test_values_match_as_in_python(pair: Pair, start: str, end: str, value: str) -> None:
    """An expression of values gives the same verdict as Python's, anywhere in the folded value."""
    text = f"({pair[0]})"
    made = parse(f"{start}{text}{end}" if start or end else f"({pair[0]}|\\^ )")
    text = " ".join(fold(value).split())
    found = re.search(f"{start and chr(92) + 'A'}(?:{pair[1]}){end and chr(92) + 'Z'}", text, re.DOTALL)
    assert not made.of_words
    assert made.test()(value) == (found is not None)


@given(expressions(ATOMS + SIGNS, 20), st.lists(VALUES, min_size=1, max_size=10))
def test_every_match_has_required_runs(pair: Pair, values: list[str]) -> None:
    """What matches has every required run within a word."""
    made = parse(pair[0])
    tested = [word for value in values for word in words(value)] if made.of_words else values
    for text in filter(made.test(), tested):
        found = words(text)
        assert all(any(run in word for word in found) for run in made.required())


@pytest.mark.parametrize(
    ("text", "of_words"),
    [
        ("wh[ai]le?s", True),
        (r"\w+[^a]\S\D", True),
        ("white +whale", False),
        (r"white\s", False),
        (r"a\Wb", False),
        (r"a[^\w]b", False),
        ("a[-_ ]b", False),
        ("[a-z-]+", True),
        ("^whale", False),
        ("whale$|b", False),
        ("foo-bar", False),
        (r"c\+\+", False),
        ("東京", False),
        ("co\u00adop", True),
    ],
)
def test_blanks_and_signs_make_expression_of_values(text: str, of_words: bool) -> None:
    """What no word has is looked for in values: blanks, signs, ends, characters that are words."""
    made = parse(text)
    assert made.of_words is of_words
    assert of_words or (made.lucene() is None and made.tantivy() is None)


@pytest.mark.parametrize(
    ("text", "value", "found"),
    [
        ("^white +whale$", "  White\n\t WHALE ", True),
        ("^whale", "white whale", False),
        (r"node\.js", "about Node.js", True),
        ("straße$", "Große STRASSE", True),
        ("^resume", "résumé", False),
        ("^cafe\u0301", "CAFÉ", True),
        ("co\u00adop$", "co\u00adop", True),
        ("^coop", "co\u00adop", True),
        ("東京", "新東京駅", True),
        ("^$", " \n", True),
        ("^.$", "\ud800", True),
        ("[Å] ", "Å 1", True),
        ("[Α-Ω]$", "ω", True),
        (r"^\d", "１", True),
        ("x{2}$", "x" * 200, True),
        ("y$", "x" * 200 + "y", False),
        ("x -y$", "x" * 200 + " -y", True),
    ],
)
def test_values_are_folded(text: str, value: str, found: bool) -> None:
    """Values are folded, blanks are single, invisible characters are left out, and long words are cut as in the index."""
    assert parse(text).test()(value) is found


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("wh[ai]le?s", ("wh",)),
        ("white +whale", ("white", "whale")),
        ("(white|black)whales?", ("whale",)),
        ("whale|ship.*yard", ()),
        ("(whale|ship)s?", ()),
        ("whale|.s", ()),
        ("a.b", ()),
        ("a[b]c", ("abc",)),
        ("(ab){2}c", ("ababc",)),
        ("(ab)+c", ("ab", "abc")),
        ("foo-bar", ("foo", "bar")),
        ("a-b", ()),
        ("東京", ("東", "京")),
        ("(whaler|whales) x", ("whale",)),
        ("x?(whale)?", ()),
        ("WHALE{3}", ("whaleee",)),
    ],
)
def test_required_runs(text: str, runs: tuple[str, ...]) -> None:
    """The longest runs of letters within words are found, in order."""
    made = parse(text)
    kept = [run for run in runs if not any(run != other and run in other for other in runs)]
    assert list(made.required()) == kept


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ("", 0, "is empty"),
        ("a" * 201, 200, "longer than 200"),
        ("a\ud800", 1, "no character"),
        ("a**", 2, "follows another repetition"),
        ("a+{2}", 2, "follows another repetition"),
        ("ab+?", 3, "leave out the ?"),
        ("ab??", 3, "leave out the ?"),
        ("ab*+", 3, "follows another repetition"),
        ("a{21}", 1, "limited to 20"),
        ("a{3,21}", 1, "limited to 20"),
        ("a{3,2}", 1, "greater than"),
        ("a{,2}", 1, "numbers are expected"),
        ("a{", 1, "numbers are expected"),
        ("a|*", 2, "nothing before *"),
        ("^*", 1, "nothing before *"),
        ("(+a)", 1, "nothing before +"),
        ("b(a", 1, "never closed"),
        ("ba)", 2, "no opening one"),
        ("a[b", 1, "never closed"),
        ("a[]", 1, "no character is in this class"),
        ("a[^\\D\\d]", 1, "no character is in this class"),
        ("a[z-b]", 2, "is empty: b comes before z"),
        ("[a-\\d]", 3, "a range ends with a character"),
        ("[[:alpha:]]", 1, "write [a-z]"),
        ("a[\\W]", 2, "write [^\\w]"),
        ("a^b", 1, "only at an end"),
        ("a$b", 1, "only at the end"),
        ("(^a)", 1, "only at an end"),
        ("(a$)", 2, "only at an end"),
        ("a\\", 1, "missing after the backslash"),
        ("[a\\", 2, "missing after the backslash"),
        ("a(?=b)", 1, "look-around"),
        ("a(?!b)", 1, "look-around"),
        ("a(?<=b)", 1, "look-around"),
        ("a(?<!b)", 1, "look-around"),
        ("(a)\\1", 3, "back references"),
        ("(?P=a)", 0, "back references"),
        ("(?P<a>b)", 0, "names of groups"),
        ("a(?i)", 1, "case never matters"),
        ("a\\b", 1, "a word is matched as a whole"),
        ("\\pL", 0, "write the letters"),
        ("\\x41", 0, "write the character"),
        ("\\q", 0, "only signs"),
        ("b((a{20}){20}){3}", 1, "multiply to more than 1,000"),
        ("^" + "\\w{20}" * 30, 0, "too large"),
    ],
)
def test_mistakes_have_positions(text: str, position: int, message: str) -> None:
    """Each mistake has its position, and a message that says what to do."""
    with pytest.raises(RegexError, match=re.escape(message)) as raised:
        parse(text)
    assert raised.value.position == position
    assert isinstance(raised.value, ValueError)


@given(st.text("ab*+?{}()[]|^$\\.,2-dwsW: é\u0301東", max_size=30) | st.text(max_size=30))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    """Any text gives an expression whose parts all work, or a RegexError within the text."""
    try:
        made = parse(text)
    except RegexError as error:
        position = error.position
    else:
        made.test()(text)
        assert made.of_words or (made.lucene() is None and made.tantivy() is None)
        assert all(len(run) > 1 or not run.isascii() for run in made.required())
        position = 0
    assert 0 <= position <= len(text)


@pytest.mark.parametrize("text", ["(.*a){20}b", "(a*)*b", "(a|aa)+b", "(a?){20}a{20}", ".*" * 100, "^(.*,){11}p", r"(\w+\s?)+-$"])
def test_time_is_linear(text: str) -> None:
    """Expressions that take others exponential time test a long text at once."""
    start = time.process_time()
    made = parse(text)
    made.lucene(), made.tantivy(), made.required()
    made.test()("a" * 100_000)
    assert time.process_time() - start < 2


def test_folding_ranges_are_complete() -> None:
    """The table has every character that folds to another single one."""
    alone = {code: fold(chr(code)) for code in range(sys.maxunicode + 1)}
    changed = {code: ord(text) for code, text in alone.items() if len(text) == 1 and text != chr(code)}
    assert dict(zip(*changes(), strict=True)) == changed


@pytest.mark.parametrize(
    ("text", "found", "missing"),
    [
        ("[A-Z]", "az", "1é"),
        ("[A-z]", "az", "1é"),
        ("[^A-Z]", "1éñ", "ak"),
        ("[^\u0080-\uffff]", "aks1", "éк"),
        ("[Ａ-Ｚ]", "az", "1"),
        ("[À-Þ]", "àþ", "aß"),
        ("[А-Я]", "ая", "ё"),
        ("[Ā-ſ]", "āž", "sa"),
        ("[\u212a]", "k", "a"),
    ],
)
def test_classes_are_folded(text: str, found: str, missing: str) -> None:
    """A class has the lower case of its letters; a range outside ASCII has nothing of ASCII, unless all of it moves there."""
    test = parse(text).test()
    assert all(map(test, found))
    assert not any(map(test, missing))


@given(st.text(st.characters(max_codepoint=0x24F) | st.sampled_from("a\u00ad\u0301東 \t"), max_size=20), st.booleans())
def test_spread_value_has_same_words(text: str, long: bool) -> None:
    """A value as it is tested has the same words as the index, also where they are long."""
    value = text + "a" * (MAX_WORD - 2 if long else 0) + text
    assert words(spread(value)) == words(value)
    assert spread(value).isascii() or spaced(spread(value)) == spaced(value)


SCHEMA = tantivy.SchemaBuilder().add_text_field("word", stored=True, tokenizer_name="raw", index_option="basic").build()


def search(terms: list[str]) -> Callable[[str], set[str]]:
    """Return a search of tantivy for a pattern among terms."""
    index = tantivy.Index(SCHEMA)
    writer = index.writer(15_000_000, 1)
    for term in terms:
        writer.add_document(tantivy.Document(word=term))
    writer.commit()
    index.reload()
    searcher = index.searcher()

    def run(pattern: str) -> set[str]:
        hits = searcher.search(tantivy.Query.regex_query(SCHEMA, "word", pattern), 10_000).hits
        return {str(searcher.doc(address)["word"][0]) for _, address in hits}

    return run


TERMS = sorted(
    {word for text in ("a b c é s ss 1 x ab ba aé bss", "abc abab aab1 xéé csss ssab a1b2 éa1s bbbb") for word in text.split()}
    | {a + b + c for a in "abé1" for b in ("", "a", "ss", "é") for c in ("", "b", "1", "\U00010428", "ー")}
)
RUN = search(["p:" + term for term in TERMS])


@given(expressions(ATOMS))
def test_tantivy_finds_same_words(pair: Pair) -> None:
    """The engine tantivy finds what the predicate finds, with a prefix before each term."""
    made = parse(pair[0])
    written = made.tantivy()
    assume(written is not None)
    assert RUN(f"p:{written}") == {f"p:{term}" for term in TERMS if made.test()(term)}


MANY = [
    "[a-zà-ÿ]",
    "[^a]",
    "[一三五七九]",
    ".*",
    ".{5}",
    "[a-я]{3}",
    "(.a|.b)*",
    "(ab|ac|abd)",
    "[^b-d]?",
    "(a?b?c?)+",
    ".?",
    "[Ā-ſ]",
]


@given(
    st.lists(st.sampled_from(MANY + [ours for ours, _ in ATOMS]), min_size=1, max_size=12),
    st.sampled_from(["", "{3}", "*", "{0,6}"]),
)
def test_tantivy_refuses_nothing_that_is_written(parts: list[str], count: str) -> None:
    """The estimate of states is an upper bound: what is written for tantivy is accepted, with a long prefix, too."""
    written = parse(f"({''.join(parts)}){count}").tantivy()
    if written is not None:
        tantivy.Query.regex_query(SCHEMA, "word", "p" * 199 + written)


def test_estimate_is_not_far_off() -> None:
    """Expressions that fill tantivy's limit by half or more are written, and those beyond it are not."""
    for text in (".{20}", ".*a.{4}", "(.{20}){2}", "(a{20}){20}", ".*whale.*ship.*", r"\w{3,5}", "([a-z]{20}){20}"):
        assert parse(text).tantivy() is not None, text
    for text in (".*a.{8}", "(.{20}){3}"):
        assert parse(text).tantivy() is None, text
    assert MAX_TANTIVY + 200 == regex_size.MAX_STATES


def test_texts_for_engines() -> None:
    """Signs of an engine's own syntax are escaped; alternatives are in a group, so that text can be put before them."""
    assert parse("whale|ship").lucene() == "(whale|ship)"
    assert parse("whale|ship").tantivy() == "(?:whale|ship)"
    assert parse(r'[a#@&<>~"\]\\^-]+').lucene() == r"[\"\#\&\-\<\>\@\\\]\^a\~]+"
    assert parse(r"[a&&b\-\-c~~]").tantivy() == r"[\x{26}\x{2d}a-c\x{7e}]"
    assert parse("[^ -/:-~]").lucene() == r"[^\ \!\"\#\$\%\&\'\(\)\*\+\,\-\.\/\:\;\<\=\>\?\@A-z\{\|\}\~]"
    assert parse("a.*").tantivy() == "(?s:a.*)"
    assert parse("(|a)b").lucene() == "(()|a)b"
    assert parse(r"\d{2,3}\w").lucene() == "[0-9]{2,3}."
    assert parse(r"\w").exact_lucene
    assert parse(r"\w").exact_tantivy
