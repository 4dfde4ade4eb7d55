"""Fast paths give the result of the slow paths: text of pages, and languages."""

import random
from collections import Counter
from collections.abc import Callable

import pytest
from py3langid import langid  # type: ignore[import-untyped]
from selectolax.lexbor import LexborHTMLParser

from processors.essence.summarize import Found, _general
from processors.essence.summarize._general import english, keywords, language, terms
from processors.essence.summarize._language import identifier, span
from processors.essence.summarize.pages import _page
from processors.essence.summarize.pages._page import main_text
from processors.essence.summarize.pages.html import _resolver, resolve

TAGS = (
    *(
        "p",
        "div",
        "br",
        "li",
        "ul",
        "h1",
        "pre",
        "table",
        "tr",
        "td",
        "caption",
        "select",
        "option",
        "img",
        "a",
        "b",
        "span",
        "code",
        "x-y",
    ),
    *(
        "script",
        "style",
        "noscript",
        "template",
        "svg",
        "math",
        "title",
        "textarea",
        "nav",
        "form",
        "head",
        "body",
        "frameset",
        "/p",
        "/br",
    ),
)
TEXTS = ("one", " two ", "\n", "&nbsp;", "&#0;", "\0", "&shy;", "a\u00adb", "<!-- no -->", "&#12;", "\u2028", "é", "<![CDATA[x]]>")


def soup(chance: random.Random) -> str:
    """Return a page with random markup."""
    parts = (
        chance.choice(TEXTS) if chance.random() < 0.5 else f"<{chance.choice(('', '/'))}{chance.choice(TAGS)}>"
        for _ in range(chance.randrange(60))
    )
    return "".join(parts)


def test_text_of_blocks_equals_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parser's text of a tree of blocks equals the text found by walking node by node."""
    chance = random.Random(5)
    pages = [soup(chance) for _ in range(1_000)]
    joined = [main_text(LexborHTMLParser(page), 1 << 16, whole=True) for page in pages]
    monkeypatch.setattr(_page, "WHOLE", 0)
    walked = [main_text(LexborHTMLParser(page), 1 << 16, whole=True) for page in pages]
    assert joined == walked
    assert sum("\n" in text for text in joined) > len(joined) / 3


@pytest.mark.parametrize("whole", [False, True])
def test_replaced_body_is_not_text(whole: bool) -> None:
    """Body content that frames have replaced is not text of the page."""
    assert main_text(LexborHTMLParser("<style>p {}</style><br><frameset><frame src=a></frameset>"), whole=whole) == ""
    assert main_text(LexborHTMLParser("\0</math><style>p {}</style><frameset>"), whole=whole) == ""


def test_long_page_gives_its_beginning() -> None:
    """A page longer than the text limit gives its beginning, with or without a walk of the tree."""
    page = "<p>word</p>" * 1_000
    whole = main_text(LexborHTMLParser(page), len(page), whole=True)
    assert whole == "word\n" * 999 + "word"
    assert whole.startswith(main_text(LexborHTMLParser(page), 1_000, whole=True)[:1_000])


def test_languages_equal_py3langid() -> None:
    """Languages and their scores equal those of py3langid for any text."""
    ours, theirs, chance = identifier(), langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE), random.Random(5)
    texts: list[str | bytes] = [
        "",
        "a",
        "ab",
        "1 2",
        "\0",
        "LAUTER GROSSE BUCHSTABEN",
        "Съешь же ещё этих мягких французских булок",
        "中文",
    ]
    texts += ["".join(map(chr, chance.choices(range(1, 0x3000), k=chance.randrange(90)))) for _ in range(100)]
    texts += [chance.randbytes(chance.randrange(90)) for _ in range(100)]
    for text in texts:
        assert ours.classify(text) == theirs.classify(text)
        assert ours.rank(text) == theirs.rank(text)


def test_function_words_identify_english() -> None:
    """Function words alone identify English if they are a tenth of many words; a similar or short text is not identified so."""
    text = "the value of each part is added to it by name, and kept for use"
    assert english(f"{text} " * 30)
    assert not english(text)
    for other in (
        "het deel of een naam is van de lijst met namen",
        "alle land og byer er for en dag by for by",
        "int main void",
    ):
        assert not english(f"{other} " * 100)


