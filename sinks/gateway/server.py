"""The gateway's server process: runs the application with uvicorn until it is stopped."""

from __future__ import annotations

from collections.abc import Callable

from sinks.gateway.options import GatewayOptions
from sinks.gateway.ports import Collection, OpenIndex


def serve(options: GatewayOptions, open_index: OpenIndex, collection: Collection, started: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM: then requests in progress are completed. Raises OSError if the address is not available.

    `started` is called once with the URL of the search page, when requests are answered.
    """
    raise NotImplementedError
