"""A stage with a definition: python -m tests.streams.kafka.redefined BROKER PREFIX PARTITIONS FOLDER DEFINITION [WHERE:N].

It publishes the summaries whose URL ends in the definition, each time that it reads one, and a removal for each answer of dedup.
Its row `d|` holds the definition that its other rows are of; the cut is that of `stage.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping

from schemas.codec import publish
from schemas.ports import Origin, Rows
from schemas.records import Removed, Role, Summary, Tick
from streams.kafka.worker.stopping import end_process
from streams.topology.flow import SUMMARIES, Stage, archive, copies
from tests.streams.kafka import stacks
from tests.streams.kafka.stage import run

NAME = "register.main"
TAKES = "takes a partition"
"""Line that it prints for each partition that it takes over."""


def redefined(definition: str) -> Stage[Summary | Removed | Role | Tick, Summary | Removed]:
    """The stage."""

    def process(rows: Rows, record: Summary | Removed | Role | Tick, origin: Origin) -> Iterator[Summary | Removed]:
        if isinstance(record, Tick):
            rows.put(b"d|", definition.encode())
        elif isinstance(record, Role):
            yield Removed(oid=record.oid, url=record.oid, object_url=record.oid, version=1, time=1, reason="gone")
        elif isinstance(record, Summary) and record.url.endswith(definition):
            rows.put(b"r|" + record.oid.encode(), b"")
            yield publish(record, published=1, copy_of="", copies=(), copies_count=0)

    def restart(rows: Rows, _: Mapping[str, int]) -> tuple[str, ...]:
        print(TAKES, flush=True)
        if rows.get(b"d|") == definition.encode():
            return ()
        rows.put(b"d|", b"")
        return (SUMMARIES.name,)

    return Stage(
        NAME,
        (SUMMARIES, copies("main")),
        (archive("main"),),
        process,
        "URLs",
        deadline=lambda _: None,
        restart=restart,
    )


if __name__ == "__main__":
    stacks.told()
    address, prefix, partitions, folder, definition, *cut = sys.argv[1:]
    run(redefined(definition), address, prefix, int(partitions), folder, *cut)
    end_process()
