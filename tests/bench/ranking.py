"""Measures ranking: mean average precision (MAP) on test collections that people judged, of the Broker's index and of plain BM25.

MAP is that of trec_eval: over all topics, of the first 1,000 hits. Words of a topic count once. Plain BM25 (`BM25`, thirty lines of
Python, no engine) is measured in several ways:
- the old words and weights (`old`): the best field of title, author and text, as words are written, joined by OR;
- forms of words (Snowball's English stems) in one field of all text;
- the same with `TITLE` times the forms of the title and `EXACT` times the words as they are written.

The weights come from cross-validation by topic: those that are best on four fifths of the topics are measured on the rest. The
Broker's summaries have the attributes of the documents, and its queries are the words of the topics, typed one after the other.
"""

from __future__ import annotations

import math
import random
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import Stemmer
from numpy.typing import NDArray

from processors.identity import oid
from processors.query.words import words
from schemas.ports import BrokerIndex
from schemas.query import Most, Word
from schemas.records import Summary
from sinks.index.opensearch.aliases import drop
from sinks.index.opensearch.index import OpenSearchIndex
from sinks.index.tantivy.index import TantivyIndex
from tests.bench.clusters import servers
from tests.bench.figures import Figure, Goal
from tests.bench.judged import Collection, Document

HITS = 1_000
"""Number of first hits that count, as in trec_eval."""
TITLE, EXACT = 0.3, 0.2
"""Weights of title forms and exact words beside forms of all text, from the flat top that the folds of cross-validation are on."""
TITLES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.5, 2.0)
EXACTS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0)
FOLDS, SEED = 5, 38
OLD: Mapping[str, float] = {"title": 6.0, "author": 1.5, "text": 1.0}
OLD_SHARE = 0.1
"""Share of the fields other than the best."""

Scores = NDArray[np.float64]
"""A score for each document; 0: no hit."""
Places = NDArray[np.intp]
"""Documents by their places in the collection."""
AP = NDArray[np.float64]
"""The average precision of each topic."""
_STEMMER = Stemmer.Stemmer("english")


class BM25:
    """Plain BM25 over one field: the thirty lines that the engines are compared with."""

    K1, B = 1.2, 0.75

    def __init__(self, texts: Sequence[Sequence[str]]) -> None:
        self.count = len(texts)
        # A document without words counts as one of one word, as in the Broker's index.
        sizes = [len(text) or 1 for text in texts]
        mean = fmean(sizes)
        self.norms = [self.K1 * (1 - self.B + self.B * size / mean) for size in sizes]
        self.places: dict[str, list[tuple[int, int]]] = {}
        for at, text in enumerate(texts):
            for word, times in Counter(text).items():
                self.places.setdefault(word, []).append((at, times))

    def scores(self, asked: Sequence[str]) -> Scores:
        """The score of each document for these words, joined by OR."""
        found = np.zeros(self.count)
        for word in asked:
            places = self.places.get(word, ())
            rarity = math.log(1 + (self.count - len(places) + 0.5) / (len(places) + 0.5))
            for at, times in places:
                found[at] += rarity * times * (self.K1 + 1) / (times + self.norms[at])
        return found


class Parts(NamedTuple):
    """Scores for each topic: of forms in all text, of forms in titles, of exact words in all text."""

    forms: Sequence[Scores]
    titles: Sequence[Scores]
    exact: Sequence[Scores]

    def weighed(self, title: float, exact: float) -> list[Scores]:
        """The sums with these weights."""
        return [one + title * two + exact * three for one, two, three in zip(*self, strict=True)]


