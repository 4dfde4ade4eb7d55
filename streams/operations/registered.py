"""Entries of a Broker's Registry, read from the rows of its stage in a data folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from processors.broker.entry import Entry
from schemas.codec import decode
from schemas.records import Removed, Summary
from sinks.index.errors import QueryRefused
from streams.store import partition
from streams.store.data_folder import known
from streams.topology.flow import archive

if TYPE_CHECKING:
    from sinks.index.compiled import Records
    from streams.store import Store


def entry(store: Store, broker: str, oid: str) -> Entry | None:
    """Return the entry of the Broker's Registry for a summary, also a removed one."""
    if (count := store.topics().get(archive(broker).name)) is None:
        return None
    rows = store.rows(f"register.{broker}", partition(oid.encode(), count))
    value = rows.get(b"r|" + oid.encode()) if rows is not None else None
    return msgspec.msgpack.decode(value, type=Entry) if value is not None else None


def summary_of(found: Entry) -> Summary | None:
    """Return the Broker's version of an entry's summary; None if it was removed."""
    if not found.summary:
        return None
    summary: Any = decode(found.summary)
    role = {"copy_of": found.copy_of, "copies": found.copies, "copies_count": found.count}
    return msgspec.structs.replace(summary, published=found.published, **role)  # type: ignore[no-any-return]


def records(folder: Path, broker: str) -> Records:
    """Return a function that reads the Broker's summaries from a data folder, by OID. It raises QueryRefused if there are none."""

    def read(oids: Sequence[str]) -> Mapping[str, Summary | Removed]:
        with known(folder) as store:
            if store is None or archive(broker).name not in store.topics():
                raise QueryRefused("this query is checked with the summaries themselves, and this folder has an index alone")
            entries = ((oid, entry(store, broker, oid)) for oid in oids)
            return {oid: summary for oid, found in entries if found is not None and (summary := summary_of(found)) is not None}

    return read
