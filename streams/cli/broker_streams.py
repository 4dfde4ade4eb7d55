"""The streams of the Brokers of the settings, for the gateway."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sinks.gateway.brokers.ports import StreamSource
from streams.cli.collection import opened
from streams.cli.feed_access import FeedAccess
from streams.config.topology import brokers_of

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from processors.broker.definition import Broker
    from processors.query.terms import Views
    from schemas.ports import Log
    from streams.config.settings import Settings


class BrokerStreams:
    """The streams of the Brokers that have one. For any thread."""

    def __init__(
        self, found: Settings, open_log: Callable[[], AbstractContextManager[Log]], names: Sequence[str] | None = None
    ) -> None:
        """`open_log` opens the log for reading; `names`: the Brokers that are meant, None: all of the settings."""
        self._open_log = open_log
        self._access = {
            one.name: (one, FeedAccess(found, one.name))
            for one in brokers_of(found)
            if one.stream and (names is None or one.name in names)
        }

    def stream(self, name: str) -> StreamSource:
        """See `sinks.gateway.brokers.ports.Brokers`."""
        defined, access = self._access[name]
        return StreamSource(defined.title, defined.languages, lambda: self._views(defined), lambda: opened(access))

    def _views(self, defined: Broker) -> Views:
        from streams.operations.views import written_out

        with self._open_log() as log:
            return written_out(log, defined.name)

    def close(self) -> None:
        """End the threads that fill feeds."""
        for _, access in self._access.values():
            access.close()
