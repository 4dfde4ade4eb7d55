"""Measures documents/s of the index against bare tantivy, the size of the index, and the latency of search.

The baseline is what a plain program would do with the same engine: the same fields and the same stored bytes, text passed
unchanged, each document deleted by its term and added, one commit for each batch of the same size. Run:
`python tests/bench/bench_index.py`.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from statistics import quantiles
from typing import Any

import msgspec
import tantivy

from processors.identity import oid
from processors.query import parse
from processors.query.words import searchable_values
from schemas.codec import encode
from schemas.query import BY_NAME, EXACT_FIELDS, TEXT_FIELDS
from schemas.records import Summary
from sinks.index.document import shown
from sinks.index.tantivy.index import HEAP, TantivyIndex

Row = tuple[str, float, str]

DOCUMENTS = 6_000
SEARCHES = 400


def corpus(count: int = DOCUMENTS) -> list[Summary]:
    """Summaries with some 2 kB of text each, from a vocabulary with Zipf's distribution; one in twenty is not ASCII."""
    chance = random.Random(1994)
    vocabulary = [f"{chance.choice('bcdfgklmnprst')}{chance.choice('aeiou')}{at:x}" for at in range(40_000)]

    def text(words: int) -> str:
        return " ".join(vocabulary[min(int(10 * chance.paretovariate(0.4)) - 10, 39_999)] for _ in range(words)).capitalize() + "."

    made = []
    for at in range(count):
        url = f"file:///usr/share/doc/package-{at // 8}/part-{at % 8}.html"
        attributes: dict[str, tuple[str | bytes, ...]] = {
            "title": (text(7) + (" für Ärzte" if at % 20 == 0 else ""),),
            "description": (text(30),),
            "keywords": (text(12),),
            "author": (text(2),),
            "partial-text": (text(220),),
            "headings": tuple(text(5) for _ in range(6)),
            "url-references": tuple(f"http://example.org/{text(2)}" for _ in range(5)),
            "file-size": (str(at * 37),),
        }
        about: dict[str, Any] = {"oid": oid("bench", url), "url": url, "object_url": url, "gatherer": "bench"}
        made.append(Summary(**about, version=1, time=1, type="HTML", md5=f"{at:032x}", size=at, attributes=attributes, published=1))
    return made


def bare(folder: Path, summaries: Sequence[Summary], batch: int) -> None:
    """Index the summaries as a plain program does, without Harvest."""
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("oid", tokenizer_name="raw", index_option="basic")
    builder.add_unsigned_field("published", fast=True)
    for name in (*TEXT_FIELDS, "rest", "attributes"):
        builder.add_text_field(name, index_option="position")
    builder.add_text_field("exact", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("url", tokenizer_name="raw", index_option="basic", fast=True)
    builder.add_bytes_field("shown", stored=True)
    writer = tantivy.Index(builder.build(), path=str(folder)).writer(HEAP, 1)
    for at in range(0, len(summaries), batch):
        for summary in summaries[at : at + batch]:
            writer.delete_documents_by_term("oid", summary.oid)
            writer.add_document(bare_document(summary))
        writer.commit()
    writer.wait_merging_threads()


def bare_document(summary: Summary) -> tantivy.Document:
    """A tantivy document as a plain program builds it."""
    document = tantivy.Document()
    document.add_text("oid", summary.oid)
    document.add_unsigned("published", summary.published)
    for name, values in summary.attributes.items():
        for value in values:
            if name in TEXT_FIELDS:
                document.add_text(name, str(value))
            else:
                if name not in BY_NAME:
                    document.add_text("rest", str(value))
                document.add_text("attributes", f"{name}={value!s}")
    for field in EXACT_FIELDS:
        document.add_text("exact", f"{field}={getattr(summary, field.replace('-', '_'))}")
    document.add_text("url", summary.url)
    document.add_bytes("shown", msgspec.msgpack.encode(shown(summary, searchable_values(summary))))
    return document


def harvest(folder: Path, summaries: Sequence[Summary], batch: int) -> None:
    """Index the summaries by TantivyIndex."""
    with closing(TantivyIndex(folder)) as index:
        for at in range(0, len(summaries), batch):
            index.apply(summaries[at : at + batch], {0: at + batch})


def timed(run: Callable[[Path, Sequence[Summary], int], None], summaries: Sequence[Summary], batch: int, again: bool) -> float:
    """Documents/s of one run into a new folder; with `again`, of replacing all documents once they are indexed."""
    with tempfile.TemporaryDirectory() as folder:
        if again:
            run(Path(folder), summaries, 2_000)
        started = time.perf_counter()
        run(Path(folder), summaries, batch)
        return len(summaries) / (time.perf_counter() - started)


def rows(documents: int = DOCUMENTS) -> list[Row]:
    """Run the measurements; return (name, figure, unit, remark) of each."""
    summaries = corpus(documents)
    made: list[Row] = []
    for name, batch, again in (("new", 2_000, False), ("new", 256, False), ("replaced", 2_000, True)):
        # The better of two runs each, alternating, so that a busy moment does not affect one side only.
        runs = [(timed(bare, summaries, batch, again), timed(harvest, summaries, batch, again)) for _ in range(2)]
        plain, ours = max(run[0] for run in runs), max(run[1] for run in runs)
        made.append((f"index, {name}, batches of {batch}", ours, f"documents/s; bare tantivy {plain:,.0f}"))
        made.append((f"index, {name}, batches of {batch}: ratio", ours / plain, "of bare tantivy"))
    return made + sizes_and_latency(summaries)


def sizes_and_latency(summaries: Sequence[Summary]) -> list[Row]:
    """Measure index bytes to summary bytes, and milliseconds per search."""
    chance = random.Random(7)
    words = [word.strip(".") for one in summaries[:200] for word in str(one.attributes["partial-text"][0]).split()]
    queries = [chance.choice(words) for _ in range(SEARCHES // 2)]
    queries += [f"{chance.choice(words)} OR ({chance.choice(words)} -title:{chance.choice(words)})" for _ in range(SEARCHES // 4)]
    queries += [f'"{" ".join(words[at : at + 2])}" type:html' for at in chance.sample(range(9_000), SEARCHES // 4)]
    with tempfile.TemporaryDirectory() as folder:
        harvest(Path(folder), summaries, 2_000)
        size = sum(path.stat().st_size for path in Path(folder).iterdir())
        taken = []
        with closing(TantivyIndex(Path(folder), writable=False)) as index:
            for query in queries:
                started = time.perf_counter()
                index.search(parse(query))
                taken.append((time.perf_counter() - started) * 1_000)
    cuts = quantiles(taken, n=100)
    data = sum(len(encode(one)) for one in summaries)
    return [
        ("index bytes to bytes of summaries", size / data, f"{size / len(summaries):,.0f} bytes a document"),
        ("search, 50 per cent", cuts[49], "ms"),
        ("search, 99 per cent", cuts[98], "ms"),
    ]


if __name__ == "__main__":
    for what, number, unit in rows():
        print(f"{what:45} {number:12,.2f}  {unit}")
