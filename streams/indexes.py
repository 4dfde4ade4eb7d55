"""Which index a Broker has, by the settings: OpenSearch where `index.url` is set, else the one in the data folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streams.folder import index_folder

if TYPE_CHECKING:
    from schemas.ports import BrokerIndex
    from streams.settings import Settings


def alias(settings: Settings, broker: str = "main") -> str:
    """The name of a Broker's index on OpenSearch."""
    return f"{settings.index.name}-{broker}"


def opened(settings: Settings, broker: str = "main", *, writable: bool = False) -> BrokerIndex:
    """The index of a Broker, to read, or to write as a sink does. Raises OSError, IndexDamaged."""
    if settings.index.url:
        from sinks.opensearch_index import OpenSearchIndex  # noqa: PLC0415 - loaded by those who have a server

        return OpenSearchIndex(settings.index.url, alias(settings, broker), writable=writable, fresh=False)
    from sinks.tantivy_index import TantivyIndex  # noqa: PLC0415 - the engine is loaded by those who ask for it

    return TantivyIndex(index_folder(settings.data, broker), writable=writable)
