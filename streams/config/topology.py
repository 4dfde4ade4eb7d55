"""The topology of the settings: drawn here for commands, and handed to everything that asks for it."""

from __future__ import annotations

import re

from msgspec.structs import replace

from processors.broker.definition import MAIN, Broker
from processors.frontier.settings import FrontierSettings
from processors.query import QueryError
from streams.config.sections import BrokerSection
from streams.config.settings import Settings, SettingsError
from streams.topology.flow import Topology, TopologySettings, topology

INDEX_END = r"0|\d{8}t\d{9}"
"""What the name of an index on OpenSearch has after that of its Broker (`sinks/index/opensearch/aliases.py`)."""


def brokers_of(settings: Settings) -> tuple[Broker, ...]:
    """Return the Brokers of the settings in order of their names, `MAIN` first. Raises SettingsError for a query that is wrong."""
    defined = {MAIN: BrokerSection(), **settings.brokers}
    for name, section in defined.items():
        if name.rpartition("-")[0] and re.fullmatch(INDEX_END, name.rpartition("-")[2]):
            raise SettingsError(f"brokers.{name}: a name may not end in -{name.rpartition('-')[2]}, as the indexes of a server do")
        try:
            Broker(name, section.query).filter()
        except QueryError as error:
            raise SettingsError(f"brokers.{name}.query: {error.line(section.query)}") from None
    names = sorted(defined, key=lambda name: (name != MAIN, name))
    return tuple(Broker(name, defined[name].query, defined[name].ttl, settings.search.languages) for name in names)


def broker_named(settings: Settings, name: str) -> str:
    """Return the name of a Broker of the settings. Raises SettingsError where none has that name."""
    names = [defined.name for defined in brokers_of(settings)]
    if name not in names:
        raise SettingsError(f"{name}: no such Broker (there are {', '.join(names)}; the settings brokers.NAME define others)")
    return name


def broker_defined(settings: Settings, name: str) -> Broker:
    """Return the definition of a Broker of the settings. Raises KeyError."""
    return {broker.name: broker for broker in brokers_of(settings)}[name]


def flow_of(settings: Settings, frontier: FrontierSettings = FrontierSettings()) -> TopologySettings:  # noqa: B008 - frozen
    """Return what the topology depends on. Raises SettingsError."""
    brokers = brokers_of(settings)
    return TopologySettings(replace(frontier, confirm=confirmed_every(brokers)), brokers, settings.feed.enabled)


def confirmed_every(brokers: tuple[Broker, ...]) -> int | None:
    """Return `FrontierSettings.confirm` in ms: half of the shortest time-to-live of any Broker; None where none has one."""
    shortest = min((broker.ttl for broker in brokers if broker.ttl is not None), default=None)
    return None if shortest is None else shortest * 1000 // 2


def topology_of(settings: Settings) -> Topology:
    """Return the topology of the settings, for those who read its names: the frontier of a runner has settings of its own."""
    return topology(flow_of(settings))