class Asked(NamedTuple):
    """A collection, and the words of its topics, each once."""

    collection: Collection
    topics: Sequence[Sequence[str]]
    right: Sequence[NDArray[np.bool_]]
    """For each topic, whether each document answers it."""

    def precision_by(self, scores: Sequence[Scores]) -> AP:
        """The average precision of each topic, from the scores of all documents."""
        return self.precision(list(map(_order, scores)))

    def precision(self, ranked: Sequence[Places]) -> AP:
        """The average precision of each topic, from the places of its hits in the collection, in order."""
        return np.array([_precision(one[hits], int(one.sum())) for one, hits in zip(self.right, ranked, strict=True)])


def asked_of(collection: Collection) -> Asked:
    """The words of a collection's topics, and their answers."""
    names = np.array([document.name for document in collection.documents])
    right = [np.isin(names, list(topic.answers)) for topic in collection.topics]
    return Asked(collection, [once(words(topic.text)) for topic in collection.topics], right)


def _order(scores: Scores) -> Places:
    # Rounded, since the last bits depend on the order of addition; equal scores in the order of the documents.
    order = np.argsort(-np.round(scores, 6), kind="stable")[:HITS]
    return order[scores[order] > 0]


def _precision(right: NDArray[np.bool_], answers: int) -> float:
    """The average precision of hits, each of which is right or not, if there are so many right ones."""
    ranks = np.flatnonzero(right) + 1
    return float((np.arange(1, len(ranks) + 1) / ranks).sum()) / max(answers, 1)


def forms(said: Sequence[str]) -> list[str]:
    """The forms of words. The collections are plain ASCII, so accents need no care."""
    return list(_STEMMER.stemWords(list(said)))


def once(said: Sequence[str]) -> list[str]:
    """The words, each once."""
    return list(dict.fromkeys(said))


def old(asked: Asked) -> list[Scores]:
    """The scores of the old words and weights: for each word the best field, and a tenth of the others."""
    fields = [BM25([words(getattr(one, name)) for one in asked.collection.documents]) for name in OLD]

    def score(word: str) -> Scores:
        parts = np.array([weight * field.scores([word]) for field, weight in zip(fields, OLD.values(), strict=True)])
        best: Scores = (1 - OLD_SHARE) * parts.max(0) + OLD_SHARE * parts.sum(0)
        return best

    return [sum(map(score, topic), np.zeros(len(asked.collection.documents))) for topic in asked.topics]


def parts(asked: Asked) -> Parts:
    """The scores that are weighed."""
    titles = [words(one.title) for one in asked.collection.documents]
    texts = [words(f"{one.title} {one.author} {one.text}") for one in asked.collection.documents]
    whole, titled, exact = BM25([*map(forms, texts)]), BM25([*map(forms, titles)]), BM25(texts)
    stems = [once(forms(topic)) for topic in asked.topics]
    return Parts([*map(whole.scores, stems)], [*map(titled.scores, stems)], [*map(exact.scores, asked.topics)])


class Folds(NamedTuple):
    """What cross-validation found: the weights of each fold, and the precision of each topic, with weights from the other folds."""

    weights: Sequence[tuple[float, float]]
    precision: AP


def cross_validated(asked: Asked, scored: Parts) -> Folds:
    """Choose weights by cross-validation by topic."""
    titles = TITLES if asked.collection.titled else (0.0,)
    grid = {pair: asked.precision_by(scored.weighed(*pair)) for pair in product(titles, EXACTS)}
    order = list(range(len(asked.topics)))
    random.Random(SEED).shuffle(order)
    weights, found = [], np.zeros(len(order))
    for fold in range(FOLDS):
        tested = order[fold::FOLDS]
        learned = np.delete(np.arange(len(order)), tested)
        best = max(grid, key=lambda pair: float(grid[pair][learned].mean()))
        weights.append(best)
        found[tested] = grid[best][tested]
    return Folds(weights, found)


def summary(of: Collection, document: Document) -> Summary:
    """The summary of a document."""
    url = f"http://{of.name.lower()}.example.org/{document.name}.html"
    said = {"title": document.title, "author": document.author, "full-text": document.text, "language": "en"}
    attributes: dict[str, tuple[str | bytes, ...]] = {name: (text,) for name, text in said.items() if text}
    about: dict[str, Any] = {"oid": oid("bench", url), "url": url, "object_url": url, "gatherer": "bench", "attributes": attributes}
    return Summary(**about, version=1, time=1, type="HTML", published=1)


