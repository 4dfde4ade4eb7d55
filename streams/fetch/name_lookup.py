"""Look-up of host names: in threads of its own, within a time, all addresses judged.

Laws:
- A host with any refused address is refused: the resolver must not decide which address is connected to.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from processors.urls import guard
from streams.fetch.adapters import Lookup
from streams.fetch.answers import ALLOW, FetchError
from streams.fetch.settings import FetchSettings


def lookup(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a host from getaddrinfo, in its order (RFC 6724)."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class NameLookup:
    """Looks up names with `look`, in at most `threads` threads."""

    def __init__(self, settings: FetchSettings, look: Lookup, threads: int) -> None:
        self._settings = settings
        self._look = look
        self._threads = ThreadPoolExecutor(threads, "harvest-lookup")

    def close(self) -> None:
        """Shut down the threads without waiting; one that waits for a name server ends with the time-out of its lookup."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def addresses(self, name: str, port: int) -> Sequence[str]:
        """Return the addresses of a name, all of them allowed to be connected to. Raises FetchError."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._settings.dns_timeout):
                found = await loop.run_in_executor(self._threads, self._look, name, port)
        except TimeoutError as error:
            raise FetchError(f"cannot resolve {name}: no answer in time", retryable=True) from error
        except (OSError, UnicodeError) as error:
            unknown = isinstance(error, UnicodeError) or error.errno == socket.EAI_NONAME
            raise FetchError(f"cannot resolve {name}: {getattr(error, 'strerror', '') or error}", retryable=not unknown) from error
        if not found:
            raise FetchError(f"cannot resolve {name}: no address", retryable=True)
        for address in found:
            if why := guard(address, self._settings.networks):
                # A name that is the address itself is not repeated.
                raise FetchError(f"{'' if name == address else f'{name}: '}{why}; {ALLOW}", retryable=False)
        return found
