"""Guarantees of the OpenSearch engine beyond BrokerIndex: documents, and answers per item."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from processors.query import parse
from schemas.ports import Page
from schemas.query import And, Every, Phrase, Word
from schemas.records import Removed, Summary
from sinks.index.document import WORDED
from sinks.index.errors import IndexUnreachable, QueryRefused
from sinks.index.opensearch import aliases, schema, search
from sinks.index.opensearch import index as opensearch_index
from sinks.index.opensearch import node as opensearch_node
from sinks.index.opensearch.index import OpenSearchIndex

if TYPE_CHECKING:
    from opensearchpy import OpenSearch

DAY = 86_400_000

Make = Callable[..., Summary]
Remove = Callable[..., Removed]


def block(client: OpenSearch, index: str, what: str, *, on: bool) -> None:
    """Make the server refuse writes, or accept them again."""
    client.indices.put_settings(index=index, body={f"index.blocks.{what}": on or None})


@pytest.mark.usefixtures("narrow")
def test_refused_item_is_returned_with_reason(open_index: Callable[..., OpenSearchIndex], summary: Make, removed: Remove) -> None:
    """A refused change is returned with its reason; the others of its batch are applied, and the offset advances."""
    batch: list[Summary | Removed] = [
        summary("http://a/", published=1),
        summary("http://b/", published=1_000),
        removed("http://c/", published=2_000),
        summary("http://d/", published=2),
    ]
    with closing(open_index()) as index:
        refused = index.apply(batch, {0: 4})
        assert [one.change for one in refused] == batch[1:3]
        assert all("published" in one.reason and len(one.reason) <= 300 for one in refused)
        assert [hit.url for hit in index.search(Every()).hits] == ["http://a/", "http://d/"]
        assert index.offsets() == {0: 4}


def test_attribute_names_leave_mapping_unchanged(
    open_index: Callable[..., OpenSearchIndex], search_client: OpenSearch, summary: Make
) -> None:
    """Thousands of distinct attribute names leave the mapping unchanged, and each is found by its name."""
    with closing(open_index()) as index:
        before = search_client.indices.get_mapping(index=index.alias)
        given = {f"name {number}": f"value {number}" for number in range(3_000)}
        index.apply([summary("http://a/", attributes=given)], {})
        assert search_client.indices.get_mapping(index=index.alias) == before
        assert index.count(And((Word("2999", "name 2999"), Word("7", "name 7")))) == 1
        assert index.count(Word("7", "name 8")) == 0


def test_oid_of_any_length_is_restored(
    open_index: Callable[..., OpenSearchIndex], search_client: OpenSearch, summary: Make
) -> None:
    """An OID of any length becomes an identifier of at most 512 bytes, and is restored in answers."""
    names = ["é" * 9_000, "é" * 9_001, "0" * 64]
    with closing(open_index()) as index:
        index.apply([summary(f"http://{len(oid)}/", oid=oid) for oid in names], {})
        found = search_client.search(index=index.alias, body={"stored_fields": []})["hits"]["hits"]
        assert all(len(hit["_id"].encode()) <= 512 for hit in found)
        assert {hit.oid for hit in index.search(Every()).hits} == set(names)
        assert list(index.scroll(Every())) == sorted(names)


def test_every_document_has_all_word_fields(
    open_index: Callable[..., OpenSearchIndex],
    search_client: OpenSearch,
    summary: Make,
    removed: Remove,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every document has all word fields, even removals: otherwise the engine takes half as long again for all documents."""
    monkeypatch.setattr(opensearch_index, "SWEEP", 0)
    with closing(open_index()) as index:
        index.apply([summary("http://a/"), removed("http://b/", published=2, time=1)], {0: 2})
        assert search_client.count(index=index.alias)["count"] == 4
        for field in WORDED:
            lacking = {"query": {"bool": {"must_not": {"exists": {"field": field}}}}}
            assert search_client.count(index=index.alias, body=lacking)["count"] == 0


def test_removals_are_retained_for_90_days(open_index: Callable[..., OpenSearchIndex], summary: Make, removed: Remove) -> None:
    """Removals are retained for 90 days of their own time, no longer and no shorter, also across processes."""
    with closing(open_index()) as index:
        index.apply([removed("http://a/", published=5, time=1_000 * DAY)], {})
        index.apply([removed("http://b/", published=5, time=1_089 * DAY)], {0: 2})
        index.apply([summary("http://a/", published=4), summary("http://b/", published=4)], {})
        assert index.count(Every()) == 0
    with closing(open_index()) as index:
        assert index.offsets() == {0: 2}
        index.apply([removed("http://c/", published=5, time=1_091 * DAY)], {})
        found: list[str] = []
        while not found:
            # The engine itself retains a deletion for some tenths of a second; the test's time limit ends the wait.
            index.apply([summary("http://a/", published=4), summary("http://b/", published=4)], {})
            found = [hit.url for hit in index.search(Every()).hits]
            time.sleep(0.0 if found else 0.1)
        assert found == ["http://a/"]


def test_overload_is_retried(
    open_index: Callable[..., OpenSearchIndex], search_client: OpenSearch, monkeypatch: pytest.MonkeyPatch, summary: Make
) -> None:
    """A batch rejected for lack of capacity (429) is applied once there is capacity."""
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        """Restore the capacity after two refusals."""
        pauses.append(seconds)
        if pauses == [0, *opensearch_node.PAUSES[:2]]:
            block(search_client, index.alias, "read_only_allow_delete", on=False)

    monkeypatch.setattr(opensearch_node, "time", SimpleNamespace(sleep=sleep))
    with closing(open_index()) as index:
        pauses.clear()
        block(search_client, index.alias, "read_only_allow_delete", on=True)
        index.apply([summary("http://a/")], {0: 1})
        assert pauses[:3] == [0, *opensearch_node.PAUSES[:2]]
        assert index.count(Every()) == 1


