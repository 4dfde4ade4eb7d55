"""The closing table of a run, from its tally, the rows and the index."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from processors.broker.definition import MAIN
from processors.essence.selection import PACKAGE_RULE
from processors.frontier.rows import Table
from schemas.query import Every
from schemas.records import Root
from sinks.index.tantivy.index import TantivyIndex
from streams.embedded import Embedded
from streams.embedded.held import HeldHost
from streams.embedded.runs import StartedRun
from streams.store.data_folder import index_folder

KEEP = "essence.packages_members = true"
"""The setting that gives files in software packages summaries of their own."""
WIDTH = 2_000
"""Width in columns without a terminal: more than that of the longest reason."""
WAITING = 100
"""Maximum number of hosts with a queue in the JSON form."""
REASONS = 12
"""Maximum number of reasons with a line of their own."""
TENFOLD = 10
"""From this ratio on, it is printed as a whole number."""


class RunReport(msgspec.Struct, frozen=True):
    """Counts of one run. Objects are files and pages; bytes are those of fetched bodies and of encoded summaries."""

    run: str
    roots: int
    objects: int
    listings: int
    summaries: int
    members: int
    """Summaries of unnested members, included in the summaries."""
    added: int
    changed: int
    unchanged: int
    removed: int
    removed_summaries: int
    copies: int
    refused: dict[str, int]
    rejected: dict[str, int]
    dead_links: int
    bytes_in: int
    bytes_summaries: int
    ratio: float | None
    seconds: float
    nothing_changed: bool
    waiting: list[dict[str, Any]]
    """Hosts that get no request yet, and the number of URLs that wait for them: see `embedded/held.py`."""
    brokers: dict[str, int]
    """Summaries that are new in each Broker, changed there, or removed from it."""
    unselected: dict[str, int] = msgspec.field(default_factory=dict)
    """Members of archives that have no summary because of a selection rule, by rule."""

    def as_json(self) -> dict[str, Any]:
        """Return the table as JSON."""
        return msgspec.structs.asdict(self)

    def print(self, *, verbose: bool = False) -> None:
        """Print the table for people, on standard error; `verbose`: also the rows that are zero."""
        from rich.console import Console
        from rich.table import Table as Shown

        console = Console(stderr=True, highlight=False)
        if not console.is_terminal:
            # Output to a file has no width limit: programs read it line by line.
            console.width = WIDTH
        shown = Shown(show_header=False, box=None, pad_edge=False)
        shown.add_column(justify="left")
        shown.add_column(justify="right")
        for name, value in self.rows(verbose=verbose):
            shown.add_row(name, value)
        if shown.row_count:
            console.print(shown)
        for text in self.remarks():
            console.print(text)

    def remarks(self) -> list[str]:
        """Return the sentences below the table. A share of more than 100 per cent is one of them, and no row."""
        remarks = []
        if self.ratio is not None and self.ratio > 1:
            times = f"{self.ratio:.2f}" if self.ratio < TENFOLD else f"{self.ratio:,.0f}"
            remarks.append(f"the summaries are larger than the objects ({times} times the bytes), as is usual for small ones")
        if self.nothing_changed:
            remarks.append("nothing changed")
        if files := self.unselected.get(PACKAGE_RULE, 0):
            remarks.append(f"files in software packages without a summary of their own: {files:,} ({KEEP} keeps them)")
        return remarks

    def rows(self, *, verbose: bool = False) -> list[tuple[str, str]]:
        """Return the names and values of the table; `verbose`: also those that are zero. None if it has only zeros."""
        counts = (
            ("objects fetched", self.objects),
            ("folders listed", self.listings),
            ("summaries made", self.summaries),
            ("of files unnested", self.members),
            ("objects added", self.added),
            ("objects changed", self.changed),
            ("objects unchanged", self.unchanged),
            ("objects removed", self.removed),
            ("summaries removed", self.removed_summaries),
            ("copies held", self.copies),
        )
        dropped = (("refused", self.refused), ("not selected", self.unselected), ("rejected", self.rejected))
        reasons = [reason for what, counted in dropped for reason in _reasons(what, counted)]
        if self.dead_links:
            reasons.append(("links that lead nowhere", self.dead_links))
        reasons += [(f"changed in Broker {name}", n) for name, n in self.brokers.items() if name != MAIN or not self.summaries]
        sizes = [("bytes in", self.bytes_in), ("bytes of summaries", self.bytes_summaries)]
        rows = [(_plain(name), f"{n:,}") for name, n in (*counts, *reasons, *sizes) if n or verbose]
        share = self.ratio or 0.0
        if 0 < share <= 1 or (verbose and not share):
            rows.append(("summaries to bytes in", "-" if self.ratio is None else f"{share:.1%}"))
        return [*rows, ("seconds", f"{self.seconds:.1f}")] if rows else []


def _reasons(what: str, counts: dict[str, int]) -> list[tuple[str, int]]:
    """Return the most frequent reasons with their counts, and one entry for all others."""
    found = [(f"{what}: {why}", n) for why, n in counts.items()]
    rest = sum(n for _, n in found[REASONS:])
    return [*found[:REASONS], *([(f"{what}: other reasons", rest)] if rest else [])]


def _plain(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text).replace("[", "\\[")


def closing(runner: Embedded, begun: StartedRun, roots: Sequence[Root], seconds: float, held: Sequence[HeldHost] = ()) -> RunReport:
    """Return the table of a run that has just ended; `held`: hosts whose queues it leaves."""
    tally, run = runner.tally, begun.run
    unchanged = tally.unchanged
    if not begun.first:
        unchanged += _untouched(runner, run.id, {root.url for root in roots})
    made = tally.summaries or tally.removed_summaries or tally.rejected
    return RunReport(
        run=run.id,
        roots=len(roots),
        objects=tally.fetched,
        listings=tally.listings,
        summaries=tally.summaries,
        members=tally.members,
        added=tally.added,
        changed=tally.changed,
        unchanged=unchanged,
        removed=tally.removed,
        removed_summaries=tally.removed_summaries,
        copies=_copies(runner),
        refused=dict(tally.refused.most_common()),
        rejected=dict(tally.rejected.most_common()),
        dead_links=tally.dead,
        bytes_in=tally.bytes_in,
        bytes_summaries=tally.bytes_summaries,
        ratio=round(tally.bytes_summaries / tally.bytes_in, 4) if tally.bytes_in else None,
        seconds=round(seconds, 3),
        nothing_changed=not (made or tally.brokers),
        waiting=[each.as_json() for each in held[:WAITING]],
        brokers=dict(sorted(tally.brokers.items())),
        unselected=dict(tally.unselected.most_common()),
    )


def _untouched(runner: Embedded, run: str, roots: set[str]) -> int:
    """Return the number of files that were not requested, since their folder's listing showed no change since an earlier run.

    A folder that could not be listed shows nothing of its content.
    """
    within: Counter[str] = Counter()
    unseen: list[str] = []
    for rows in runner.frontier_rows():
        for _, _, known in Table(rows).all():
            if known.kind == "folder" and known.state != "ok":
                unseen.append(known.url)
            elif known.state == "ok" and not known.listing and known.run != run and not roots.isdisjoint(known.roots):
                within[known.url.rpartition("/")[0] + "/"] += 1
    return within.total() - sum(within[url] for url in unseen)


def _copies(runner: Embedded) -> int:
    """Return the number of the Broker's summaries that are copies of another."""
    index = TantivyIndex(index_folder(runner.folder, MAIN), writable=False)
    try:
        return index.count(Every()) - index.search(Every(), limit=0).total
    finally:
        index.close()
