"""Statistics of a Broker's words: what they say, their size, and what becomes of damaged ones."""

from __future__ import annotations

import random
import sys
import tracemalloc
from collections.abc import Iterable

import msgspec
import pytest

from processors.query import parse, predicate
from processors.query.forms import DEFAULT
from processors.query.routing.choice import may_match
from processors.query.routing.statistics import MAX_BYTES, MOST_WORDS, Statistics, WordCounts, decode_statistics, encode_statistics
from schemas.records import Summary
from tests.sinks.gateway.doubles import summary

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MAGIC = b"harvest-words 1\n"


def counted(summaries: Iterable[Summary], entries: int = 250_000) -> WordCounts:
    """Return the counts of some summaries."""
    counts = WordCounts(DEFAULT, entries)
    for each in summaries:
        counts.add(each)
    return counts


def text(number: int, *words: str) -> Summary:
    """Return a summary with some words."""
    return summary(f"http://example.org/{number}", partial_text=" ".join(words))


def many(words: int, each: int = 1_000) -> list[Summary]:
    """Return summaries with that number of different words, and one word that all have."""
    return [text(at, "common", *(f"w{at + number}x" for number in range(each))) for at in range(0, words, each)]


def test_frequency_is_the_number_of_summaries_with_a_word_in_any_form() -> None:
    """A word counts once for each summary that has a form of it; links, owners and copies do not count."""
    copy = msgspec.structs.replace(text(3, "whale"), copy_of="0" * 64)
    linked = summary("http://example.org/4", url_references="http://example.org/whale", owner="whale")
    found = counted([text(1, "whale", "Whales"), text(2, "whales", "C++"), copy, linked]).statistics()
    frequency = [found.frequency(DEFAULT.query_forms(word)) for word in ("whale", "squid")]
    assert (frequency, found.frequency(["c++"]), found.summaries) == ([2, 0], 1, 3)


@pytest.mark.parametrize("words", [0, 10, 30_000, 300_000])
def test_statistics_of_any_vocabulary_are_small_and_have_every_word(words: int) -> None:
    """Encoded statistics are at most 256 kB and come back equal; no word that a summary has is missing in them."""
    found = counted(many(words)).statistics()
    encoded = encode_statistics(found)
    assert decode_statistics(encoded) == found
    assert len(encoded) <= MAX_BYTES
    assert len(found.frequencies) <= MOST_WORDS
    assert all(found.frequency([f"w{number}x"]) for number in range(0, words, 97))


def test_filter_has_few_words_by_mistake() -> None:
    """Of words that no summary has, at most one in twenty is in the filter of 100,000 rare ones."""
    found = counted(many(100_000)).statistics()
    assert sum(found.frequency([f"absent{number}"]) for number in range(2_000)) <= 100


def test_counting_with_little_memory_errs_by_no_more_than_it_states() -> None:
    """Where the table is full, a frequency is never too low, and too high by at most the stated error; no word is lost."""
    chance = random.Random(42)
    summaries = [text(at, *(f"w{int(chance.paretovariate(0.5))}x" for _ in range(50))) for at in range(400)]
    true, rough = counted(summaries).statistics(), counted(summaries, 300).statistics()
    assert rough.error > 0
    assert all(true.frequencies[word] <= count <= true.frequencies[word] + rough.error for word, count in rough.frequencies.items())
    assert all(rough.frequency([word]) for word in true.frequencies)


def test_merged_partitions_are_as_one() -> None:
    """Counts of two partitions merge into those of both."""
    summaries = [text(at, "common", f"w{at}x") for at in range(100)]
    merged = counted(summaries[:30])
    merged.merge(counted(summaries[30:]))
    assert merged.statistics() == counted(summaries).statistics()


def test_long_words_leave_the_statistics_small() -> None:
    """Words of 128 random letters take the room of many short ones, and the limit holds."""
    chance = random.Random(7)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=128)) for _ in range(20_000)]
    found = counted(text(at, *words[at : at + 1_000]) for at in range(0, 20_000, 1_000)).statistics()
    assert len(encode_statistics(found)) <= MAX_BYTES
    assert all(found.frequency(DEFAULT.query_forms(word)) for word in words[::101])


