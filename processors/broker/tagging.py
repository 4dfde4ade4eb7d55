"""Tags of the register stage: which views each summary of a Broker is in, and its publication again where they change.

Strategy: what register publishes gets the tags of the present definitions. A definition that comes, changes or goes begins a sweep:
the entries are worked through on ticks, CHUNK a tick, and those whose tags differ are published again. A definition that comes
during a sweep begins it anew, and so does a partition that is taken with other languages than the last sweep was made for.

Laws:
- When no sweep is due, each summary was last published with the tags of the present definitions.
- The publish counter stays that of the entry's row; a summary whose tags stay is not published again.
- A redelivered tick works through its chunk again, and repeats what it, or a later tick that is not committed, has published.
- A definition older than the known one of its path is ignored (`views.order`).

Rows: `v|key` (definition, also of a removed view), `w|oid` (tags as published, and the tick that caused it; only where there are
any, or where a tick took them), `y` (the sweep).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import cast

import msgspec
from msgspec.structs import replace

from processors.broker.entry import PREFIX, Entry, encode_row, load
from processors.broker.settling import Registered
from processors.broker.views import Tree, key_of, latest, order, tags, tree
from processors.query.forms import DEFAULT_LANGUAGES
from schemas.codec import decode, encode, publish
from schemas.ports import Origin, Rows
from schemas.records import Removed, Role, Summary, Tick, View

CHUNK = 100
"""Maximum number of entries that a tick works through."""
TREES = 8
"""Maximum number of sets of definitions that are kept compiled: the partitions of a Broker differ only while a definition comes."""
DEFINITION, TAGS, SWEEP = b"v|", b"w|", b"y"


class Tagged(msgspec.Struct, frozen=True, array_like=True):
    """Tags of a summary as it was last published."""

    views: tuple[str, ...]
    tick: int = -1
    """Offset of the tick that published it for these tags; -1: it was published for another reason."""


class Sweep(msgspec.Struct, frozen=True, array_like=True):
    """Progress through the entries."""

    after: bytes = b""
    """Key of the last entry that was worked through."""
    due: bool = True
    begun: tuple[tuple[int, bytes], ...] = ()
    """Offsets of ticks that may come again, each with the key that its chunk began after."""
    defined: bytes = b""
    """Digest of the definitions; empty: it is made when they are needed next."""
    languages: tuple[str, ...] = DEFAULT_LANGUAGES
    """Languages that the tags are made for."""

    def anew(self, languages: tuple[str, ...], *, due: bool = True) -> Sweep:
        """Return a sweep from the first entry, of definitions that are still to be read."""
        return Sweep(due=due, begun=tuple((tick, b"") for tick, _ in self.begun), languages=languages)


_pack = msgspec.msgpack.encode
_tagged = msgspec.msgpack.Decoder(Tagged).decode
_sweep = msgspec.msgpack.Decoder(Sweep).decode


@dataclass(frozen=True)
class Tagging:
    """The register stage with tags: `register` decides what is published, `due` when it needs ticks, `again` what is read anew."""

    register: Callable[[Rows, Summary | Removed | Role | Tick, Origin], Iterator[Registered]]
    due: Callable[[Rows], int | None]
    again: Callable[[Rows, Mapping[str, int]], tuple[str, ...]]
    languages: tuple[str, ...] = DEFAULT_LANGUAGES
    """Languages whose words the queries of views find in all their forms."""
    trees: dict[bytes, Tree] = field(default_factory=dict, compare=False, repr=False)
    """Cache: the compiled definitions by their digest."""

    def process(self, rows: Rows, record: Summary | Removed | Role | View | Tick, origin: Origin) -> Iterator[Registered]:
        """Yield what `register` yields for a record, summaries with their tags, and what a tick publishes again for its tags."""
        if isinstance(record, View):
            self._define(rows, record)
            return
        rules = self._rules(rows)
        for made in self.register(rows, record, origin):
            if isinstance(made, Summary):
                yield _tag(rows, made, tags(rules, made), -1)
            else:
                if isinstance(made, Removed):
                    _untag(rows, made.oid)
                yield made
        if isinstance(record, Tick):
            yield from _swept(rows, rules, origin)

    def restart(self, rows: Rows, committed: Mapping[str, int]) -> tuple[str, ...]:
        """Return what `again` returns; tags that were made for other languages are made anew."""
        value = rows.get(SWEEP)
        if value is not None and (sweep := _sweep(value)).languages != self.languages:
            rows.put(SWEEP, _pack(sweep.anew(self.languages)))
        return self.again(rows, committed)

    def _define(self, rows: Rows, view: View) -> None:
        key = DEFINITION + key_of(view.path).encode()
        value = rows.get(key)
        if value is not None and order(cast("View", decode(value))) > order(view):
            return
        # An equal one is a redelivery: the sweep may not have begun.
        rows.put(key, encode(view))
        known = rows.get(SWEEP)
        held = any(True for _ in rows.scan(PREFIX, limit=1))
        rows.put(SWEEP, _pack((_sweep(known) if known is not None else Sweep()).anew(self.languages, due=held)))

    def deadline(self, rows: Rows) -> int | None:
        """Return the time of the next tick: at once while a sweep is due."""
        value = rows.get(SWEEP)
        return 0 if value is not None and _sweep(value).due else self.due(rows)

    def _rules(self, rows: Rows) -> Tree:
        """Return the present definitions compiled; the digest spares reading them for each record."""
        value = rows.get(SWEEP)
        if value is None:
            return ()
        sweep = _sweep(value)
        known = self.trees.get(sweep.defined)
        if known is not None:
            return known
        values = tuple(found for _, found in rows.scan(DEFINITION))
        defined = hashlib.sha256(_pack(values)).digest()
        if sweep.defined != defined:
            rows.put(SWEEP, _pack(replace(sweep, defined=defined)))
        if len(self.trees) >= TREES:
            self.trees.clear()
        made = self.trees[defined] = tree(latest(cast("View", decode(one)) for one in values), self.languages)
        return made


def definitions(found: Iterator[tuple[bytes, bytes]]) -> dict[str, View]:
    """Return the views that hold, by key, from rows whose key begins with DEFINITION."""
    return latest(cast("View", decode(value)) for _, value in found)


def _swept(rows: Rows, rules: Tree, origin: Origin) -> Iterator[Summary]:
    """Work through a chunk; a tick that comes again begins where it began before."""
    value = rows.get(SWEEP)
    if value is None:
        return
    sweep = _sweep(value)
    begun = {tick: after for tick, after in sweep.begun if tick >= origin.committed}
    if not sweep.due and origin.offset not in begun:
        return
    after = sweep.after if sweep.due else b"\xff"
    after = min(after, begun.get(origin.offset, after))
    begun[origin.offset] = after
    count, last = 0, after
    # The sweep is written last: if the rows are lost behind a part of the chunk, the tick begins it anew.
    for key, _ in list(rows.scan(PREFIX, after, CHUNK)):
        count, last = count + 1, key
        yield from _retagged(rows, key, rules, origin)
    rows.put(SWEEP, _pack(replace(sweep, after=last, due=count == CHUNK, begun=tuple(sorted(begun.items())))))


def _retagged(rows: Rows, key: bytes, rules: Tree, origin: Origin) -> Iterator[Summary]:
    entry = load(rows, key)
    if not entry.summary:
        return
    summary = _said(entry)
    value = rows.get(TAGS + summary.oid.encode())
    known = _tagged(value) if value is not None else Tagged(())
    wanted = tags(rules, summary)
    if known.views != wanted or known.tick >= origin.committed:
        yield _tag(rows, _republished(rows, key, entry), wanted, origin.offset)


def _republished(rows: Rows, key: bytes, entry: Entry) -> Summary:
    """Return the next publication of an entry; its row gets the counter, and keeps what caused the one before."""
    entry = replace(entry, published=max(entry.published + 1, entry.version))
    rows.put(key, encode_row(entry))
    return _said(entry)


def _said(entry: Entry) -> Summary:
    said = {"copy_of": entry.copy_of, "copies": entry.copies, "copies_count": entry.count}
    return publish(cast("Summary", decode(entry.summary)), published=entry.published, **said)


def _tag(rows: Rows, summary: Summary, wanted: tuple[str, ...], tick: int) -> Summary:
    key = TAGS + summary.oid.encode()
    if not wanted and tick < 0:
        _untag(rows, summary.oid)
    else:
        made = _pack(Tagged(wanted, tick))
        if rows.get(key) != made:
            rows.put(key, made)
    return publish(summary, views=wanted) if wanted != summary.views else summary


def _untag(rows: Rows, oid: str) -> None:
    if rows.get(TAGS + oid.encode()) is not None:
        rows.delete(TAGS + oid.encode())
