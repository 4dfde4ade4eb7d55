"""`harvest worker`: stages on Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from streams.cli.common import Config, Data, Failure, note, printable, settings

if TYPE_CHECKING:
    from collections.abc import Sequence


def worker(
    stages: Annotated[list[str] | None, typer.Argument(metavar="[STAGE]...", help="Stages of the topology [default: all].")] = None,
    data: Data = None,
    config: Config = None,
) -> None:
    """Run stages on Kafka, each as a consumer group; until it is stopped.

    One STAGE runs in this process. Several, or all, run in a process each, which is started again when it ends.
    """
    found = settings(config, data=data)
    from streams.cli.wiring import worker_settings
    from streams.kafka.worker import declared, served

    given = worker_settings(found)
    known = served(declared(given))
    wanted = [_named(stage, known) for stage in stages or known]
    if len(wanted) == 1:
        from streams.kafka.worker import work

        work(wanted[0], given)
        return
    from streams.kafka.brokers import check
    from streams.kafka.supervisor import again, supervise

    check(declared(given), wanted, given.brokers, given.prefix)
    options = [*(["--data", str(data)] if data else []), *(["--config", str(config)] if config else [])]
    note(f"{', '.join(wanted)}; stop with Ctrl-C")
    if code := supervise(wanted, lambda stage: again(stage, options), note):
        raise typer.Exit(code)
    note("stopped")


def _named(stage: str, known: Sequence[str]) -> str:
    """The stage that is meant; the Broker's name may be left out where it is `main`."""
    for name in (stage, f"{stage}.main"):
        if name in known:
            return name
    raise Failure(f"{printable(stage)}: no such stage (there are {', '.join(known)})", 2)
