"""`harvest topics`: create and list topics, and show the lag of their readers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

import typer

from streams.cli.common import Config, Data, Failure, Json, counted, note, printable, put, settings

if TYPE_CHECKING:
    from streams.logs import Lag

app = typer.Typer(no_args_is_help=True, help="Create, list and watch topics.")


@app.command()
def apply(
    check: Annotated[bool, typer.Option("--check", help="Change nothing; exit code 1 if anything differs.")] = False,
    register: Annotated[bool, typer.Option("--register", help="Register schemas, though kafka.register is false.")] = False,
    config: Config = None,
) -> None:
    """Create or update the topics on Kafka by the topology: partitions, retention, compaction, replicas; print the differences.

    If kafka.registry is set, missing schemas are registered too, or only reported if kafka.register is false.
    """
    found = settings(config)
    if not found.kafka.brokers:
        raise Failure("kafka.brokers is not set (HARVEST_KAFKA_BROKERS=HOST:PORT): a data folder makes its topics by itself", 2)
    from streams.config.topology import topology_of
    from streams.kafka.client.admin import Admin, plan_topics
    from streams.kafka.client.cluster import Cluster
    from streams.kafka.client.registry import Registry

    if register and not found.kafka.registry:
        raise Failure("kafka.registry is not set: there is nowhere to register schemas", 2)
    cluster = Cluster.of(found.kafka)
    drawn = topology_of(found)
    plan = plan_topics(drawn, cluster, found.retention, found.sandbox.frame)
    different = left = 0
    for line in Admin(cluster).apply(plan, change=not check):
        put(line)
        different += 1
    if cluster.registry:
        may = not check and (register or cluster.register)
        for line in Registry(cluster._replace(register=may), drawn.topics).apply():
            put(line)
            different, left = different + 1, left + (not may)
    mended = "" if check or different == left else " mended" if not left else f", {different - left:,} mended"
    note(f"{len(plan):,} topics, {different:,} differences{mended}" if different else f"{len(plan):,} topics, as they should be")
    if left or (check and different):
        raise typer.Exit(1)


@app.command("list")
def list_topics(data: Data = None, json: Json = False, config: Config = None) -> None:
    """List the topics with partitions, records written and content; as JSON the first and next offset of each partition."""
    found = settings(config, data=data)
    from schemas.jsonform import line
    from streams.cli.common import open_log
    from streams.config.topology import topology_of

    drawn = topology_of(found)
    with open_log(found, bare=True) as log:
        there = log.topics()
        for topic in drawn.topics:
            if (partitions := there.get(topic.name)) is None:
                continue
            ends, starts = list(log.ends(topic.name)), list(log.starts(topic.name))
            if json:
                facts = {"partitions": partitions, "starts": starts, "ends": ends, "keep": topic.keep, "says": topic.says}
                put(line({"topic": topic.name, **facts}))
            else:
                count = counted(partitions, "partition")
                put(f"{topic.name:<18} {count:>16}  {sum(ends):>12,} records written  {topic.keep:<7} {topic.says}")
    if found.kafka.brokers:
        _miss(topic.name for topic in drawn.topics if topic.name not in there)


@app.command()
def lag(data: Data = None, json: Json = False, config: Config = None) -> None:
    """Show how many records each stage still has to read, by topic."""
    found = settings(config, data=data)
    from schemas.jsonform import line
    from streams.cli.common import open_log
    from streams.config.topology import topology_of
    from streams.logs import stage_inputs

    drawn = topology_of(found)
    with open_log(found) as log:
        there = log.topics()
        for (group, topic), lags in groupby(log.lags(drawn), key=lambda one: (one.group, one.topic)):
            if json:
                for one in lags:
                    put(line(one._asdict()))
            else:
                put(f"{group:<18} {topic:<18} {_behind(list(lags))}")
    if found.kafka.brokers:
        _miss(name for name in dict.fromkeys(topic for _, topic in stage_inputs(drawn)) if name not in there)


@app.command()
def members(json: Json = False, config: Config = None) -> None:
    """Show the workers of each stage on Kafka, with their partitions and the records that these still have for them."""
    found = settings(config)
    if not found.kafka.brokers:
        raise Failure("kafka.brokers is not set (HARVEST_KAFKA_BROKERS=HOST:PORT): without it there are no workers", 2)
    from schemas.jsonform import line
    from streams.config.topology import topology_of
    from streams.kafka.client.admin import Admin
    from streams.kafka.client.cluster import Cluster

    cluster, drawn = Cluster.of(found.kafka), topology_of(found)
    idle = dict.fromkeys(cluster.group(stage.name) for stage in drawn.stages)
    for one in Admin(cluster).members(drawn):
        idle.pop(one.group, None)
        if json:
            put(line(one._asdict()))
        else:
            here = counted(len(one.partitions), "partition")
            put(f"{one.group:<18} {printable(one.name):<30} {printable(one.host):<16} {here:>14}  {one.lag:>12,} to read")
    if idle:
        note(f"without a worker: {', '.join(idle)}")


@app.command()
def reset(
    stages: Annotated[list[str], typer.Argument(metavar="STAGE...", help="Stages whose workers refuse to start.")],
    config: Config = None,
) -> None:
    """Make stages start over on topics that were deleted and made again, or that lost records; nothing else changes.

    An input is read from its first record; with a changelog, all inputs of its stage are, as far as they are retained. No worker of
    the stage may run. An index is made from its topic anew by `harvest index rebuild`.
    """
    found = settings(config)
    if not found.kafka.brokers:
        raise Failure("kafka.brokers is not set (HARVEST_KAFKA_BROKERS=HOST:PORT): a data folder keeps its topics", 2)
    from streams.config.topology import topology_of
    from streams.kafka.client.cluster import Cluster
    from streams.kafka.client.topic_identity import remedy
    from streams.kafka.client.topic_reset import reset_stage
    from streams.topology.flow import streamed

    cluster, drawn = Cluster.of(found.kafka), topology_of(found)
    known = [stage.name for stage in drawn.stages]
    for stage in stages:
        if stage not in known:
            raise Failure(f"{printable(stage)}: no such stage (there are {', '.join(known)})", 2)
        if streamed(stage) is not None:
            raise Failure(f"{stage}: its offsets are in the feed: {remedy(drawn.stage(stage))}", 2)
        if stage.startswith("index."):
            raise Failure(
                f"{stage}: its offsets are in the index: harvest index rebuild --broker {stage.removeprefix('index.')}", 2
            )
    for stage in stages:
        lines = reset_stage(cluster, drawn, stage)
        for line in lines:
            put(f"{stage}: {line}")
        if not lines:
            note(f"{stage}: its topics are as it left them")


def _miss(names: Iterable[str]) -> None:
    """Report missing topics, and raise Exit if there are any."""
    if missing := list(names):
        for name in missing:
            note(f"{name}: not there (harvest topics apply)")
        raise typer.Exit(1)


def _behind(lags: Sequence[Lag]) -> str:
    """Return the lag of a group in a topic, and the partition with the largest."""
    total = sum(one.lag for one in lags)
    worst = max(lags, key=lambda one: one.lag)
    where = f"  (partition {worst.partition}: {worst.lag:,})" if total and len(lags) > 1 else ""
    return f"{total:>12,} to read{where}"
