"""Aliases of the OpenSearch engine: which index serves, while several processes create, rebuild and delete indexes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from schemas.query import Every
from schemas.records import Summary
from sinks.index.errors import IndexDamaged, IndexMissing, IndexMoved
from sinks.index.opensearch import aliases
from sinks.index.opensearch import node as opensearch_node
from sinks.index.opensearch.index import OpenSearchIndex

if TYPE_CHECKING:
    from opensearchpy import OpenSearch

Make = Callable[..., Summary]


def test_missing_index_is_not_created_by_reader(
    open_index: Callable[..., OpenSearchIndex], search_client: OpenSearch, name: str
) -> None:
    """A reader of a missing index gets IndexMissing, and creates none."""
    with pytest.raises(IndexMissing):
        open_index(writable=False)
    assert not search_client.indices.get(index=f"{name}*")


def test_recreated_index_accepts_no_offsets(
    open_index: Callable[..., OpenSearchIndex], search_client: OpenSearch, name: str, summary: Make
) -> None:
    """An index deleted and recreated by another process accepts no offsets: earlier batches are not in it."""
    with closing(open_index()) as index:
        index.apply([summary("http://a/")], {0: 1})
        search_client.indices.delete(index=f"{name}-0")
        with closing(open_index()) as other:
            for changes in ([summary("http://b/")], []):
                with pytest.raises(IndexMoved):
                    index.apply(changes, {0: 2})
            assert other.offsets() == index.offsets() == {}
            index.apply([summary("http://a/"), summary("http://b/")], {0: 2})
            assert other.offsets() == {0: 2}


def test_deleted_index_is_not_recreated_by_write(
    open_index: Callable[..., OpenSearchIndex], search_client: OpenSearch, name: str, summary: Make
) -> None:
    """Writing does not recreate a deleted index, even if the server would; it is restarted at offset 0."""
    with closing(open_index()) as index:
        index.apply([summary("http://a/")], {0: 1})
        search_client.indices.delete(index=f"{name}-0")
        search_client.cluster.put_settings(body={"transient": {"action.auto_create_index": "true"}})
        try:
            with pytest.raises(IndexMissing):
                index.apply([summary("http://b/")], {0: 2})
        finally:
            search_client.cluster.put_settings(body={"transient": {"action.auto_create_index": None}})
        assert not search_client.indices.get(index=f"{name}*")
        assert index.offsets() == {}
        index.apply([summary("http://c/")], {0: 1})
        assert index.count(Every()) == 1


def test_reader_cannot_write(open_index: Callable[..., OpenSearchIndex], summary: Make) -> None:
    """A reader sees applied changes and cannot write; neither can a closed index."""
    with closing(open_index()) as index, closing(open_index(writable=False)) as reader:
        index.apply([summary("http://a/")], {0: 1})
        assert reader.count(Every()) == 1
        assert reader.offsets() == {0: 1}
        for closed in (reader, index):
            closed.close()
            with pytest.raises(OSError, match="read-only or closed"):
                closed.apply([], {0: 9})


def test_index_of_other_analysis_must_be_rebuilt(
    open_index: Callable[..., OpenSearchIndex], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An index made with another text analysis must be rebuilt."""
    open_index().close()
    monkeypatch.setattr(aliases, "FORMAT", "0")
    with pytest.raises(IndexDamaged, match="format"):
        open_index()


def test_foreign_index_with_alias_name_is_untouched(
    open_index: Callable[..., OpenSearchIndex], search_client: OpenSearch, name: str
) -> None:
    """An index with the name of the alias is left untouched, and reported."""
    search_client.indices.create(index=name)
    with pytest.raises(IndexDamaged, match="does not name exactly one index"):
        open_index()


