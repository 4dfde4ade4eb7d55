"""The gateway by the settings: its options, and access to the index of its Broker."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from processors.broker.definition import MAIN
from processors.query.facets import FACETS
from sinks.gateway.guard import is_loopback
from sinks.gateway.options import GatewayOptions
from sinks.gateway.rendering import template_problems
from streams.cli.common import USAGE, Failure, note, printable, rebuild_command
from streams.cli.index_access import make_anew
from streams.config.topology import broker_defined

if TYPE_CHECKING:
    from schemas.ports import BrokerIndex
    from sinks.gateway.ports import OpenIndex
    from streams.config.settings import Settings


def gateway_options(found: Settings, broker: str = MAIN) -> GatewayOptions:
    """Return the options of the gateway of a Broker. Raises Failure for those that it cannot be served with."""
    given = found.serve
    host = given.host.removeprefix("[").removesuffix("]")
    if not (is_loopback(host) or given.token.get_secret_value() or given.public):
        raise Failure(
            f"serve.host: {printable(given.host)} can be reached from other machines: set serve.token (HARVEST_SERVE_TOKEN), or"
            " serve.public = true to let everybody read",
            USAGE,
        )
    if given.registry and not given.token.get_secret_value():
        raise Failure("serve.registry: servers register with a token: set serve.token (HARVEST_SERVE_TOKEN)", USAGE)
    if given.templates and not Path(given.templates).is_dir():
        raise Failure(f"serve.templates: {printable(given.templates)}: no such folder", USAGE)
    if given.templates and (problems := template_problems(Path(given.templates))):
        raise Failure(f"serve.templates: {printable(problems[0])}", USAGE)
    # On Kafka, the files are on the machines of the fetch stage.
    tokens = {name: getattr(given, name).get_secret_value() for name in ("token", "admin_token")}
    changed = {"host": host, **tokens, "objects": given.objects and not found.kafka.brokers}
    values = given.model_dump(exclude={"public", "templates", "token_file", "admin_token_file"}) | changed
    templates = Path(given.templates).absolute() if given.templates else None
    defined = broker_defined(found, broker)
    facets = defined.facets or FACETS
    return GatewayOptions(**values, templates=templates, broker=broker, stream=defined.stream, facets=facets)


def index_opener(found: Settings, broker: str) -> OpenIndex:
    """Return a function that opens the index of a Broker for reading, with the gateway's time-out."""
    from streams.operations.indexes import open_index

    def opened() -> BrokerIndex:
        return open_index(found, broker, found.serve.timeout)

    return opened


def prepare_index(found: Settings, broker: str, opener: OpenIndex) -> None:
    """Open the index once: one of another version is made anew, any other error is left to the page. Raises Failure."""
    from sinks.index.errors import IndexDamaged, IndexOutdated

    try:
        index = opener()
    except IndexOutdated as error:
        make_anew(found, broker, error)
        return
    except (OSError, IndexDamaged) as error:
        note(f"{printable(str(error))}: the page says so until the index is there")
        return
    try:
        asked, made = broker_defined(found, broker).languages, index.languages
        if asked != made:
            wanted, made_for = (", ".join(each) or "none" for each in (asked, made))
            note(f"the index was made for the languages {made_for}, not {wanted} ({rebuild_command(broker)} makes it anew)")
    finally:
        index.close()
