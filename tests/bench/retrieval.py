"""Measures retrieval as in Essence's paper: an index of summaries against one of the full text, in the same engine.

The corpus is the long documents (at least LEAST characters of text) of documentation packages. A sentence in the middle of each
makes a query for this document: any of the sentence's content words, as WAIS asked, or the two longest of them, as people type
(both must occur). Relative recall divides how often the index of summaries has the wanted document among its first hits by how
often the full text does; relative precision divides the two ratios of wanted documents to all hits (seed 003, 6.1).

The index of full text is that of `essence.full_text`: it also stores the text, since users want to see the words that were found;
the ratio without the stored fields of both is shown as well.
"""

from __future__ import annotations

import io
import multiprocessing
import random
import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

from processors.essence import recognize, summarize
from processors.essence.stage import EssenceSettings, essence
from processors.essence.summarize._stop import STOP
from processors.identity import file_url
from processors.query.words import words
from schemas.query import And, Or, Query, Word
from schemas.records import Summary
from sinks.index.tantivy.index import TantivyIndex
from tests.bench.figures import BenchError, Figure, Goal
from tests.parity.readings import fetched

LEAST = 20_000
"""Minimum characters of text of a long document: some ten printed pages."""
FILE = 60_000
"""Minimum bytes of a file with so much text."""
DOCUMENTS = 1_000
SETS = (10, 40, 128, 256)
"""Sizes of the set of hits, as in the paper; 40 was WAIS's default."""
JUDGED = 256
"""The size with goals: the precision of summaries rises to that of full text with the size of the set (seed 003, figure 7)."""
MOST = 20
"""Maximum number of words taken from a sentence."""
FULL = EssenceSettings(gatherer="bench", full_text=1 << 20)
PART = EssenceSettings(gatherer="bench")
PAPER = "Essence: .95 and .70 of WAIS, an index of 3 to 11 per cent"

_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n")


class Pair(NamedTuple):
    """A document's summary, without and with full text."""

    part: Summary
    full: Summary

    @property
    def text(self) -> str:
        """The full text of the document."""
        return "".join(map(str, self.full.attributes.get("full-text", ())))


class Sums(NamedTuple):
    """Sums over all queries: wanted documents found, and hits."""

    found: int
    hits: int


def retrieval(root: Path, files: Sequence[Path], work: Path, least: int = LEAST) -> Iterator[Figure]:
    """Measure the figures of an index of these files, given relative to `root`. Raises BenchError if none of them is long."""
    recognize.preload()
    summarize.preload()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        made = pool.imap(partial(_pair, root, least=least), files, 8)
        pairs = [pair for pair in made if pair][:DOCUMENTS]
    if not pairs:
        raise BenchError(f"none of {len(files)} files has {least} characters of text")
    size = sum(len(pair.text) for pair in pairs) // len(pairs)
    yield Figure("retrieval", "documents", len(pairs), "documents", f"of {size:,} characters of text, as an average")
    mine, whole = _built([pair.part for pair in pairs], work / "part"), _built([pair.full for pair in pairs], work / "full")
    with closing(mine) as ours, closing(whole) as full:
        yield Figure("retrieval", "index to index of full text", _ratio(work), "ratio", PAPER, Goal("<=", 0.11))
        yield Figure("retrieval", "the same, no texts kept", _ratio(work, ".store"), "ratio", "what is kept to be shown left out")
        yield from _asked(pairs, ours, full)


def _pair(root: Path, path: Path, least: int) -> Pair | None:
    """The summaries of a document if it is long. Its URL does not have this run's folder, which would make the indexes differ."""
    body = (root / path).read_bytes()
    obj = fetched(file_url(bytes(Path("/") / path)), body)
    part, full = (
        next((r for r in essence(obj, io.BytesIO(body), settings) if isinstance(r, Summary)), None) for settings in (PART, FULL)
    )
    found = Pair(part, full) if part and full else None
    return found if found and len(found.text) >= least else None


def _built(summaries: Sequence[Summary], folder: Path) -> TantivyIndex:
    """A merged index of these summaries, opened for searching."""
    index = TantivyIndex(folder)
    index.apply(summaries, {0: len(summaries)})
    index.close()
    return TantivyIndex(folder)


def _ratio(work: Path, left_out: str = "none") -> float:
    part, full = (
        sum(f.stat().st_size for f in (work / name).rglob("*") if f.is_file() and f.suffix != left_out) for name in ("part", "full")
    )
    return part / full


def _asked(pairs: Sequence[Pair], ours: TantivyIndex, full: TantivyIndex) -> Iterator[Figure]:
    asked = [(pair.part.oid, said) for pair in pairs if (said := _said(pair.text))]
    for name, ways in (("any word", any_of), ("two words", two_of)):
        queries = [(oid, ways(said)) for oid, said in asked]
        mine, whole = (_sums(index, queries) for index in (ours, full))
        for size in SETS:
            goals = (Goal(">=", 0.7), Goal(">=", 0.95)) if size == JUDGED else (None, None)
            against = f"{len(queries)} queries; full text: {whole[size].found / len(queries):.2f}"
            recall = mine[size].found / max(whole[size].found, 1)
            precision = recall * whole[size].hits / max(mine[size].hits, 1)
            yield Figure("retrieval", f"{name}, {size} hits: recall", recall, "ratio", against, goals[0])
            yield Figure("retrieval", f"{name}, {size} hits: precision", precision, "ratio", "relative, as recall is", goals[1])


def _said(text: str) -> list[str]:
    """The content words of a sentence in the middle third of a text, the same in every run; empty if there is no sentence."""
    middle = text[len(text) // 3 : 2 * len(text) // 3]
    pieces = (said.split()[:MOST] for said in _SENTENCE.split(middle))
    sentences = [content for piece in pieces if len(piece) > 5 and len(content := _content(" ".join(piece))) > 1]
    return random.Random(text).choice(sentences) if sentences else []


def _content(sentence: str) -> list[str]:
    return [word for word in dict.fromkeys(words(sentence)) if len(word) > 2 and word not in STOP]


def any_of(said: Sequence[str]) -> Query:
    """A query for any of the words."""
    return Or(tuple(map(Word, said)))


def two_of(said: Sequence[str]) -> Query:
    """A query for the two longest words."""
    return And(tuple(map(Word, sorted(said, key=len, reverse=True)[:2])))


def _sums(index: TantivyIndex, queries: Sequence[tuple[str, Query]]) -> dict[int, Sums]:
    """The sums for each size of the set of hits."""
    hits = [(oid, [hit.oid for hit in index.search(query, max(SETS), copies=True).hits]) for oid, query in queries]
    return {size: Sums(sum(oid in oids[:size] for oid, oids in hits), sum(len(oids[:size]) for _, oids in hits)) for size in SETS}
