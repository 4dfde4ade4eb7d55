"""Searches over several Brokers for the command line and the gateway: what the settings mean for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from streams.cli.common import USAGE, Failure, counted, explained, note, open_log, printable, put

if TYPE_CHECKING:
    from processors.broker.definition import Fallback
    from processors.query.routing.in_views import InViews
    from processors.query.routing.merging import Routed, RoutedHit
    from processors.query.terms import Views
    from schemas.query import Query
    from sinks.gateway.brokers.ports import BrokerFacts, StreamSource
    from streams.cli.broker_streams import BrokerStreams
    from streams.config.settings import Settings
    from streams.routing.local import LocalBrokers
    from streams.routing.search import Options

Answer = TypeVar("Answer")
COMPARED = 100
"""Number of hits of each Broker that are compared where their number alone is asked for."""


def local_brokers(found: Settings, names: Sequence[str] | None = None) -> LocalBrokers:
    """Return the Brokers of the settings, or some of them. Its methods raise Failure's kin where there is no log."""
    from streams.routing.local import LocalBrokers

    return LocalBrokers(found, lambda: open_log(found, bare=True), names)


def routing_options(found: Settings, names: Sequence[str] | None = None) -> Options:
    """Return the options of routed searches; `names`: the Brokers that are meant, None: all. Raises Failure."""
    from processors.urls import canonical
    from streams.cli.wiring import fetch_settings
    from streams.config.registry import gateway_url
    from streams.config.topology import brokers_of
    from streams.routing.search import Options

    given = found.routing
    if given.registry and given.registry not in (defined := [one.name for one in brokers_of(found)]):
        raise Failure(f"routing.registry: {printable(given.registry)}: no such Broker (there are {', '.join(defined)})", USAGE)
    registry = given.registry if names is None or given.registry in names else ""
    # As registrations state it.
    own = gateway_url(canonical(found.registry.url) or found.registry.url) if found.registry.url else ""
    return Options(given.servers, given.most, given.deadline, fetch_settings(found), found.data, registry, own)


class GatewayBrokers:
    """Implements `sinks.gateway.brokers.ports.Brokers`."""

    def __init__(self, local: LocalBrokers, options: Options, streams: BrokerStreams, fallback: Fallback | None = None) -> None:
        """`fallback`: that of the Broker that the gateway serves."""
        self._local, self._options, self._streams, self._fallback = local, options, streams, fallback
        self.search = local.search

    def close(self) -> None:
        """Release indexes and threads."""
        self._streams.close()
        self._local.close()

    def facts(self) -> Sequence[BrokerFacts]:
        """See Brokers. Raises CollectionError where the log cannot be read."""
        return from_log(self._local.facts)

    def fallback(self) -> Fallback | None:
        """See Brokers."""
        return self._fallback

    def counted(self, name: str) -> bytes | None:
        """See Brokers. Raises CollectionError where the log cannot be read."""
        return from_log(lambda: self._local.counted(name))

    def statistics(self, name: str) -> bytes:
        """See Brokers. Raises CollectionError where the log cannot be read."""
        return from_log(lambda: self._local.statistics(name))

    def stream(self, name: str) -> StreamSource:
        """See Brokers."""
        source = self._streams.stream(name)
        return source._replace(views=lambda: from_log(source.views))

    def views(self, name: str) -> Views:
        """See Brokers. Raises CollectionError where the log cannot be read."""
        return from_log(lambda: self._local.views(name))

    def routed(self, query: Query, limit: int, scope: InViews | None = None) -> Routed:
        """See Brokers. Raises CollectionError where the log cannot be read."""
        from streams.routing.search import routed_search

        return from_log(lambda: routed_search(self._local, self._options, query, limit, scope))


def from_log(read: Callable[[], Answer]) -> Answer:
    """Return what `read` returns. Raises KeyError, and CollectionError where the log cannot be read."""
    from sinks.gateway.ports import CollectionError

    try:
        return read()
    except KeyError:
        raise
    except Exception as error:
        if (line := explained(error)) is None:
            raise
        raise CollectionError(printable(line[0])) from error


