"""One stage of the topology as a Faust worker: python -m tests.streams.kafka.stage STAGE BROKER PREFIX PARTITIONS FOLDER [WHERE:N].

The topics are PREFIX + name. With WHERE:N the worker kills itself at the N-th batch, when its rows are durable and its outputs are
not (`rows`), or when its outputs are and its offset is not (`outputs`). With WHERE:N:stop it stops itself there, until a SIGCONT;
then WHERE may also be before its rows are sent (`decided`), or while they wait in the client (`queued`).
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from streams.kafka.client.cluster import Cluster
from streams.kafka.decide.agents import Decider
from streams.kafka.decide.apps import application, runner
from streams.kafka.decide.client_workarounds import tables
from streams.kafka.decide.sending import Outgoing, RecordPosition
from streams.kafka.worker.stopping import end_process
from streams.topology.flow import Stage, TopologySettings, topology
from tests.streams.kafka import stacks


class Dying(Decider):
    """A stage that kills or stops itself at a given place."""

    where, left, number = "", 0, signal.SIGKILL

    async def batch(self, events: Sequence[Any]) -> None:
        """Count batches, and kill or stop the process in the given one."""
        self.left -= 1
        if self.left == 0:
            send, answered = self.sender.send, self.sender._answered

            async def cut_sending(records: Sequence[Outgoing]) -> list[RecordPosition]:
                rows = all(record.topic.endswith("-changelog") for record in records)
                if self.where == ("decided" if rows else "rows"):
                    self.cut()
                return await send(records)

            async def cut_answered(producer: Any) -> None:
                if self.where == "queued":
                    self.cut()
                await answered(producer)

            self.sender.send, self.sender._answered = cut_sending, cut_answered  # type: ignore[method-assign]
        await super().batch(events)
        if self.left == 0 and self.where == "outputs":
            self.cut()

    def cut(self) -> None:
        """Kill this process, or stop it until SIGCONT."""
        self.where = ""
        os.kill(os.getpid(), self.number)


def main(name: str, broker: str, prefix: str, partitions: str, folder: str, cut: str = ":0") -> None:
    """Run the stage until SIGTERM."""
    stage = topology(TopologySettings()).stage(name)
    assert isinstance(stage, Stage)
    with tables(Path(folder), time.time()):
        cluster = Cluster(broker, prefix)
        settings = {"broker_commit_interval": 0.3, "broker_session_timeout": 3.0, "broker_heartbeat_interval": 0.5}
        app = application(f"{prefix}{name}", cluster, folder, int(partitions), **settings)
        decider = Dying(app, stage, cluster)
        decider.where, left, *stops = cut.split(":")
        decider.left = int(left)
        if stops:
            decider.number = signal.SIGSTOP
        else:
            # It is the only worker of its stage: if the whole machine sleeps, no other worker has taken its partitions.
            decider.owned.session = 3600.0
        try:
            runner(app).execute_from_commandline()
        except SystemExit as end:
            if end.code:
                raise


if __name__ == "__main__":
    stacks.told()
    main(*sys.argv[1:])
    end_process()
