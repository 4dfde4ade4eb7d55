"""Streams of changes of another Gatherer: applied one after the other they equal the whole, whatever is lost or comes again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from processors.collector import is_part, unused
from processors.gatherer.catalog import Input, catalog, member_version
from processors.identity import oid
from schemas.ports import Origin
from schemas.records import Complete, FetchedObject, Partial, Rejected, Removed, Summary, Withdrawn
from schemas.soif import dumps
from schemas.soif_summary import to_template
from streams.simulator import MemoryRows
from tests.processors.essence.collected_streams import (
    LIST,
    PART,
    ROOT,
    UNUSED_PART,
    Source,
    collected,
    foreign,
    gone,
    stream,
    summaries,
    withdrawn,
)


def test_removal_in_changes_is_one_record() -> None:
    """A template in DELETE withdraws its member; the stream ends in Partial, without a rejection or a further fetch."""
    records = collected(stream(foreign("a"), gone("b"), coverage="changes"), status=226)
    assert [type(one) for one in records] == [Summary, Withdrawn, Partial]
    end = cast("Partial", records[-1])
    removal = cast("Withdrawn", records[1])
    assert removal == Withdrawn(object_url=PART, version=5, time=9, attempt=end.attempt, path=foreign("b").oid)
    assert end.count == 1


def test_last_template_in_changes_counts() -> None:
    """What is removed and comes back is no removal; what comes and is removed is one, once."""
    records = collected(stream(gone("a"), foreign("a"), foreign("b"), gone("b"), gone("b"), coverage="changes"))
    assert [one.location[-1] for one in summaries(records)] == ["a"]
    assert withdrawn(records) == [foreign("b").oid]


def test_status_226_is_never_everything() -> None:
    """An answer with changes removes nothing by absence, whatever its head states; nor does one of 1995 without a head."""
    for body in (stream(foreign("a")), dumps([to_template(foreign("a"))._replace(within=("UPDATE",))])):
        assert isinstance(collected(body, status=226)[-1], Partial)
        assert isinstance(collected(body)[-1], Complete)


def test_removals_of_a_whole_stream_need_no_record() -> None:
    """A whole stream ends in Complete, which removes what is absent: its DELETE gives no record."""
    records = collected(stream(foreign("a"), gone("b")))
    assert [type(one) for one in records] == [Summary, Complete]


def test_changes_with_a_bad_template_are_fetched_again() -> None:
    """The other templates are taken, removals too, and the whole is asked for: no later change would mention the bad one."""
    bad = dumps([to_template(foreign("bad"))._replace(within=("UPDATE",))]).replace(b"file-size{1}:\t0", b"file-size{4}:\tmany")
    assert b"many" in bad
    body = stream(foreign("a"), gone("b"), count=3, coverage="changes").replace(b"@END", bad + b"@END", 1)
    records = collected(body, status=226)
    assert [type(one) for one in records] == [Summary, Withdrawn, Rejected, type(UNUSED_PART), Partial]
    assert records[-2] == UNUSED_PART


def test_changes_of_1995() -> None:
    """DELETE withdraws by the OID of URL and Gatherer; without a Gatherer's name, by that of the stream."""
    named = b"@DELETE {\n@FILE { ftp://ftp.example.org/b\nGatherer-Name{3}:\tOld\n}\n}\n"
    assert withdrawn(collected(named)) == [oid("Old", "ftp://ftp.example.org/b")]
    update = b"@UPDATE {\n@FILE { ftp://ftp.example.org/a\nGatherer-Name{3}:\tOld\nType{4}:\tText\n}\n}\n"
    records = collected(b"@DELETE {\n@FILE { ftp://ftp.example.org/b\n}\n@FILE { ftp://ftp.example.org/a\n}\n}\n" + update)
    assert oid("Old", "ftp://ftp.example.org/b") in withdrawn(records)
    (made,) = summaries(records)
    assert made.path == oid("Old", "ftp://ftp.example.org/a")
    assert made.path not in withdrawn(records)
    assert isinstance(records[-1], Partial)


def test_unused_stream_names_its_request() -> None:
    """The event for a stream without use has URL, version and root of the object, so that only its row is concerned."""
    obj = FetchedObject(url=PART, version=5, time=9, outcome="fetched", root=ROOT)
    assert unused(obj) == UNUSED_PART


@pytest.mark.parametrize(
    ("root", "url", "known"),
    [
        (LIST, PART, True),
        (LIST, LIST, False),
        (LIST, "http://other.example/gatherer/soif/3", False),
        ("http://source.example/", PART, False),
    ],
)
def test_only_parts_have_changes(root: str, url: str, known: bool) -> None:
    """Changes are asked for below a collected root alone."""
    assert is_part(root, url) == known