def by_broker(index: BrokerIndex, asked: Asked) -> AP:
    """The average precision of each topic in a Broker's index, which is filled with the collection."""
    of = asked.collection
    summaries = [summary(of, document) for document in of.documents]
    index.apply(summaries, {0: len(summaries)})
    places = {one.oid: at for at, one in enumerate(summaries)}
    queries = [Most(tuple(map(Word, topic))) for topic in asked.topics]
    return asked.precision([np.array([places[hit.oid] for hit in index.search(query, HITS).hits], np.intp) for query in queries])


def tantivy(work: Path, asked: Asked) -> AP:
    """The average precision of each topic in an index of tantivy."""
    with closing(TantivyIndex(work / f"{asked.collection.name}.index")) as index:
        return by_broker(index, asked)


def opensearch(url: str, asked: Asked) -> AP:
    """The average precision of each topic in an index of OpenSearch, which is deleted afterwards."""
    with closing(OpenSearchIndex(url, f"bench-{uuid.uuid4().hex[:10]}")) as index:
        try:
            return by_broker(index, asked)
        finally:
            drop(index.node, f"{index.alias}-0")


def ranking(collections: Sequence[Collection], work: Path) -> Iterator[Figure]:
    """Measure the figures of test collections in both engines."""
    with servers("opensearch") as (url,):
        for one in collections:
            yield from ranked(one, {"tantivy": partial(tantivy, work), "OpenSearch": partial(opensearch, url)})


def ranked(one: Collection, brokers: Mapping[str, Callable[[Asked], AP]]) -> Iterator[Figure]:
    """Measure the figures of one collection, in these indexes."""
    asked, group = asked_of(one), f"ranking, {one.name}"
    scored = parts(asked)
    size = f"{len(one.documents):,} documents, {len(one.topics)} topics"
    before, plain = _map(asked, old(asked)), _map(asked, scored.forms)
    weights = (TITLE if one.titled else 0.0, EXACT)
    weighed, folds = _map(asked, scored.weighed(*weights)), cross_validated(asked, scored)
    yield Figure(group, "old words and weights", before, "MAP", f"{size}; plain Python, words joined by OR")
    yield Figure(group, "forms", plain, "MAP", "plain Python, one field")
    yield Figure(group, "forms, titles, words", weighed, "MAP", f"plain Python, weights {_shown([weights])}")
    average = float(folds.precision.mean())
    yield Figure(group, "cross-validated", average, "MAP", f"{FOLDS} folds by topic: {_shown(folds.weights)}")
    yield Figure(group, "cross-validated to forms", average / plain, "ratio", "plain Python")
    for name, broker in brokers.items():
        yield from _broker(group, name, float(broker(asked).mean()), before, plain, weighed, titled=one.titled)


def _broker(group: str, name: str, found: float, before: float, plain: float, weighed: float, *, titled: bool) -> Iterator[Figure]:
    yield Figure(group, name, found, "MAP", "the Broker's index")
    above = Goal(">=", 1.03 if titled else 0.99)
    yield Figure(group, f"{name} to old", found / before, "ratio", "old words and weights", Goal(">=", 1.3))
    yield Figure(group, f"{name} to forms", found / plain, "ratio", "thirty lines of BM25 on the same forms", above)
    yield Figure(group, f"{name} to weighed", found / weighed, "ratio", "thirty lines, forms, titles, words", Goal(">=", 0.98))


def _map(asked: Asked, scores: Sequence[Scores]) -> float:
    return float(asked.precision_by(scores).mean())


def _shown(pairs: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{title:g}/{exact:g}" for title, exact in pairs)
