"""Measures the bytes of a data folder of many small documents: to its text, to its index, and part by part.

Small documents are the hard case: what Harvest knows of a document (URLs, digests, times) is as large as its text.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from processors.broker.definition import MAIN
from streams.operations.folder_sizes import folder_sizes
from streams.store import Store
from streams.store.data_folder import index_folder
from streams.topology.flow import TopologySettings, topology
from tests.bench.figures import Figure, Goal
from tests.bench.judged import Collection
from tests.bench.objects import gathering, timed

PARTS = 6
"""Parts of the store that are named."""


def files(collection: Collection, most: int, folder: Path) -> int:
    """Write at most that many documents of a collection, a file each; return the bytes of their text."""
    folder.mkdir()
    for document in collection.documents[:most]:
        parts = (document.title, document.author, document.text)
        (folder / f"{document.name}.txt").write_text("\n\n".join(filter(None, parts)) + "\n", "utf-8")
    return sum(path.stat().st_size for path in folder.iterdir())


def measured(collection: Collection, most: int, work: Path) -> Iterator[Figure]:
    """Measure the figures of a collection, with the default retention."""
    folder, data = work / collection.name, work / f"data-{collection.name}"
    text = files(collection, most, folder)
    count = len(os.listdir(folder))
    run = timed(gathering([folder], data), work)
    index = sum(path.stat().st_size for path in index_folder(data, MAIN).rglob("*") if path.is_file())
    with Store(data, readonly=True) as store:
        sizes = folder_sizes(data, store, topology(TopologySettings()))
    whole = sum(size for _, size in sizes.entries)
    name = f"size, {collection.name}"
    yield Figure(name, "text", text, "bytes", f"{count:,} files")
    yield Figure(name, "data folder", whole, "bytes", ", ".join(f"{part} {size:,}" for part, size in sizes.entries if size > 100))
    yield Figure(name, "index to text", index / text, "bytes/byte")
    yield Figure(name, "data folder to text", whole / text, "bytes/byte")
    yield Figure(name, "to text and index", whole / (text + index), "bytes/byte", "the whole data folder", Goal("<=", 4))
    yield Figure(name, "kept for the retention", sizes.history / whole, "of 1", f"{sizes.history:,} bytes of topics")
    for part, size in sizes.store[:PARTS]:
        yield Figure(name, part, size / count, "bytes", "in the store, for each document")
    yield Figure(name, "CPU", run.cpu / count * 1_000, "ms", "of all processes, for each document, start-up included")