@pytest.mark.parametrize("what", ["read_only_allow_delete", "write"])
def test_blocked_write_fails_the_batch(
    open_index: Callable[..., OpenSearchIndex],
    search_client: OpenSearch,
    monkeypatch: pytest.MonkeyPatch,
    summary: Make,
    what: str,
) -> None:
    """If the server stays overloaded or blocks writes, no change is rejected: the batch fails, and its offset stays."""
    monkeypatch.setattr(opensearch_node, "PAUSES", (0.01,))
    with closing(open_index()) as index:
        index.apply([summary("http://a/")], {0: 1})
        block(search_client, index.alias, what, on=True)
        with pytest.raises(IndexUnreachable, match="index"):
            index.apply([summary("http://b/")], {0: 2})
        block(search_client, index.alias, what, on=False)
        assert index.offsets() == {0: 1}
        assert index.count(Every()) == 1


def test_full_disk_error_has_server_reason(
    open_index: Callable[..., OpenSearchIndex], search_client: OpenSearch, monkeypatch: pytest.MonkeyPatch, summary: Make
) -> None:
    """The error of a write to a server with a full disk contains the server's reason."""
    monkeypatch.setattr(opensearch_node, "PAUSES", (0.01,))
    with closing(open_index()) as index:
        block(search_client, index.alias, "read_only_allow_delete", on=True)
        with pytest.raises(IndexUnreachable, match=r"the index is too busy: http:.*disk usage exceeded flood-stage watermark"):
            index.apply([summary("http://b/")], {0: 2})


def test_shard_limit_is_transient(opensearch: str, name: str) -> None:
    """A cluster at its shard limit is a transient failure, not an error of the request."""
    node = opensearch_node.Node(opensearch)
    with pytest.raises(IndexUnreachable, match=r"would add .* shards"):
        node.ask("PUT", f"/{name}-0", {"settings": {"number_of_shards": 1_024}})
    node.close()


def test_closed_index_fails_until_opened(
    open_index: Callable[..., OpenSearchIndex], search_client: OpenSearch, summary: Make, removed: Remove
) -> None:
    """A closed index neither rejects nor accepts changes: every operation fails until it is opened again."""
    with closing(open_index(fresh=False)) as index:
        index.apply([summary("http://a/")], {0: 1})
        search_client.indices.close(index=index.alias)
        tries: list[Callable[[], object]] = [
            lambda: index.apply([summary("http://b/")], {}),
            lambda: index.apply([], {0: 2}),
            lambda: index.apply([removed("http://b/", published=2, time=1_000 * DAY)], {}),
            index.offsets,
            index.refresh,
            lambda: index.search(Every()),
            lambda: index.record("0"),
        ]
        for ask in tries:
            with pytest.raises(IndexUnreachable, match="closed"):
                ask()
        search_client.indices.open(index=index.alias)
        search_client.cluster.health(index=index.alias, params={"wait_for_status": "yellow"})
        assert index.offsets() == {0: 1}
        assert index.count(Every()) == 1


@pytest.mark.parametrize("field", ["state", "role"])
def test_rejected_index_state_fails_the_batch(
    open_index: Callable[..., OpenSearchIndex], monkeypatch: pytest.MonkeyPatch, removed: Remove, field: str
) -> None:
    """If the index rejects its offsets, or the time of forgotten removals, the batch fails: neither counts as written."""
    made = schema.definition()
    made["mappings"]["properties"][field] = {"type": "byte"}
    monkeypatch.setattr(aliases, "definition", lambda *_: made)
    with closing(open_index()) as index:
        offsets = {0: 1} if field == "state" else {}
        with pytest.raises(IndexUnreachable, match=f"cannot be written.*{field}"):
            index.apply([removed("http://a/", published=1, time=1_000 * DAY)], offsets)


def test_deep_pages_are_read_in_several_requests(
    open_index: Callable[..., OpenSearchIndex], monkeypatch: pytest.MonkeyPatch, summary: Make
) -> None:
    """Pages beyond the limit of one request are read in several, with the same hits."""
    with closing(open_index()) as index:
        index.apply([summary(f"http://{at:03}/", title="whale " * (1 + at % 7)) for at in range(180)], {})
        for query in (parse("whale"), parse("type:text")):
            whole = index.search(query, limit=1_000)
            assert len(whole.hits) == whole.total == 180
            with monkeypatch.context() as patch:
                patch.setattr(search, "WINDOW", 40)
                patch.setattr(search, "SCROLL", 7)
                assert index.search(query, limit=1_000) == whole
                assert index.search(query, limit=35, offset=90) == Page(whole.hits[90:125], 180)
                assert index.search(query, limit=10, offset=175) == Page(whole.hits[175:], 180)
                assert len(list(index.scroll(query))) == 180


def test_too_many_words_is_a_query_error(open_index: Callable[..., OpenSearchIndex]) -> None:
    """A query with more words than the engine allows is a user error, reported in one line."""
    with closing(open_index()) as index, pytest.raises(QueryRefused, match="too many words"):
        index.search(And(tuple(Phrase(f"w{at}") for at in range(600))))


def test_record_is_returned_as_applied(open_index: Callable[..., OpenSearchIndex], summary: Make, removed: Remove) -> None:
    """The whole record of an OID is returned as applied: a summary, a removal, or nothing."""
    first = summary("http://a/", blob=b"\xff\x00", title="whale " * 5_000, annotations={"by": ("hand",)})
    second = removed("http://b/", published=3)
    with closing(open_index()) as index:
        index.apply([first, second], {})
        assert [index.record(one.oid) for one in (first, second)] == [first, second]
        assert index.record("0" * 64) is None
