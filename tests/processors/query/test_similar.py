from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from processors.query import matches, parse, unparse
from processors.query.forms import Analyzer
from processors.query.similar import ASKED, MAX_LETTERS, MAX_WORDS, READ, similar
from schemas.query import And, Most, Not, Query, Word
from schemas.records import Summary

OID = "0123456789abcdef" * 4


def made(oid: str = OID, copy_of: str = "", copies_count: int = 0, **attributes: str) -> Summary:
    """Return a summary with these attributes."""
    return Summary(
        oid=oid,
        url=f"http://h/{oid}",
        object_url="http://h/",
        gatherer="g",
        version=1,
        time=1,
        type="HTML",
        attributes={name.replace("_", "-"): (value,) for name, value in attributes.items()},
        copy_of=copy_of,
        copies_count=copies_count,
    )


def counted(summaries: Sequence[Summary]) -> Callable[[Sequence[str]], list[int]]:
    """Return the document frequencies of words among summaries."""
    return lambda asked: [sum(matches(Word(word), summary) for summary in summaries) for word in asked]


def found_words(query: Query) -> list[str]:
    """Return the words of a query without those that leave summaries out."""
    assert isinstance(query, And | Most)
    return [part.text for part in query.parts if isinstance(part, Word)]


def of(summary: Summary, frequency: int = 5, total: int = 100, analyzer: Analyzer | None = None) -> list[str]:
    """Return the words of the query if each word is in so many of all summaries."""
    return found_words(similar(summary, lambda asked: [frequency] * len(asked), total, *([analyzer] if analyzer else [])))


def test_query_finds_related_summaries_and_not_itself() -> None:
    """The query has the words that few summaries share, and finds those, but not the summary itself."""
    whale = made(title="The white whale", description="The whale and the harpoon of a whaler")
    related = made("1", title="Whales", description="the harpoon, white ships")
    others = [made(str(number), description=f"the report number {number} of the office") for number in range(2, 9)]
    summaries = [whale, related, *others]
    query = similar(whale, counted(summaries), len(summaries))
    assert unparse(query) == f"whale white harpoon NOT oid:{OID}"
    assert [summary.oid for summary in summaries if matches(query, summary)] == ["1"]


def test_titles_and_keywords_weigh_more() -> None:
    """Of equally rare words those of the title come first, then keywords, then others; a higher frequency helps."""
    summary = made(author="melville", keywords="ocean", title="whale", description="harpoon", full_text="ship ship ship")
    assert of(summary) == ["whale", "ship", "ocean", "harpoon", "melville"]


def test_rare_words_come_first() -> None:
    """Of equally frequent words of a summary the one that is in fewer summaries comes first."""
    counts = {"whale": 50, "harpoon": 2, "ship": 7}
    query = similar(made(description="ship harpoon whale"), lambda asked: [counts[word] for word in asked], 100)
    assert found_words(query) == ["harpoon", "ship", "whale"]


@pytest.mark.parametrize(
    "useless", ["1851", "3rd", "x", "x" * (MAX_LETTERS + 1), "の", "ห", "한"], ids=["year", "ordinal", "x", "long", "の", "ห", "한"]
)
def test_useless_words_are_left_out(useless: str) -> None:
    """Numbers, single letters and very long words are no words of the query; ideographs are."""
    assert of(made(title=f"whale {useless} 鯨")) == ["whale", "鯨"]


@pytest.mark.parametrize("frequency", [0, 1, 51, 100])
def test_summary_without_telling_words_is_refused(frequency: int) -> None:
    """If each word is in this summary alone or in more than half of all, there is no query."""
    with pytest.raises(ValueError, match="nothing similar can be searched"):
        of(made(title="whale"), frequency)


def test_summary_without_words_is_refused() -> None:
    """A summary without a word is refused, and nothing is asked for it."""

    def refuse(_: Sequence[str]) -> list[int]:
        raise AssertionError

    with pytest.raises(ValueError, match="nothing similar can be searched"):
        similar(made(owner="root", description="1 2 3"), refuse, 100)


def test_words_of_copies_do_not_count() -> None:
    """A word that only a summary and its copies have is of no use; the original of a copy is left out, as its copies are."""
    assert of(made(title="whale", copies_count=3), 5) == ["whale"]
    with pytest.raises(ValueError, match="nothing similar can be searched"):
        of(made(title="whale", copies_count=3), 4)
    with pytest.raises(ValueError, match="nothing similar can be searched"):
        of(made(title="whale", copy_of="1"), 2)
    query = similar(made(title="whale", copy_of="1"), lambda _: [3], 100)
    assert query == And((Word("whale"), Not(Word(OID, "oid")), Not(Word("1", "oid"))))


def test_forms_of_a_word_are_one_word() -> None:
    """Of the forms of a word in the summary's language the usual one is in the query."""
    summary = made(description="Whales, whale, whales. Häuser und Hauses", language="en")
    assert of(summary) == ["whales", "hauses", "häuser", "und"]
    assert of(made(description="Haus, Hauses, Häuser, Häuser", language="de"), analyzer=Analyzer(("en", "de"))) == ["häuser"]


def test_number_of_words_is_limited() -> None:
    """At most MAX_WORDS words become the query, and at most ASKED, the most frequent, are asked for at once."""
    asked: list[Sequence[str]] = []

    def frequencies(words: Sequence[str]) -> list[int]:
        asked.append(words)
        return [5] * len(words)

    text = " ".join(f"{first}{last}a" for first in "bcdfghjklm" for last in "nprstvwxyz")
    query = similar(made(title="whale", full_text=f"{text} squid leviathan squid"), frequencies, 100)
    assert [len(words) for words in asked] == [ASKED]
    assert list(asked[0][:3]) == ["whale", "squid", "leviathan"]
    assert len(found_words(query)) == MAX_WORDS


def test_beginning_of_long_text_is_read() -> None:
    """Of a long value only the beginning is read."""
    assert of(made(description="squid " * READ + "harpoon", title="whale")) == ["squid", "whale"]


@settings(max_examples=200)
@given(st.text(max_size=60), st.text(st.sampled_from("aB1é東ßǅ \u0301\u0345\u200cNOTR-:\"'()~*?/"), max_size=60), st.integers(0, 9))
def test_any_summary_has_a_query_that_can_be_written(title: str, text: str, frequency: int) -> None:
    """Any text gives a query that its own text parses to, the same each time, or is refused."""
    summary = made(title=title, full_text=text)
    try:
        query = similar(summary, lambda asked: [frequency] * len(asked), 12)
    except ValueError as error:
        assert "nothing similar" in str(error)  # noqa: PT017
        return
    assert parse(unparse(query)) == query
    assert query == similar(summary, lambda asked: [frequency] * len(asked), 12)
    assert not matches(query, summary)
