"""Registrations: what this gateway sends to registries, when it renews that, and where those that it takes itself go.

Laws:
- The token is in a header and nowhere else: in no URL, log or error. A redirect is not followed, since it would take it along.
- A registry that is silent, or refuses, is logged once until it answers again; the gateway serves on.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from importlib.metadata import version
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from processors.registry.template import STATISTICS, Registration, RegistrationError, parse
from schemas.soif_syntax import Attribute
from streams.cli.common import USAGE, Failure, explained, open_log, printable
from streams.cli.routed import from_log, local_brokers
from streams.clock import now_ms
from streams.operations.registrations import append_registrations

if TYPE_CHECKING:
    from streams.config.settings import Settings

TIMEOUT = 20.0
"""Seconds that a registry may take for each step of an answer."""
MAX_ANSWER = 2_000
"""Bytes of an answer that are read."""
RETRY = 60.0
"""Maximum seconds until a registration that failed is sent again."""


class LogRegistry:
    """Implements `sinks.gateway.brokers.registry.Registry`: each registration is an event of the log."""

    def __init__(self, found: Settings) -> None:
        self._found = found

    def take(self, registration: Registration) -> None:
        """See Registry."""

        def append() -> None:
            with open_log(self._found, writing=True) as log:
                append_registrations(log, [registration], now_ms())

        from_log(append)


def registration_of(found: Settings, broker: str, *, withdraw: bool = False) -> Registration:
    """Return the registration of the gateway of a Broker. Raises Failure where the settings do not suffice."""
    try:
        return _registration(found, broker, withdraw=withdraw)
    except Exception as error:
        if (line := explained(error)) is None:
            raise
        raise Failure(*line) from error


def _registration(found: Settings, broker: str, *, withdraw: bool) -> Registration:
    from streams.config.topology import broker_defined

    given, defined, gatherer = found.registry, broker_defined(found, broker), _gatherer(found)
    if not given.url:
        raise Failure("registry.url: missing; it is the URL under which others reach this gateway (--url)", USAGE)
    if not (given.name or gatherer):
        raise Failure("registry.name: missing; without it the name of a pod would be the name of this server (--name)", USAGE)
    name = given.name or f"{gatherer}/{broker}"
    if withdraw:
        return _checked(Registration(given.url, name))
    facts = {
        "name": name,
        "title": given.title or defined.title or name,
        "description": given.description,
        "broker": broker,
        "server-gatherer": gatherer,  # `gatherer:` in a query is the Gatherer of the registry
        "summaries": _count(found, broker),
        "version": f"harvest {version('harvest')}",
        "contact": given.contact,
    }
    # A Broker that accepts some summaries alone does not serve the Gatherer's database.
    kinds = ["broker"] if defined.query.strip() else ["gatherer", "broker"]
    attributes = [Attribute("kind", kind.encode()) for kind in kinds]
    attributes += [Attribute(key, value.encode()) for key, value in facts.items() if value]
    if given.statistics and (known := _statistics(found, broker)):
        attributes.append(Attribute(STATISTICS, known))
    return _checked(Registration(given.url, name, given.ttl, tuple(attributes)))


def _gatherer(found: Settings) -> str:
    """Return the name of the Gatherer; empty where it is not known: on Kafka, a machine that serves has another name."""
    from streams.cli.objectnames import gatherer_of

    if found.kafka.brokers:
        return found.gatherer if "gatherer" in found.model_fields_set else ""
    return gatherer_of(found)


def _checked(made: Registration) -> Registration:
    try:
        return parse(made.encoded())
    except RegistrationError as error:
        raise Failure(f"this gateway cannot register: {printable(str(error))}", USAGE) from None


def _count(found: Settings, broker: str) -> str:
    """Return the number of summaries in the index of a Broker; empty where it cannot be read."""
    from schemas.query import Every
    from streams.operations.indexes import open_index

    try:
        with closing(open_index(found, broker, found.serve.timeout)) as index:
            return str(index.count(Every()))
    except Exception as error:
        if explained(error) is None:
            raise
        return ""


def _statistics(found: Settings, broker: str) -> bytes:
    """Return the statistics of a Broker's words; empty where there are none, or the log cannot be read."""
    try:
        with closing(local_brokers(found, [broker])) as local:
            return local.statistics(broker)
    except KeyError:
        return b""
    except Exception as error:
        if explained(error) is None:
            raise
        return b""


