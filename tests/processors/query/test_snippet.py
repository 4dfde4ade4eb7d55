from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.query import parse
from processors.query.snippet import MAX_SNIPPET, marked, matched, snippet, terms


def shown(query: str, *texts: str) -> str:
    """Return the snippet of texts, with visible marks."""
    return snippet(texts, terms(parse(query))).replace("\x02", "[").replace("\x03", "]")


@pytest.mark.parametrize(
    ("query", "text", "expected"),
    [
        ("whale", "The Whale swims", "The [Whale] swims"),
        ('"white whale" fin', "white fin, white whale", "white [fin], [white whale]"),
        ("title:whale", "a whale", "a [whale]"),
        ("whale -squid", "whale and squid", "[whale] and squid"),
        ("type:whale", "a whale", "a whale"),
        ("* author:*", "a whale", "a whale"),
        ("東京", "私は東京都に行く", "私は[東京]都に行く"),
        ("STRASSE", "die Straße", "die [Straße]"),
        ("x-ray", "an x-ray, x ray", "an [x-ray], [x ray]"),
        ("whale", "a\n\twhale\x02 \x1b[31mfin\u202e", "a [whale] [31mfin"),
        ("whale", "", ""),
        ("whale", "=====\nMoby\n=====\n\nA whale ----- of *** a --- tale", "Moby A [whale] of *** a --- tale"),
        ("whale", "~~~~~~~", ""),
    ],
)
def test_matches_are_marked(query: str, text: str, expected: str) -> None:
    """Matched words and phrases are marked in place; control characters are removed."""
    assert shown(query, text) == expected


def test_window_with_most_terms_is_shown() -> None:
    """The window with the most different terms is shown, with ellipses for omitted text."""
    text = "whale " + "and so on " * 60 + "squid meets whale " + "and so on " * 60
    found = shown("whale squid", text)
    assert "[squid] meets [whale]" in found
    assert found.startswith("…")
    assert found.endswith("…")


def test_best_part_of_long_text_is_shown() -> None:
    """The part of a long text with the most terms is shown, in any script."""
    for filler in ("some words of it, ", "einige Wörter, "):
        text = f"{filler * 2_000} the whale {filler * 2_000} the white whale {filler * 2_000}"
        found = snippet([text], terms(parse("white whale")))
        assert "the \x02white\x03 \x02whale\x03 " in found
        assert found.startswith("…")
        assert found.endswith("…")


def test_text_with_most_terms_is_shown() -> None:
    """The text with the most terms is shown, else the first that is not empty."""
    assert shown("whale squid", "a whale", "a whale, a squid") == "a [whale], a [squid]"
    assert shown("fin", "", "one", "two") == "one"


@given(st.lists(st.text(st.sampled_from("ab 東\n\x02\x03")), max_size=3), st.sampled_from(["a", '"a b"', "東 OR a b", '"a a a"']))
def test_snippet_is_bounded(texts: list[str], query: str) -> None:
    """A snippet is one line of at most 300 characters with paired marks."""
    found = snippet([text * 30 for text in texts], terms(parse(query)))
    assert len(found) <= MAX_SNIPPET
    assert found.count("\x02") == found.count("\x03")
    assert found.replace("\x02", "").replace("\x03", "").isprintable()


def test_whole_text_is_marked() -> None:
    """A title is shown whole, with every match marked."""
    title = marked("Whales,\nand a whale's tale " + "of the sea " * 40, terms(parse("whale")))
    assert title.startswith("\x02Whales\x03, and a \x02whale\x03's tale of")
    assert title.endswith("of the sea")
    assert len(title) > MAX_SNIPPET


def test_attributes_that_matched_are_found() -> None:
    """The first attributes with a term are returned, each with its snippet."""
    values = {"author": ["Herman Melville"], "keywords": ["sea", "white whale"], "language": ["en"], "headings": ["The whale"]}
    wanted = terms(parse("whale"))
    assert matched(values, wanted, 3) == [("keywords", "white \x02whale\x03"), ("headings", "The \x02whale\x03")]
    assert matched(values, wanted, 1) == [("keywords", "white \x02whale\x03")]
    assert matched(values, terms(parse("squid")), 3) == []
