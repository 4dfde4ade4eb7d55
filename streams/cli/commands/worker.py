"""`harvest worker`: stages on Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from streams.cli.common import Config, Data, Failure, printable, settings

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from streams.config.settings import Settings


STAGES = "Stages, as `harvest describe` has them; all, if none is named."


def worker(
    stages: Annotated[list[str] | None, typer.Argument(metavar="[STAGE]...", help=STAGES)] = None,
    data: Data = None,
    config: Config = None,
) -> None:
    """Run stages on Kafka, each as a consumer group, until stopped.

    A single STAGE runs in this process. Several, or all, run in one process each, which is restarted when it ends.
    """
    from streams.kafka.worker.stopping import stoppable

    with stoppable():
        _run(stages or (), data, config)


def _run(stages: Sequence[str], data: Path | None, config: Path | None) -> None:
    """Run the stages. Raises Failure, and what `run_stage` raises."""
    found = settings(config, data=data)
    from streams.cli.serving import logs_of
    from streams.cli.wiring import worker_settings
    from streams.config.topology import topology_of
    from streams.kafka.client.acls import NAMING
    from streams.kafka.worker.preflight import prepare
    from streams.kafka.worker.worker import runnable_stages

    known = runnable_stages(topology_of(found))
    wanted = list(dict.fromkeys(_named(stage, known) for stage in stages or known))
    given = worker_settings(found)
    if not found.kafka.brokers:
        raise Failure("kafka.brokers is not set (HARVEST_KAFKA_BROKERS=HOST:PORT): harvest run needs none, nor a worker", 2)
    prepare(given, wanted)
    if NAMING & set(wanted):
        _one_name(found)
    if len(wanted) == 1:
        from streams.cli.serving import serve_health
        from streams.kafka.worker.worker import run_stage
        from streams.telemetry import Health, Metrics

        health, metrics, logs = Health(), Metrics(), logs_of(found, stage=wanted[0])
        logs.capture()
        with serve_health(found, health, metrics) as where:
            logs.say(f"{wanted[0]}{where}; stop with Ctrl-C")
            run_stage(wanted[0], given, health, metrics, logs)
        return
    from streams.kafka.worker.supervisor import stage_command, supervise

    options = [*(["--data", str(data)] if data else []), *(["--config", str(config)] if config else [])]
    logs = logs_of(found, stage="supervisor")
    # Each stage has its own port: the first that of the settings, the others the ports behind it; of several ports each takes its
    # own.
    fixed = found.worker.port and found.worker.ports == 1
    ports = {stage: found.worker.port + number for number, stage in enumerate(wanted)} if fixed else {}
    shown = (f"{stage} (port {ports[stage]})" if stage in ports else stage for stage in wanted)
    logs.say(f"{', '.join(shown)}; stop with Ctrl-C")
    served_at = {stage: ["env", f"HARVEST_WORKER_PORT={port}"] for stage, port in ports.items()}
    if code := supervise(wanted, lambda stage: [*served_at.get(stage, []), *stage_command(stage, options)], logs.say):
        raise typer.Exit(code)
    logs.say("stopped")


def _one_name(found: Settings) -> None:
    """Check that the gatherer's name is that of the existing summaries: else each object would get another OID. Raises Failure."""
    from streams.config.topology import topology_of
    from streams.kafka.client.cluster import Cluster
    from streams.kafka.client.log import KafkaLog

    with KafkaLog(Cluster.of(found.kafka), topology_of(found)) as log:
        names = log.gatherers()
    if names and found.gatherer not in names:
        made = " and ".join(map(printable, sorted(names)))
        raise Failure(
            f"the summaries on Kafka are of the gatherer {made}, not {printable(found.gatherer)}; every OID is made of that name"
        )


def _named(stage: str, known: Sequence[str]) -> str:
    """The stage that is meant; the Broker's name may be left out where it is `MAIN`."""
    from processors.broker.definition import MAIN

    for name in (stage, f"{stage}.{MAIN}"):
        if name in known:
            return name
    raise Failure(f"{printable(stage)}: no such stage (there are {', '.join(known)})", 2)
