"""Made summaries and made queries for them: the same in every run, with words in the distribution of Zipf and Mandelbrot.

A summary has some 2 kB of text, and attributes for ranges, hosts, folders, dates, authors and types. Words have only letters, since
other programs take a digit for the end of a word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from functools import cached_property
from itertools import product
from random import Random
from typing import Any

import numpy as np

from processors.identity import oid
from schemas.records import Summary

WORDS, AUTHORS, HOSTS, FOLDERS = 40_000, 3_000, 400, 1_000
"""Numbers of distinct words, and of those among them that name authors, hosts and folders."""
RATE, SHIFT = 1.05, 2.7
"""The word of a rank has a frequency in proportion to (rank + SHIFT) ** -RATE."""
SEED = 1994
TYPES = ("HTML", "HTML", "HTML", "PDF", "Text", "Mail", "ManPage", "C")
FIRST = date(1994, 1, 1)
DAYS, PAGES = 11_000, 900
LENGTHS = {"title": 7, "author": 2, "description": 30, "keywords": 12, "partial-text": 220}
HEADINGS, REFERENCES = 6, 5
"""Numbers of headings, of five words each, and of links."""
_BEGINS, _ENDS = "bcdfghjklmnprstvwz", "aeiou"


def vocabulary() -> list[str]:
    """The words, the most frequent first: of two to four syllables."""
    syllables = [begin + end for begin, end in product(_BEGINS, _ENDS)]
    chance = Random(SEED)
    found = dict[str, None]()
    while len(found) < WORDS:
        found["".join(chance.choices(syllables, k=2 if len(found) < 1_000 else chance.choice((3, 3, 4))))] = None
    return list(found)


class Library:
    """Summaries by number, made one after the other."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.words = vocabulary()
        self._names = np.array(self.words, dtype=object)
        self._shares = {size: _shares(size) for size in (WORDS, AUTHORS, HOSTS, FOLDERS)}

    def summaries(self) -> Iterator[Summary]:
        """Iterate over the summaries, which are the same each time."""
        chance = np.random.Generator(np.random.PCG64(SEED))
        for at in range(self.count):
            yield self._summary(at, chance)

    def _drawn(self, chance: np.random.Generator, count: int, size: int = WORDS) -> list[str]:
        found: list[str] = self._names[np.searchsorted(self._shares[size], chance.random(count))].tolist()
        return found

    def _summary(self, at: int, chance: np.random.Generator) -> Summary:
        (host,), folders = self._drawn(chance, 1, HOSTS), self._drawn(chance, 2, FOLDERS)
        url = f"http://www.{host}.example.org/{folders[0]}/{folders[1]}.zip#part-{at}.html"
        size, pages, day, kind = (int(chance.integers(high)) for high in (10_000_000, PAGES, DAYS, len(TYPES)))
        drawn = self._drawn(chance, sum(LENGTHS.values()) + 5 * HEADINGS)
        attributes: dict[str, tuple[str | bytes, ...]] = {}
        for name, length in LENGTHS.items():
            taken = self._drawn(chance, length, AUTHORS) if name == "author" else drawn[:length]
            attributes[name] = (" ".join(taken).title() if name == "author" else " ".join(taken).capitalize() + ".",)
            del drawn[:length]
        attributes["headings"] = tuple(" ".join(drawn[part : part + 5]).capitalize() for part in range(0, 5 * HEADINGS, 5))
        linked = zip(self._drawn(chance, REFERENCES, HOSTS), self._drawn(chance, REFERENCES), strict=True)
        attributes["url-references"] = tuple(f"http://www.{to}.example.org/{word}.html" for to, word in linked)
        day_of = (FIRST + timedelta(day)).isoformat()
        attributes |= {
            "pages": (str(pages),),
            "file-size": (str(size),),
            "date": (day_of,),
            "year": (day_of[:4],),
            "language": ("en",),
        }
        about: dict[str, Any] = {"oid": oid("bench", url), "url": url, "object_url": url.partition("#")[0], "gatherer": "bench"}
        about |= {"type": TYPES[kind], "md5": f"{at:032x}", "size": size, "attributes": attributes}
        return Summary(**about, version=1, time=1, published=1)


def _shares(size: int) -> Any:
    """The shares of the first words, added up."""
    weights = (np.arange(1, size + 1) + SHIFT) ** -RATE
    shares = np.cumsum(weights / weights.sum())
    shares[-1] = 1.0
    return shares


class Asking:
    """Makes queries for a library: words of it, with their frequency chosen by their rank."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._chance = Random(SEED)

    def word(self, low: int = 100, high: int = 5_000) -> str:
        """A word with a rank between these."""
        return self._library.words[self._chance.randrange(low, high)]

    def long(self) -> str:
        """A word of three syllables or more, that is not rare."""
        return self.word(1_000)

    def number(self, below: int) -> int:
        """A number below another."""
        return self._chance.randrange(below)

    def day(self) -> date:
        """A day on which documents may have been written."""
        return FIRST + timedelta(self.number(DAYS))

    @cached_property
    def _texts(self) -> Sequence[Sequence[str]]:
        some = zip(range(500), self._library.summaries(), strict=False)
        return [str(one.attributes["partial-text"][0]).rstrip(".").lower().split() for _, one in some]

    def pair(self) -> str:
        """Two words that stand next to each other in a summary."""
        text = self._chance.choice(self._texts)
        at = self.number(len(text) - 1)
        return " ".join(text[at : at + 2])


def boolean(ask: Asking) -> tuple[str, str, str]:
    """The words of a query with two attributes: of a title, of an author, of another title."""
    return ask.word(20, 500), ask.word(20, 500), ask.word(500, 5_000)


KINDS: Mapping[str, Callable[[Asking], str]] = {
    "word": lambda ask: ask.word(),
    "two words": lambda ask: f"{ask.word(10, 1_000)} {ask.word(10, 1_000)}",
    "four words": lambda ask: " ".join(ask.word() for _ in range(4)),
    "word as it is written": lambda ask: f'"{ask.word()}"',
    "phrase": lambda ask: f'"{ask.pair()}"',
    "word of an attribute": lambda ask: f"title:{ask.word()}",
    "word of headings": lambda ask: f'headings:"{ask.word()}"',
    "wildcard, prefix": lambda ask: f"{ask.long()[:4]}*",
    "wildcard inside": lambda ask: f"{(word := ask.long())[:2]}*{word[-3:]}",
    "1 error": lambda ask: f"{ask.long()}~",
    "2 errors": lambda ask: f"{ask.long()}~2",
    "regular expression": lambda ask: f"/{(word := ask.long())[:3]}[aeiou]{word[4:]}s?/",
    "number range": lambda ask: f"pages:{(low := ask.number(PAGES - 30))}..{low + 30}",
    "moment range": lambda ask: f"date:{(day := ask.day())}..{day + timedelta(200)}",
    "site": lambda ask: f"site:{ask.word(0, HOSTS)}.example.org",
    "in": lambda ask: f"in:{ask.word(0, FOLDERS)}",
    "two attributes, Boolean": lambda ask: "title:{} AND author:{} OR title:{}".format(*boolean(ask)),
    "verbatim": lambda ask: f"={ask.word(2_000, 5_000)}",
    "NEAR": lambda ask: f"{ask.word(300, 800)} NEAR/5 {ask.word(300, 800)}",
    "regular expression of values": lambda ask: f"title:/{ask.word(500, 2_000)} +{ask.word(20, 200)}/",
}
"""Kinds of queries, by name."""