def test_unique_words_identify_english_without_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """ASCII with a few words unique to English needs no model; a text that quotes English, or has few words, does."""
    asked: list[str] = []

    def model(text: str) -> tuple[str, float]:
        asked.append(text)
        return "xx", 0.0

    monkeypatch.setattr(_general, "_classifier", lambda: model)
    listing = "queue poll timeout unit peek offer element capacity drain remaining size iterator spliterator "
    assert language(f"{listing} Returns what it has. {listing} when there is such an element") == "en"
    assert not asked
    for other in (
        "ebenfalls gibt es einen Schalter mit dem Namen that und keinen mit which oder from",
        f"{listing} Returns what it has. {listing} when there is such an élement",
        f"{listing} only only only where where how how",
        "",
    ):
        assert language(other) == "xx"
    assert len(asked) == 4


def test_automaton_span_is_bytes_to_farthest_state() -> None:
    """The span of an automaton is the number of bytes that lead to its farthest state; py3langid's is a few."""
    ours = identifier()
    assert ours.span == 6
    assert ours.span == span(ours.following, ours.row)


def test_keywords_are_ordered_by_frequency_then_alphabet() -> None:
    """Keywords and terms are ordered by frequency, then alphabetically, however many are equally frequent."""
    chance = random.Random(5)
    words = [f"word{chance.randrange(400):03}" for _ in range(3_000)]
    counts = Counter(words)
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    assert terms(" ".join(words), "").split() == ranked
    first = Counter(word for word in " ".join(words)[:2_048].split() if len(word) == 7)
    assert keywords(" ".join(words)) == sorted((w for w in first if first[w] > 1), key=lambda w: (-first[w], w))[:10]


def test_references_equal_url_parser() -> None:
    """A reference joined to its folder directly equals the result of the URL parser, for any base."""
    chance = random.Random(5)
    bases = ("http://h", "http://h/a/b?q", "file:///a/b/c.html", "file:///C:/a", "mailto:x", "foo:bar", "foo://h", "", "http://[")
    parts = ("../", "/", "a", "b.html", "C", "-", ".", "..", "x/", "0", "~", "?")
    for base in bases:
        resolved = _resolver(base)
        for _ in range(300):
            href = "".join(chance.choices(parts, k=chance.randrange(1, 6)))
            assert resolved(href) == resolve(href, base)


@pytest.mark.parametrize("first", ["/a/", "a/"])
def test_links_are_relative_to_first_base(first: str, summary: Callable[..., Found]) -> None:
    """Links are relative to the first base element of a page, whatever others exist (HTML, 4.2.3)."""
    bases = f'<base target=x><base href="{first}"><base href="http://other.example/">'
    page = f'<html><head>{bases}</head><body><a href="b">c</a></body></html>'
    made = summary(b"x.html", page.encode(), url="http://example.org/")
    assert made.attributes["url-references"] == ["http://example.org/a/b"]


@pytest.mark.parametrize(
    ("page", "language"),
    [
        ('<html lang="de-AT"><meta http-equiv="content-language" content="fr">', "de"),
        ('<html><meta http-equiv="Content-Language" content="pt-BR">', "pt"),
        ('<html><meta http-equiv="content-language" content="de, fr"><p>x', ""),
        ('<html><meta http-equiv="content-type" content="text/html"><p>x', ""),
        ('<html lang="en_US"><p>x', "en"),
        ('<html lang=" de "><p>x', "de"),
        ('<html lang="x-default"><p>x', ""),
        ('<html lang="*"><p>x', ""),
        ('<html lang="&lt;b>"><p>x', ""),
        ('<html><meta http-equiv="content-language" content="de; q=1"><p>x', ""),
    ],
)
def test_page_language_is_declared_by_root_or_header(page: str, language: str, summary: Callable[..., Found]) -> None:
    """The language of a page is that of its root element, else the one that its header declares."""
    assert summary(b"x.html", page.encode()).text("language") == language
