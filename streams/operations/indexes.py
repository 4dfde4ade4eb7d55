"""Choice of a Broker's index by the settings: OpenSearch if `index.url` is set, else the one in the data folder."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from processors.query.forms import Analyzer
from sinks.index.options import DEFAULT, Options
from streams.store.data_folder import index_folder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from schemas.ports import BrokerIndex
    from sinks.index.opensearch.server import Server
    from streams.config.sections import Search
    from streams.config.settings import Settings

DAY_S = 86_400


def alias(settings: Settings, broker: str) -> str:
    """Return the name of a Broker's index on OpenSearch."""
    return f"{settings.index.name}-{broker}"


def server(settings: Settings, url: str = "") -> str | Server:
    """Return the server of the indexes, with its login and certificates, or another one by its URL alone; "" if there is none."""
    from sinks.index.opensearch.server import Server  # noqa: PLC0415 - loaded by those who have a server

    given = settings.index
    if not given.url or (url and url.rstrip("/") != given.url.rstrip("/")):
        return url
    secrets = {name: getattr(given, name).get_secret_value() for name in ("password", "key_password")}
    plain = {name: getattr(given, name) for name in ("user", "ca", "certificate", "key", "check_hostname")}
    return Server(given.url, **plain, **secrets)


def open_index(settings: Settings, broker: str, timeout: float | None = None) -> BrokerIndex:
    """Open the index of a Broker for reading. Raises OSError, IndexDamaged.

    `timeout`: seconds for an answer of OpenSearch; None: those of the setting `index.timeout`.
    """
    from streams.config.topology import brokers_of  # noqa: PLC0415 - as below

    rank = next((dict(one.rank) for one in brokers_of(settings) if one.name == broker), {})
    asked = search_options(settings.search, rank)
    patience = settings.index.timeout if timeout is None else timeout
    return open_index_at(server(settings), settings.index.name, settings.data, broker, options=asked, timeout=patience)


def search_options(search: Search, rank: Mapping[str, float] = MappingProxyType({})) -> Options:
    """Return the options of searches that the settings ask for; `rank`: those that differ for a Broker."""
    common = {"title": search.weights.title, "exact": search.weights.exact, "freshness": search.freshness, "links": search.links}
    asked = {**common, "half_life": search.half_life, **rank}
    half_life = asked["half_life"] / DAY_S
    return Options(asked["title"], asked["exact"], asked["freshness"], half_life, asked["links"], search.checked)


def open_index_at(
    url: str | Server,
    name: str,
    folder: Path,
    broker: str,
    *,
    languages: Sequence[str] | None = None,
    options: Options = DEFAULT,
    timeout: float | None = None,
) -> BrokerIndex:
    """Open an index like `open_index`, or for writing by a sink, given `index.url`, `index.name` and the data folder.

    `languages`: those of an index that a sink creates; None: for reading. `timeout`: seconds for each answer of OpenSearch; None:
    its default.
    """
    writable = languages is not None
    if url:
        from sinks.index.opensearch.index import OpenSearchIndex  # noqa: PLC0415 - loaded by those who have a server
        from sinks.index.opensearch.node import TIMEOUT  # noqa: PLC0415 - as above

        behind, answer_s = f"{name}-{broker}", TIMEOUT if timeout is None else timeout
        return OpenSearchIndex(url, behind, writable=writable, languages=languages, fresh=False, options=options, timeout=answer_s)
    from sinks.index.tantivy.index import TantivyIndex  # noqa: PLC0415 - the engine is loaded by those who ask for it
    from streams.operations.registered import records  # noqa: PLC0415 - as above

    analyzer = None if languages is None else Analyzer(languages)
    path, kept = index_folder(folder, broker), records(folder, broker)
    return TantivyIndex(path, writable=writable, analyzer=analyzer, options=options, records=kept)
