"""Wildcards, errors and regular expressions find the words that naive definitions find, on every engine and with the predicate."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from processors.identity import oid
from processors.query import predicate
from schemas.ports import BrokerIndex
from schemas.query import Fuzzy, Node, Regex, Wildcard
from schemas.records import Summary

LETTERS = "abé1"


def vocabulary() -> list[str]:
    """Return all words of up to four letters, and longer ones that resemble each other, folded."""
    chance = random.Random(1994)
    short = ["".join(letters) for length in (1, 2, 3, 4) for letters in product(LETTERS, repeat=length)]
    names = ("leviathan", "harvest", "müller", "кит1851", "gatherer")
    return sorted({*short, *(misspelled(chance, name, errors) for name in names for errors in range(6) for _ in range(8))})


def misspelled(chance: random.Random, word: str, errors: int) -> str:
    """Return a word with letters inserted, deleted, replaced, or exchanged with the next one."""
    letters = list(word)
    for _ in range(errors):
        at = chance.randrange(len(letters))
        if chance.random() < 0.2:
            letters[at : at + 2] = reversed(letters[at : at + 2])
        else:
            letters[at : at + chance.randrange(2)] = chance.choice(("", "a", "e", "é", "и"))
    return "".join(letters)


WORDS = vocabulary()
PLACES = range(0, len(WORDS), 2)


def distance(first: str, second: str) -> int:
    """Return Levenshtein's distance, by the recursive definition, in a table of all prefixes."""
    table = {(at, 0): at for at in range(len(first) + 1)} | {(0, at): at for at in range(len(second) + 1)}
    for (i, one), (j, other) in product(enumerate(first, 1), enumerate(second, 1)):
        table[i, j] = min(table[i - 1, j] + 1, table[i, j - 1] + 1, table[i - 1, j - 1] + (one != other))
    return table[len(first), len(second)]


def wildcards() -> list[str]:
    """Return wildcards of every form, each with at least two letters."""
    chance = random.Random(1993)
    drawn = ("".join(chance.choice("aabé1**?") for _ in range(chance.choice((3, 4, 5)))) for _ in range(30))
    several = [text for text in drawn if sum(map(str.isalnum, text)) > 1]
    return ["a*b", "*b1", "?b?a", "a?*é", "*ab*ab*", "Lev*n", "*var*", "g?th*r", "m?ll*", "*1851", "?*?ab", "??1é*", *several]


# No expression finds "-", the word of fields without words.
EXPRESSIONS = (
    *("a(b|é)*", "[ab]{2,3}1?", "b[^a]+", r"\d+", r"\D{4}", r"\w\w1", "(ab|1é){2}", "lev.*n", "(h|l).{5,9}", "m[^a-z]ller"),
    *(r"кит\d*", ".*[и-т].*", "a|b|é1", "(a|b)?(é|1)?b", ".{3}", "g?ath?ere?r", "[^b]{2}"),
)
MISSPELLED = ("aab", "ab1é", "bbbb1", "Leviathan", "HARVEST", "müller", "кит1851", "gatherers", "levaithan")
ASKED: dict[str, list[Fuzzy | Wildcard | Regex]] = {
    "errors": [Fuzzy(text, errors) for text, errors in product(MISSPELLED, (1, 2, 3)) if len(text) > 2 * errors],
    "wildcards": list(map(Wildcard, wildcards())),
    "expressions": list(map(Regex, EXPRESSIONS)),
}


def matches(query: Node, word: str) -> bool:
    """Return whether a query finds a folded word, by definition."""
    match query:
        case Fuzzy(text, errors):
            return distance(text.lower(), word) <= errors
        case Wildcard(text):
            return fnmatchcase(word, text.lower())
        case Regex(text):
            return re.fullmatch(text, word) is not None
    raise TypeError(type(query))


@pytest.fixture
def filled(engine: Callable[[Path], BrokerIndex], tmp_path: Path) -> Iterator[tuple[BrokerIndex, list[Summary]]]:
    """An index with a summary for each two words, in one of two attributes."""
    made = []
    for at in PLACES:
        url = f"http://h/{at}"
        about: dict[str, Any] = {
            "oid": oid("g", url),
            "url": url,
            "object_url": url,
            "gatherer": "g",
            "type": "",
            "version": 1,
            "time": 1,
        }
        words = [word.upper() if place % 3 == 0 else word for place, word in enumerate(WORDS[at : at + 2])]
        made.append(Summary(**about, attributes={("title", "remark")[at % 4 // 2]: (" - ".join(words),)}, published=1))
    with closing(engine(tmp_path)) as index:
        index.apply(made, {0: len(made)})
        yield index, made


@pytest.mark.parametrize("kind", ASKED)
def test_words_are_found_by_definition(filled: tuple[BrokerIndex, list[Summary]], kind: str) -> None:
    """An engine and the predicate find the summaries with a word that the definition accepts, under a name and under any."""
    index, summaries = filled
    for query in ASKED[kind]:
        found = {word for word in WORDS if matches(query, word)}
        accepted = [one for at, one in zip(PLACES, summaries, strict=True) if found.intersection(WORDS[at : at + 2])]
        for name in ("", "remark"):
            named = replace(query, attribute=name)
            expected = [one.oid for one in accepted if not name or name in one.attributes]
            assert [one.oid for one in summaries if predicate(named)(one)] == expected, named
            assert list(index.scroll(named)) == sorted(expected), named