@pytest.mark.parametrize(
    "query",
    ["whale", "white whale", '"white whale"', "title:whales", "=Whale", "white NEAR whale", "whale OR zebra", "a b whale white",
     "whale NOT squid", "type:HTML", "wha*", "C++", "zebra OR type:RawText", "résumé", "author:whale~1", "owner:root"],
)  # fmt: skip
def test_statistics_exclude_nothing_that_matches(query: str) -> None:
    """A Broker with a summary that matches is never excluded."""
    held = summary(
        "http://example.org/1", title="Whales", partial_text="The white Whale and C++, a resume", author="whale", owner="root"
    )
    accepts = predicate(parse(query))
    assert not accepts(held) or may_match(parse(query), counted([held]).statistics())


def test_statistics_exclude_brokers_without_a_word() -> None:
    """A Broker without one of the words of a conjunction is excluded."""
    held = counted([text(1, "white", "whale")]).statistics()
    excluded = ("squid", "white AND squid", '"white squid"', "squid OR zebra", "squid zebra dog cat")
    assert [may_match(parse(query), held) for query in excluded] == [False] * 5


def packed(*values: object) -> bytes:
    """Return encoded statistics with some values."""
    return MAGIC + zstd.compress(msgspec.msgpack.encode(values))


GOOD = (1, 2, 0, ("en",), ["whale"], [1], 8, False, b"\x05")


@pytest.mark.parametrize(
    "data",
    [
        b"", b"<html>", MAGIC, MAGIC + b"x" * 100, MAGIC + b"\0" * MAX_BYTES, packed(), packed(*GOOD[:-1]), packed(*GOOD, 1),
        MAGIC + zstd.compress(bytes(1 << 26)), packed(*GOOD)[:-3], packed(-1, *GOOD[1:]), packed(1 << 60, *GOOD[1:]),
        packed(1, 2, 0, ("xx",), *GOOD[4:]), packed(1, 2, 0, (), ["a", "a"], [1, 1], *GOOD[6:]),
        packed(1, 2, 0, (), ["a"], [], *GOOD[6:]), packed(1, 2, 0, (), ["a"], [2], *GOOD[6:]),
        packed(1, 2, 0, (), ["a" * 129], [1], *GOOD[6:]), packed(1, 2, 0, (), [""], [1], *GOOD[6:]),
        packed(*GOOD[:6], 60, False, b""), packed(*GOOD[:6], 8, False, b"\xff"), packed(*GOOD[:6], 8, False, b"\xff\x01"),
        packed(*GOOD[:6], 8, True, b"\x01"), packed(*GOOD[:6], 8, False, "text"),
        packed(*GOOD[:6], 8, False, bytes(129)),
        packed(1, 2, 0, (), ["a"], [float("nan")], *GOOD[6:]),
    ],
)  # fmt: skip
def test_bad_statistics_are_refused(data: bytes) -> None:
    """Statistics from elsewhere that are damaged, too large or impossible raise ValueError with a short message."""
    assert decode_statistics(packed(*GOOD)).frequency(["whale"]) == 1
    with pytest.raises(ValueError, match=r"statistics") as raised:
        decode_statistics(data)
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize("place", [3, 4, 5])
def test_long_lists_are_refused_before_they_are_made(place: int) -> None:
    """A few hundred bytes that unpack to a list of millions cost no more memory than their unpacked bytes."""
    data = packed(*GOOD[:place], ("",) * 4_000_000, *GOOD[place + 1 :])
    assert len(data) < 1_000
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="statistics"):
            decode_statistics(data)
        assert tracemalloc.get_traced_memory()[1] < 16_000_000
    finally:
        tracemalloc.stop()


def test_no_statistics_have_no_word() -> None:
    """Empty statistics have no word."""
    assert Statistics().frequency(["whale"]) == 0
