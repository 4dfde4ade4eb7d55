"""The topology of the settings: drawn here for commands, and handed to everything that asks for it."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from processors.broker.definition import Broker
from processors.frontier.settings import FrontierSettings
from streams.brokers import Definitions, read_definitions
from streams.config.settings import Settings, SettingsError
from streams.topology.flow import Topology, TopologySettings, topology

FOLDER = "brokers"
"""Folder of the definitions in a data folder."""


def definitions_folder(settings: Settings) -> Path:
    """Return the folder of the files that define Brokers."""
    return settings.data / FOLDER if settings.brokers is None else settings.brokers


def definitions_of(settings: Settings) -> Definitions:
    """Return the definitions of the settings, with all their mistakes."""
    return read_definitions(definitions_folder(settings), settings.search.languages, named=settings.brokers is not None)


def brokers_of(settings: Settings) -> tuple[Broker, ...]:
    """Return the Brokers that are defined without a mistake in order of their names, `MAIN` first."""
    return definitions_of(settings).brokers


def check_definitions(settings: Settings) -> Definitions:
    """Return the definitions. Raises SettingsError with the first mistake: whoever writes their topics needs all of them."""
    found = definitions_of(settings)
    if found.mistakes:
        more = len(found.mistakes) - 1
        raise SettingsError(found.mistakes[0].line + (f" (and {more} more: harvest broker check)" if more else ""))
    return found


def broker_named(settings: Settings, name: str) -> str:
    """Return the name of a Broker of the settings. Raises SettingsError where none has that name, or its definition is wrong."""
    return broker_defined(settings, name).name


def broker_defined(settings: Settings, name: str) -> Broker:
    """Return the definition of a Broker of the settings. Raises SettingsError."""
    found = definitions_of(settings)
    for broker in found.brokers:
        if broker.name == name:
            return broker
    for mistake in found.mistakes:
        if mistake.broker == name:
            raise SettingsError(mistake.line)
    known = ", ".join(broker.name for broker in found.brokers)
    raise SettingsError(f"{name}: no such Broker (there are {known}; harvest broker create defines others)")


def flow_of(settings: Settings, frontier: FrontierSettings = FrontierSettings()) -> TopologySettings:  # noqa: B008 - frozen
    """Return what the topology of a runner depends on. Raises SettingsError if a definition of a Broker is wrong."""
    brokers = check_definitions(settings).brokers
    return TopologySettings(replace(frontier, confirm=confirmed_every(brokers)), brokers, settings.feed.enabled)


def confirmed_every(brokers: tuple[Broker, ...]) -> int | None:
    """Return `FrontierSettings.confirm` in ms: half of the shortest time-to-live of any Broker; None where none has one."""
    shortest = min((broker.ttl for broker in brokers if broker.ttl is not None), default=None)
    return None if shortest is None else shortest * 1000 // 2


def topology_of(settings: Settings) -> Topology:
    """Return the topology of the settings, for those who read its names: Brokers with wrong definitions are left out of it.

    The frontier of a runner has settings of its own.
    """
    return topology(TopologySettings(FrontierSettings(), brokers_of(settings), settings.feed.enabled))