def send(server: str, token: str, registration: Registration) -> str:
    """Send a registration to a gateway, and return its answer. Raises Failure."""
    parts = urlsplit(f"{server}registry")
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    headers = {"Content-Type": "application/x-harvest-server"} | ({"Authorization": f"Bearer {token}"} if token else {})
    try:
        with closing(kind(parts.hostname or "", parts.port, timeout=TIMEOUT)) as connection:
            connection.request("POST", parts.path, registration.encoded(), headers)
            answer = connection.getresponse()
            text = answer.read(MAX_ANSWER).decode("utf-8", "replace")
    except (OSError, HTTPException) as error:
        reason = (isinstance(error, OSError) and error.strerror) or type(error).__name__
        raise Failure(f"{server}: {printable(reason)}") from None
    except ValueError:  # its text would show the token
        raise Failure(f"{printable(server)}: its URL or the token has a character that no request can have") from None
    text = text.replace(token, "...") if token else text
    if answer.status != 200:
        ours = " (here: registry.token_file or HARVEST_REGISTRY_TOKEN)" if answer.status == 401 else ""
        raise Failure(f"{server}: {answer.status}: {printable(_reason(text))[:300]}{ours}")
    return f"{server}: {text.strip()[:300]}"


def _reason(text: str) -> str:
    """Return the reason that an answer states, in one line."""
    try:
        return str(json.loads(text)["error"])
    except (ValueError, TypeError, KeyError):
        return (text.strip().splitlines() or ["no reason"])[0]


class Renewals:
    """When each registry gets the registration again: after half of its time-to-live, after a failure sooner."""

    def __init__(
        self,
        servers: tuple[str, ...],
        ttl: int,
        send_to: Callable[[str], object],
        say: Callable[[str], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`send_to`: sends to a registry, raises Failure; `say`: writes a line to the log."""
        self._ttl, self._send, self._say, self._clock = ttl, send_to, say, clock
        self._due = dict.fromkeys(servers, 0.0)
        self._last: dict[str, str] = {}
        """The last line about each registry, which is not repeated."""

    def renew(self) -> float:
        """Send what is due, and return the seconds until something is due again."""
        for server, due in self._due.items():
            if due <= self._clock():
                self._due[server] = self._clock() + self._tried(server)
        return max(0.0, min(self._due.values()) - self._clock())

    def _tried(self, server: str) -> float:
        """Send to one registry, and return the seconds until the next time."""
        pause, line = self._ttl / 2, f"registered at {server}"
        try:
            self._send(server)
        except Failure as error:
            pause, line = min(RETRY, self._ttl / 8), f"not registered: {error}"
        if self._last.get(server) != line:
            self._say(line)
            self._last[server] = line
        return pause


@contextmanager
def renewing(found: Settings, broker: str, say: Callable[[str], object]) -> Iterator[None]:
    """Renew the registrations of the settings during the block, in a thread. Raises Failure where the settings do not suffice."""
    given = found.registry
    if not given.servers:
        yield
        return
    registration_of(found, broker)
    renewals = Renewals(
        given.servers, given.ttl, lambda server: send(server, given.token.get_secret_value(), registration_of(found, broker)), say
    )
    end = threading.Event()

    def run() -> None:
        while not end.wait(renewals.renew()):
            pass

    thread = threading.Thread(target=run, name="registration", daemon=True)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join(TIMEOUT)
