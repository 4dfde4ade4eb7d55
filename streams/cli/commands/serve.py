"""`harvest serve`: the page that people search on, and the API. `harvest register`: its entry in a registry of servers."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Annotated

import typer

from streams.cli.common import USAGE, BrokerName, Config, Data, Failure, note, printable, settings
from streams.cli.common import broker as named

if TYPE_CHECKING:
    from pathlib import Path

    from streams.config.settings import Settings

Host = Annotated[str | None, typer.Option("--host", metavar="HOST", help="Address to listen on (default: 127.0.0.1).")]
Port = Annotated[
    int | None,
    typer.Option("--port", metavar="N", min=0, max=65_535, help="Port of the page (default: 8380; 0: any that is free)."),
]
Ready = Annotated[int | None, typer.Option("--ready-fd", hidden=True, help="File descriptor for the address, in place of a line.")]


def serve(
    data: Data = None,
    host: Host = None,
    port: Port = None,
    broker: BrokerName = "",
    ready_fd: Ready = None,
    config: Config = None,
) -> None:
    """Serve a page that people search on and an API that programs use, until stopped."""
    found = settings(config, data=data, serve__host=host, serve__port=port)
    serve_gateway(found, named(found, broker), ready_fd, config)


def serve_gateway(found: Settings, broker: str, ready_fd: int | None = None, config: Path | None = None) -> None:
    """Run the gateway of a Broker until SIGINT or SIGTERM. Raises Failure.

    `ready_fd`: a file descriptor that the address is written to once requests are answered, instead of logging it. `config`: the
    file of the settings, for commands that the administration page starts.
    """
    from contextlib import closing

    from sinks.gateway import server
    from streams.cli.administration import SettingsAdministration
    from streams.cli.collection import collection_of
    from streams.cli.gateway import gateway_options, index_opener, prepare_index
    from streams.cli.registering import LogRegistry, renewing
    from streams.cli.routed import gateway_brokers
    from streams.cli.serving import logs_of

    options, opener, logs = gateway_options(found, broker), index_opener(found, broker), logs_of(found, stage="serve")
    logs.capture()
    if ready_fd is None:  # the run of which this is the gateway makes the index by itself
        prepare_index(found, broker, opener)
    answering = False

    def started(url: str) -> None:
        nonlocal answering
        answering = True
        if ready_fd is None:
            logs.say(f"search at {url}; stop with Ctrl-C")
        else:
            os.write(ready_fd, f"{url}\n".encode())

    administered, collected = SettingsAdministration(found, config, logs.say), collection_of(found, broker)
    with closing(collected) as collection, closing(gateway_brokers(found, broker)) as brokers, closing(administered):
        try:
            with renewing(found, broker, logs.say):
                server.serve(options, opener, collection, started, brokers, administered, LogRegistry(found))
        except OSError as error:
            if answering:
                raise
            name = "serve.host" if isinstance(error, socket.gaierror) else "serve.port"
            where = f"{name}: {printable(options.host)}:{options.port}"
            raise Failure(f"{where}: {error.strerror or printable(str(error))}") from None
    if ready_fd is None:
        logs.say("stopped")


def register(
    urls: Annotated[list[str] | None, typer.Argument(metavar="[URL...]", help="Gateways (default: registry.servers).")] = None,
    broker: BrokerName = "",
    withdraw: Annotated[bool, typer.Option("--withdraw", help="End the registration.")] = False,
    url: Annotated[str | None, typer.Option("--url", metavar="URL", help="URL of this gateway for others (registry.url).")] = None,
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="Name to register under.")] = None,
    ttl: Annotated[int | None, typer.Option("--ttl", metavar="S", help="Seconds for which it lasts (default: a week).")] = None,
    data: Data = None,
    config: Config = None,
) -> None:
    """Register this gateway at the registries of others, which find it by the query type:Server.

    A registration ends with its time-to-live; `harvest serve` and `harvest run --serve` renew those at registry.servers.
    The token of the registries is read from the settings (registry.token_file, HARVEST_REGISTRY_TOKEN).
    """
    found = settings(config, data=data, registry__url=url, registry__name=name, registry__ttl=ttl)
    from streams.cli.registering import registration_of, send
    from streams.config.registry import gateway_url

    try:
        servers = [gateway_url(each) for each in urls or found.registry.servers]
    except ValueError as error:
        raise Failure(str(error), USAGE) from None
    if not servers:
        raise Failure("no registry is named: give the URL of a gateway, or set registry.servers", USAGE)
    made = registration_of(found, named(found, broker), withdraw=withdraw)
    for server in servers:
        note(printable(send(server, found.registry.token.get_secret_value(), made)))