def gateway_brokers(found: Settings, broker: str) -> GatewayBrokers:
    """Return all Brokers for the gateway of one; if that one has only some summaries, it and its fallback. Raises Failure."""
    from streams.cli.broker_streams import BrokerStreams
    from streams.config.topology import broker_defined

    served = broker_defined(found, broker)
    names = None if served.is_whole else [broker, *([served.fallback.broker] if served.fallback else [])]
    streams = BrokerStreams(found, lambda: open_log(found, bare=True), names)
    return GatewayBrokers(local_brokers(found, names), routing_options(found, names), streams, served.fallback)


def search_routed(found: Settings, query: Query, limit: int, scope: InViews | None = None, *, count: bool, json: bool) -> None:
    """Search the best Brokers for a query, and print the best hits first. Raises Failure if none has answered.

    `scope`: what each Broker makes of a query that names views.
    """
    from contextlib import closing

    from streams.routing.search import routed_search

    with closing(local_brokers(found)) as local:
        # A number alone is made from hits, too: those that several Brokers have are counted once.
        answer = routed_search(local, routing_options(found), query, COMPARED if count else limit, scope)
    for name, reason in answer.silent.items():
        note(f"{name}: {reason}")
    _print_without(answer, scope)
    if not answer.asked and answer.silent:
        raise Failure("no Broker can be asked: nothing is gathered here, and no gateway of routing.servers has answered")
    if not answer.asked:
        raise Failure("there is no Broker to ask: gather something first, or name gateways (routing.servers, routing.registry)")
    if len(answer.asked) <= sum(name in answer.silent for name in answer.asked):
        raise Failure("no Broker has answered")
    if count:
        _print_count(answer, json=json)
        return
    for each in answer.hits:
        _print(each, json=json)
    shown = len(answer.hits)
    some = f", {shown} shown" if shown < answer.least else ""
    asked = f"asked {len(answer.asked)} of {counted(answer.known, 'Broker')}"
    typer.echo(f"{_total(answer)} found{some}; {asked}: {printable(', '.join(answer.asked))}", err=True)


def _print_without(answer: Routed, scope: InViews | None) -> None:
    """Name the Brokers that have not the views of a query. Raises Failure if all have not."""
    if scope is None or not answer.without:
        return
    names = f"view {', '.join(scope.paths)}" if len(scope.paths) == 1 else f"views {', '.join(scope.paths)}"
    if not answer.asked and not answer.silent:
        raise Failure(f"no Broker has the {names} (harvest view list NAME)", USAGE)
    note(f"without the {names}, and not asked: {', '.join(answer.without)}")


def _total(answer: Routed) -> str:
    if answer.silent:
        return f"at least {answer.least:,}"
    return f"{answer.least:,}" if answer.is_exact else f"{answer.least:,} to {answer.most:,}"


def _print_count(answer: Routed, *, json: bool) -> None:
    from schemas.jsonform import line

    if json:
        most = None if answer.silent else answer.most
        put(line({"total": answer.least, "at_least": not answer.is_exact, "at_most": most}))
        return
    put(str(answer.least))
    if answer.silent:
        note("this is the least number: not all have answered")
    elif not answer.is_exact:
        note(f"this is the least number, at most {answer.most:,}: Brokers may have the same summaries")


def _print(each: RoutedHit, *, json: bool) -> None:
    from schemas.jsonform import line
    from streams.cli.output.hits import hit_object, print_hit

    if json:
        more: dict[str, Any] = {"broker": each.broker}
        if each.others:
            more["also_in"] = list(each.others)
        put(line(hit_object(each.hit) | more))
        return
    print_hit(each.hit)
    put(f"  Broker: {printable(', '.join((each.broker, *each.others)))}")
