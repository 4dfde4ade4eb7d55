"""Test collections for ranking: documents, topics, and judgements of which documents answer them.

Cranfield (1,400 abstracts of aeronautics with titles, 225 topics) and Vaswani (11,429 abstracts of physics without titles, 93
topics), in TREC's form. They are not part of the project: `folder` names where they are looked for.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.bench.figures import BenchError

PLACE = "BENCH_COLLECTIONS"
"""Environment variable with the folder that holds the folders `cranfield` and `vaswani_npl`."""

_CRANFIELD = re.compile(
    r"<docno>(?P<name>.*?)</docno>\s*<title>(?P<title>.*?)</title>\s*<author>(?P<author>.*?)</author>.*?<text>(?P<text>.*?)</text>",
    re.DOTALL,
)
_VASWANI = re.compile(r"<DOCNO>(?P<name>.*?)</DOCNO>(?P<text>.*?)</DOC>", re.DOTALL)
_TOPIC = re.compile(r"<num>(.*?)</num>\s*<title>(.*?)</title>", re.DOTALL)


class Document(NamedTuple):
    """A document of a collection."""

    name: str
    title: str
    author: str
    text: str


class Topic(NamedTuple):
    """What somebody wanted to know, and the names of the documents that answer it."""

    text: str
    answers: frozenset[str]


class Collection(NamedTuple):
    """Documents and topics; `titled`: the documents have titles."""

    name: str
    documents: Sequence[Document]
    topics: Sequence[Topic]
    titled: bool


def folder(cache: Path) -> Path:
    """The folder of the collections: that of the environment variable, or `collections` in the bench's cache."""
    return Path(os.environ.get(PLACE) or cache / "collections")


def collections(place: Path) -> Iterator[Collection]:
    """Read both collections. Raises BenchError if they are not there."""
    try:
        yield _cranfield(place / "cranfield")
        yield _vaswani(place / "vaswani_npl")
    except OSError as error:
        raise BenchError(f"no test collections ({PLACE} names their folder): {error.filename}: {error.strerror}") from error


def _cranfield(place: Path) -> Collection:
    documents = _documents(_CRANFIELD, place / "cran.all.1400.xml")
    topics = _TOPIC.findall((place / "cran.qry.xml").read_text("utf-8"))
    # The judgements number the topics from 1 to 225, and the topics are not numbered so.
    numbered = {str(number): text for number, (_, text) in enumerate(topics, 1)}
    return Collection("Cranfield", documents, _judged(numbered, place / "cranqrel.trec.txt"), titled=True)


def _vaswani(place: Path) -> Collection:
    documents = _documents(_VASWANI, place / "corpus" / "doc-text.trec")
    topics = dict(_TOPIC.findall((place / "query-text.trec").read_text("utf-8")))
    return Collection("Vaswani", documents, _judged(topics, place / "qrels"), titled=False)


def _documents(pattern: re.Pattern[str], path: Path) -> list[Document]:
    """The documents of a file; a part that they do not have is empty."""
    parts = [found.groupdict() for found in pattern.finditer(path.read_text("utf-8"))]
    return [Document(*(part.get(name, "").strip() for name in Document._fields)) for part in parts]


def _judged(topics: Mapping[str, str], path: Path) -> list[Topic]:
    answers: dict[str, set[str]] = {}
    for line in path.read_text("utf-8").splitlines():
        number, _, document, relevance = line.split()
        if int(relevance) > 0:
            answers.setdefault(number, set()).add(document)
    return [Topic(text.strip(), frozenset(answers.get(number.strip(), ()))) for number, text in topics.items()]


def made(count: int) -> Collection:
    """A small collection of random words from a fixed seed: each topic is the words of a document's title."""
    chance = random.Random(1994)
    vocabulary = [f"{chance.choice('bdfgklmnprst')}{chance.choice('aeiou')}{at:x}" for at in range(500)]
    titles = [" ".join(chance.sample(vocabulary, 5)) for _ in range(count)]
    documents = [Document(str(at), title, "", " ".join(chance.choices(vocabulary, k=60))) for at, title in enumerate(titles)]
    topics = [Topic(title, frozenset((str(at),))) for at, title in enumerate(titles[: count // 3])]
    return Collection("made", documents, topics, titled=True)