@dataclass
class Collector:
    """The catalog, its inputs in the order of the log, and what it has published by OID."""

    rows: MemoryRows = field(default_factory=MemoryRows)
    log: list[Input] = field(default_factory=list)
    published: dict[str, Summary | Removed] = field(default_factory=dict)
    committed: int = 0

    def take(self, records: list[Any]) -> None:
        """Append records to `made`, and apply them."""
        self.log += [one for one in records if isinstance(one, Summary | Complete | Partial | Withdrawn)]
        self.apply(self.committed)

    def apply(self, start: int, *, outputs: bool = True) -> None:
        """Apply the log from an offset; without `outputs` they are lost, as in a crash before they are written."""
        for offset, record in enumerate(self.log[start:], start):
            for one in catalog(self.rows, record, Origin("made", 0, offset, start)):
                if outputs and (one.oid not in self.published or one.version >= self.published[one.oid].version):
                    self.published[one.oid] = one

    def texts(self) -> dict[str, str]:
        """Return the texts by name."""
        found = (one for one in self.published.values() if isinstance(one, Summary))
        return {one.location.rpartition("/")[2]: str(one.attributes["title"][0]) for one in found}


NAMES, TEXTS = st.sampled_from("abcd"), st.sampled_from(["", "x", "y", "z"])
STEPS = st.one_of(
    st.tuples(st.just("put"), NAMES, TEXTS),
    st.sampled_from([("pass",), ("damaged",), ("lost",), ("twice",), ("again",), ("crash",), ("renew",)]),
)


@settings(max_examples=300, deadline=None)
@given(steps=st.lists(STEPS, max_size=25))
@example(steps=[("put", "a", "x"), ("pass",), ("put", "a", ""), ("twice",), ("again",)])
@example(steps=[("put", "a", "x"), ("pass",), ("put", "a", ""), ("crash",), ("put", "a", "x"), ("pass",)])
@example(steps=[("put", "a", "x"), ("pass",), ("put", "a", ""), ("damaged",)])
def test_changes_equal_the_whole(steps: list[tuple[str, ...]]) -> None:
    """Whatever is lost, damaged, answered twice or delivered again: after the next pass the collector has what the source has."""
    source, collector = Source(), Collector()
    etag, version = "", 0

    def answer() -> None:
        status, body = source.answer(etag)
        collector.take(collected(body, status=status, version=version))

    for kind, *values in [*steps, ("pass",)]:
        version += kind in ("pass", "damaged", "lost", "twice", "crash")
        if kind == "put":
            source.put(*values)
        elif kind == "renew":
            source.renew()
        elif kind == "damaged":
            records = collected(source.answer(etag)[1][:-30], status=226, version=version)
            assert any(getattr(one, "reason", "") == UNUSED_PART.reason for one in records)
            collector.take(records)
            etag = ""
        elif kind == "again":
            collector.committed = len(collector.log) // 2
            collector.apply(collector.committed)
        elif kind != "lost":
            answer()
            if kind == "twice":
                source.put("a", "twice")
                answer()
            if kind == "crash":
                # The rows of the batch are kept, its outputs are lost, and it is delivered again.
                collector.apply(collector.committed, outputs=False)
                collector.apply(collector.committed)
            collector.committed = len(collector.log)
            etag = source.etag
    assert collector.texts() == source.texts


def test_order_of_versions_does_not_matter_for_a_removal() -> None:
    """An older summary that arrives behind the removal of its member, known or not, does not bring it back."""
    older, removal = collected(stream(foreign("a"))), collected(stream(gone("a"), coverage="changes"), version=6)
    newer = collected(stream(foreign("a")), version=7)
    for arrivals in (removal, older), (older, removal, older):
        collector = Collector()
        for records in arrivals:
            collector.take(records)
        assert collector.texts() == {}
        assert not member_version(collector.rows, PART, foreign("a").oid)
        collector.take(newer)
        collector.take(removal)
        assert collector.texts() == {"a": "a"}


def test_removal_of_an_unknown_member_publishes_nothing() -> None:
    """In a ring of Gatherers it would go round for ever: each would pass it on under an OID of its own."""
    collector = Collector()
    collector.take(collected(stream(gone("a"), coverage="changes")))
    assert collector.published == {}


def test_late_whole_does_not_bring_back_what_changes_removed() -> None:
    """A whole stream older than the changes, delivered twice behind them, leaves their removals as they are."""
    removal, older = collected(stream(gone("a"), coverage="changes"), version=7), collected(stream(foreign("a")), version=6)
    collector = Collector()
    for records in (removal, older, older):
        collector.committed = len(collector.log)
        collector.take(records)
    assert collector.texts() == {}


def test_rows_of_removed_members_end_with_the_next_whole() -> None:
    """Until a whole stream arrives, rows note what is gone; after it none is left."""
    collector = Collector()
    bodies = stream(foreign("a")), stream(gone("a"), gone("b"), coverage="changes"), stream(foreign("c"))
    for version, body in enumerate(bodies, 5):
        collector.committed = len(collector.log)
        collector.take(collected(body, version=version))
    kept = [key for key, _ in collector.rows.scan(b"m|")]
    assert [key.rpartition(b"\0")[2].decode() for key in kept] == [foreign("c").oid]


def test_changes_that_were_not_requested_are_no_whole() -> None:
    """An answer with status 200 that has changes alone is used, and the whole is asked for: it is no base of later changes."""
    records = collected(stream(foreign("a"), gone("b"), coverage="changes"))
    assert [type(one) for one in records] == [Summary, Withdrawn, type(UNUSED_PART), Partial]
    assert records[-2] == UNUSED_PART