def test_concurrent_creators_share_one_index(
    open_index: Callable[..., OpenSearchIndex], name: str, search_client: OpenSearch
) -> None:
    """Concurrent creators of the first index all get the same one."""
    made: list[OpenSearchIndex] = []
    threads = [threading.Thread(target=lambda: made.append(open_index())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 4
    assert list(search_client.indices.get_alias(name=name)) == [f"{name}-0"]


def test_swapped_index_refuses_old_writer(open_index: Callable[..., OpenSearchIndex], name: str, summary: Make) -> None:
    """A batch that arrives after a swap changes no offset: the writer gets IndexMoved and asks where to continue."""
    with closing(open_index()) as index, closing(open_index()) as other:
        index.apply([summary("http://a/"), summary("http://b/")], {0: 2})
        building = aliases.begin_rebuild(index.node, name, "1")
        with closing(OpenSearchIndex(index.node.name, building)) as new:
            new.apply([summary("http://a/")], {0: 1})
        assert aliases.swap(index.node, name, "1") == [f"{name}-0"]
        for writer in (index, other):
            with pytest.raises(IndexMoved):
                writer.apply([summary("http://c/")], {0: 3})
        with pytest.raises(IndexMoved):
            index.apply([], {0: 3})
        assert index.offsets() == {0: 1}
        index.apply([summary("http://b/")], {0: 2})
        assert index.offsets() == {0: 2}
        assert index.count(Every()) == 3


def test_first_index_made_during_swap_gives_way(
    open_index: Callable[..., OpenSearchIndex],
    name: str,
    summary: Make,
    search_client: OpenSearch,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If a worker creates the first index while a rebuild swaps, the rebuilt one serves alone, and the worker goes on with it."""
    with closing(open_index()) as index:
        node = index.node
        search_client.indices.delete(index=f"{name}-0")
        with closing(OpenSearchIndex(node.name, aliases.begin_rebuild(node, name, "1"))) as new:
            new.apply([summary("http://a/")], {0: 1})
        behind = aliases.behind

        def made_meanwhile(node: opensearch_node.Node, alias: str) -> list[str]:
            monkeypatch.setattr(aliases, "behind", behind)
            there = behind(node, alias)
            assert index.offsets() == {}
            index.apply([summary("http://b/")], {0: 2})
            return there

        monkeypatch.setattr(aliases, "behind", made_meanwhile)
        assert aliases.swap(node, name, "1") == []
        assert list(search_client.indices.get_alias(name=name)) == [f"{name}-1"]
        with pytest.raises(IndexMoved):
            index.apply([summary("http://c/")], {0: 3})
        assert index.offsets() == {0: 1}


def test_first_index_made_after_swap_gives_way(
    open_index: Callable[..., OpenSearchIndex], name: str, summary: Make, search_client: OpenSearch
) -> None:
    """A worker that creates the first index just after a swap, or before a rebuild was killed, uses the rebuilt one."""
    with closing(open_index()) as index:
        node = index.node
        with closing(OpenSearchIndex(node.name, aliases.begin_rebuild(node, name, "1"))) as new:
            new.apply([summary("http://a/")], {0: 1})
        aliases.swap(node, name, "1")
        search_client.indices.delete(index=f"{name}-0")
        aliases.make(node, f"{name}-0", name)
        assert len(search_client.indices.get_alias(name=name)) == 2
        with closing(open_index()) as other:
            assert other.offsets() == {0: 1}
        assert list(search_client.indices.get_alias(name=name)) == [f"{name}-1"]


def test_second_rebuild_replaces_first(
    open_index: Callable[..., OpenSearchIndex], name: str, summary: Make, search_client: OpenSearch
) -> None:
    """A rebuild replaces an unfinished earlier one, whose writer cannot continue."""
    with closing(open_index()) as index:
        building = aliases.begin_rebuild(index.node, name, "1")
        with closing(OpenSearchIndex(index.node.name, building)) as first:
            aliases.begin_rebuild(index.node, name, "2")
            with pytest.raises(IndexMoved):
                first.apply([summary("http://a/")], {0: 1})
        with pytest.raises(IndexMoved, match="another rebuild"):
            aliases.swap(index.node, name, "1")
        assert sorted(search_client.indices.get(index=f"{name}*")) == [f"{name}-0", f"{name}-2"]
        assert list(search_client.indices.get_alias(name=name)) == [f"{name}-0"]
        assert aliases.swap(index.node, name, "2") == [f"{name}-0"]
