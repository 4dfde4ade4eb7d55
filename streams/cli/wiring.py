"""Conversion of settings into the values that the runners take."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from processors.essence.extensions import OwnError
from processors.essence.fingerprint import rules_fingerprint
from processors.essence.formats.container import UnnestLimits as Budgets
from processors.essence.selection import Selection
from processors.essence.stage import EssenceSettings
from processors.frontier.robots import product_token
from processors.frontier.settings import FrontierSettings
from streams.cli.common import Failure, counted
from streams.config.settings import Settings
from streams.config.topology import flow_of
from streams.edges.extensions import Extensions, read
from streams.embedded import EmbeddedSettings, runs
from streams.fetch import FetchSettings
from streams.operations.indexes import server
from streams.sandbox.values import SandboxLimits
from streams.store.data_folder import gatherer, known
from streams.store.object_storage import BlobSettings
from streams.watch.watcher import WatchSettings

if TYPE_CHECKING:
    from streams.kafka.worker.worker import WorkerSettings


def essence_settings(settings: Settings, name: str, added: Extensions) -> EssenceSettings:
    """Return the settings of essence for the named Gatherer, with the operator's additions. Raises Failure."""
    given = settings.essence
    try:
        return EssenceSettings(
            gatherer=name,
            added=added.digest,
            select=Selection(**given.select.model_dump()),
            limits=Budgets(**given.limits.model_dump()),
            entries=given.entries,
            full_text=given.full_text,
            packages_members=given.packages_members,
            files=given.files,
        )
    except ValueError as error:
        raise Failure(f"essence.select.off: {error}", 2) from None


def own_additions(settings: Settings) -> Extensions:
    """Return the operator's additions to Essence. Raises Failure."""
    given = settings.essence
    try:
        return read(Path(given.own) if given.own else None, given.packages)
    except OwnError as error:
        raise Failure(f"essence.{'own' if given.own else 'packages'}: {error}", 2) from None


def fetch_settings(settings: Settings) -> FetchSettings:
    """Return the settings of the fetch edge. Raises Failure for a malformed network."""
    found = FetchSettings(**settings.fetch.model_dump())
    try:
        # Parsed here, so that an error is reported before anything is fetched.
        found.networks  # noqa: B018
    except ValueError as error:
        raise Failure(f"fetch.allow: {error}", 2) from None
    return found


def blob_settings(settings: Settings) -> BlobSettings:
    """Return the settings of the store of bodies."""
    given = settings.blobs
    return BlobSettings(
        url=given.url,
        endpoint=given.endpoint,
        region=given.region,
        access_key=given.access_key,
        secret_key=given.secret_key.get_secret_value(),
        ca=given.ca,
        timeout=given.timeout,
        cache=given.cache,
        options=tuple(given.options.items()),
    )


def embedded_settings(settings: Settings) -> EmbeddedSettings:
    """Return the settings of the embedded runner. Raises Failure if the data folder was made with other fixed settings."""
    added = own_additions(settings)
    essence = essence_settings(settings, _gatherer(settings), added)
    return EmbeddedSettings(
        partitions=settings.partitions,
        children=settings.children,
        blobs=blob_settings(settings),
        fetch=fetch_settings(settings),
        essence=essence,
        flow=flow_of(settings, frontier_settings(settings, essence, _paused(settings))),
        limits=msgspec.convert(settings.sandbox.model_dump(), SandboxLimits),
        own=added,
    )


def frontier_settings(settings: Settings, essence: EssenceSettings, paused: tuple[str, ...] = ()) -> FrontierSettings:
    """Return the settings of the frontier."""
    return FrontierSettings(
        agent=product_token(settings.fetch.user_agent),
        rules=rules_fingerprint(essence),
        paused=paused,
        variants=settings.roots.variants,
        partitions=settings.kafka.partitions if settings.kafka.brokers else _partitions(settings),
        sitemaps=settings.roots.sitemaps,
        lastmod=settings.roots.lastmod,
        feeds=settings.roots.feeds,
        pause=int(settings.fetch.pause * 1_000),
        edge_patience=int(settings.fetch.patience * 1_000),
        price=None if settings.roots.price is None else settings.roots.price * 1000,
        refresh_min=settings.roots.refresh_min * 1000,
        whole_every=_whole_every(settings),
        **settings.frontier.model_dump(),
    )


def watch_settings(settings: Settings) -> WatchSettings:
    """Return how local roots are watched."""
    return WatchSettings(**settings.watch.model_dump())


def _whole_every(settings: Settings) -> int:
    """Return the time in ms after which a part of another Gatherer's database is requested as a whole.

    On Kafka, `harvest topics reset catalog` makes the rows of the catalog again from what is retained: it needs a whole stream.
    """
    longest = FrontierSettings().whole_every
    return min(longest, int(settings.retention * 1000) // 2) if settings.kafka.brokers else longest


def worker_settings(settings: Settings) -> WorkerSettings:
    """Return the settings of a worker on Kafka. Raises Failure without a Gatherer's name: workers of one cluster need one."""
    from streams.kafka.client.cluster import Cluster
    from streams.kafka.worker.worker import WorkerSettings

    if "gatherer" not in settings.model_fields_set:
        raise Failure("gatherer: every OID is made of it, so workers must be told one name (HARVEST_GATHERER=name)", 2)
    added = own_additions(settings)
    essence = essence_settings(settings, settings.gatherer, added)
    cluster = Cluster.of(settings.kafka)
    return WorkerSettings(
        brokers=settings.kafka.brokers,
        prefix=settings.kafka.prefix,
        registry=settings.kafka.registry,
        register=settings.kafka.register,
        security=cluster.security,
        further=cluster.further,
        index_url=server(settings),
        index_name=settings.index.name,
        index_timeout=settings.index.timeout,
        folder=settings.data,
        blobs=blob_settings(settings),
        retention=settings.retention,
        stall=settings.worker.stall,
        session=settings.worker.session,
        instance=settings.worker.instance,
        children=settings.children,
        fetch=fetch_settings(settings),
        essence=essence,
        flow=flow_of(settings, frontier_settings(settings, essence)),
        limits=msgspec.convert(settings.sandbox.model_dump(), SandboxLimits),
        own=added,
    )


def _partitions(settings: Settings) -> int:
    """Return the number of partitions: that of the data folder, if there is one."""
    with known(settings.data) as store:
        return store.topics()["crawl"] if store else settings.partitions


def _paused(settings: Settings) -> tuple[str, ...]:
    """Return the URLs of paused roots."""
    with known(settings.data) as store:
        return tuple(sorted(runs.paused(store))) if store else ()


def _gatherer(settings: Settings) -> str:
    """Return the Gatherer's name: that of the data folder, if it has one."""
    with known(settings.data) as store:
        if store is None:
            return settings.gatherer
        name, partitions = gatherer(store), store.topics().get("crawl", settings.partitions)
    if "partitions" in settings.model_fields_set and partitions != settings.partitions:
        made = counted(partitions, "partition")
        raise Failure(f"{settings.data}: made with {made}, not {settings.partitions}; their number is fixed")
    if name and "gatherer" in settings.model_fields_set and name != settings.gatherer:
        raise Failure(f"{settings.data}: made by the gatherer {name}, not {settings.gatherer}; every OID is made of that name")
    return name or settings.gatherer
