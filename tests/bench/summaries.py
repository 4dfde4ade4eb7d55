"""Measures Essence on a tree: source bytes to summary bytes by type, time by step, KB per minute; compared with the paper.

The paper (seed 003, 6.2, table 4) divides the size of the source by that of the index of its summaries, for file types that contain
no further files, weighted by their frequency and size: 38.81 on a department's file system, 21.93 on an FTP server. Its "indexing
rate", 2,589.67 and 1,961.69 KB/min on a Sun 4/280, is extraction and indexing together. So here: source bytes are those of files
that contain no further files, after gunzip; the ratio is given to the summaries (as SOIF) and to the index; the rate is that of
`harvest gather` with its index, by wall time on all cores, and by CPU time on one.
"""

from __future__ import annotations

import gzip
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from processors.broker.definition import MAIN
from processors.identity import file_path
from schemas.records import Summary
from schemas.soif_summary import to_template
from schemas.soif_writer import dumps
from streams.config.settings import cores
from streams.store import Store
from streams.store.data_folder import index_folder
from tests.bench.figures import BenchError, Figure
from tests.bench.objects import gathering, timed
from tests.bench.outcomes import records
from tests.bench.steps import OUTSIDE, REST, Split, measured

KB = 1_024
PAPER_RATIO = "Essence: 38.81 on a department's file system, 21.93 on an FTP server"
PAPER_RATE = "Essence: 2,589.67 on a Sun 4/280"
PAPER_STEPS = {"recognize": 23.8, "unnest": 36.6, "select": 1.1, "summarize": 38.5}
TYPES = 25
"""Number of types that have a line of their own."""


class Sizes(NamedTuple):
    """The number of files of a type, their bytes, and the bytes of their summaries."""

    files: int
    source: int
    summaries: int

    @property
    def ratio(self) -> float:
        """Source bytes for each byte of a summary."""
        return self.source / max(1, self.summaries)


def by_type(found: Iterable[Summary]) -> dict[str, Sizes]:
    """Sizes by type, of files that contain no further files."""
    sizes: dict[str, Sizes] = defaultdict(lambda: Sizes(0, 0, 0))
    for one in found:
        # A link has no content. A container counts by its members; an entry of a list is a part of another file.
        if one.type == "SymbolicLink" or "member-count" in one.attributes or "source" in one.attributes:
            continue
        files, source, summaries = sizes[one.type]
        sizes[one.type] = Sizes(files + 1, source + unpacked(one), summaries + len(dumps([to_template(one)])))
    return dict(sizes)


def unpacked(summary: Summary) -> int:
    """The size of a file, without gzip compression, which is common throughout documentation trees."""
    if summary.path or summary.attributes.get("encoding") != ("gzip",):
        return summary.size
    size = 0
    try:
        with gzip.open(file_path(summary.url)) as body:
            while data := body.read(1 << 20):
                size += len(data)
    except (OSError, EOFError):
        # Damaged: its intended content is unknown.
        return summary.size
    return size


def essence(roots: Sequence[Path], work: Path) -> Iterator[Figure]:
    """Measure all figures of a tree. Raises BenchError."""
    plainly, clocked = measured(roots, work, plainly=True), measured(roots, work)
    data = work / "data"
    gathered = timed(gathering(roots, data), work)
    with Store(data, readonly=True) as store:
        latest = {one.url: one for one in records(store, "summaries") if isinstance(one, Summary)}
    sizes = by_type(latest.values())
    if not sizes:
        raise BenchError("nothing was summarized")
    index = sum(path.stat().st_size for path in index_folder(data, MAIN).rglob("*") if path.is_file())
    yield from ratios(sizes, index)
    yield from steps(plainly, clocked)
    minutes = gathered.seconds / 60
    source = gathered.said["bytes_in"]
    how = f"{source:,} bytes as they are stored; {PAPER_RATE}"
    yield Figure("speed", "gather, all cores", source / KB / minutes, "KB/min", f"{cores()} cores, with log and index; {how}")
    yield Figure("speed", "gather, one core", source / KB / (gathered.cpu / 60), "KB/min", "the same by CPU time of all processes")
    alone = plainly.size / KB / (sum(plainly.steps.values()) / 60)
    yield Figure("speed", "essence alone, one core", alone, "KB/min", "one process that reads, digests and summarizes, by CPU time")


def ratios(sizes: dict[str, Sizes], index: int) -> Iterator[Figure]:
    """Measure source bytes to summary bytes."""
    total = Sizes(*map(sum, zip(*sizes.values(), strict=True)))
    told = f"{total.files:,} files, {total.source:,} bytes without gzip"
    yield Figure("ratio", "source to summaries", total.ratio, "bytes/byte", f"{told}, {total.summaries:,} of SOIF; {PAPER_RATIO}")
    yield Figure("ratio", "source to index", total.source / max(1, index), "bytes/byte", f"{index:,} bytes; {PAPER_RATIO}")
    weighted = sum(one.source * one.ratio for one in sizes.values()) / max(1, total.source)
    yield Figure("ratio", "average, by bytes of a type", weighted, "bytes/byte", "the paper's way: types' ratios, weighted")
    yield Figure("ratio", "average of types", fmean(one.ratio for one in sizes.values()), "bytes/byte", f"{len(sizes)} types")
    order = sorted(sizes.items(), key=lambda each: (-each[1].source, each[0]))
    for kind, one in order[:TYPES]:
        yield Figure("ratio", f"  {kind}", one.ratio, "bytes/byte", f"{one.files:,} files, {one.source:,} bytes")


def steps(plainly: Split, clocked: Split) -> Iterator[Figure]:
    """The shares of the steps, of all time and of the four together; the paper's shares add up to the latter."""
    four = sum(clocked.steps[step] for step in PAPER_STEPS)
    for step, paper in PAPER_STEPS.items():
        share = 100 * clocked.steps[step] / max(four, 1e-9)
        how = f"{clocked.steps[step]:.2f} s of CPU; Essence: {paper} on an FTP server's files"
        yield Figure("steps", step, share, "per cent", how)
    told = f"{clocked.steps[REST]:.2f} s of CPU beside the four: records, OIDs, paths"
    yield Figure("steps", "rest, to the four", 100 * clocked.steps[REST] / max(four, 1e-9), "per cent", told)
    spent, without = (sum(one.steps.values()) - one.steps[OUTSIDE] for one in (clocked, plainly))
    how = f"{spent:.2f} s with the clocks, which change {clocked.switches:,} times, {without:.2f} without"
    yield Figure("steps", "cost of the clocks", 100 * (spent / max(without, 1e-9) - 1), "per cent", how)
