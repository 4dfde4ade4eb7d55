"""One stage as `harvest worker STAGE` runs it, with short intervals: python -m tests.streams.kafka.station STAGE JSON.

JSON: the fields of `Station`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from processors.essence.stage import EssenceSettings
from streams.cli.wiring import worker_settings
from streams.config.settings import load
from streams.fetch import FetchSettings
from streams.kafka.worker.worker import WorkerSettings, run_stage
from tests.streams.kafka import stacks


class Station(msgspec.Struct, frozen=True):
    """Settings that a test gives to a worker."""

    broker: str
    prefix: str
    folder: str
    gatherer: str = "example"
    max_file: int = 64 << 20
    session: float = 3.0
    commit: float = 0.3
    stall: float = 60.0
    index_url: str = ""
    config: str = ""
    """A `harvest.toml` with the cluster, in place of `broker`, `prefix` and `index_url`."""
    instance: str = ""

    def settings(self) -> WorkerSettings:
        """The settings as worker settings: short sessions and commits, and no pause between two requests to a host."""
        plain = WorkerSettings(brokers=(self.broker,), prefix=self.prefix, folder=Path(self.folder), index_url=self.index_url)
        return msgspec.structs.replace(
            self._configured() if self.config else plain,
            stall=self.stall,
            commit=self.commit,
            session=self.session,
            instance=self.instance,
            essence=EssenceSettings(gatherer=self.gatherer),
            # The test decides how long a silent server is waited for.
            fetch=FetchSettings(pause=0.0, allow=("127.0.0.0/8",), max_file=self.max_file, answer_timeout=300.0),
        )

    def _configured(self) -> WorkerSettings:
        """The settings of the file."""
        environment = {"HARVEST_GATHERER": self.gatherer, "HARVEST_DATA": self.folder}
        return worker_settings(load(config=Path(self.config), environ=environment))


if __name__ == "__main__":
    stacks.told()
    run_stage(sys.argv[1], msgspec.json.decode(sys.argv[2], type=Station).settings())
