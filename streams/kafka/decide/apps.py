"""Faust application with the only settings that proved reliable.

Each setting that differs from Faust's default avoids a pitfall: batches small enough for one poll, no hang at shutdown, stores that
do not take 2 GB per partition, no web server, at-least-once delivery (exactly once is broken). Faust's own producer sends only
ticks (`sending.py`).
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import time
from typing import Any

import faust
import mode.loop

from streams.kafka.client.cluster import RECOVERY, Cluster
from streams.kafka.decide.client_workarounds import Transport
from streams.kafka.decide.credentials import credentials, equal_settings
from streams.kafka.decide.recovering import manager
from streams.kafka.worker.stopping import limit_stop

STORE = {
    "driver": "rocksdict",
    "write_buffer_size": 8 << 20,
    "max_write_buffer_number": 2,
    "block_cache_size": 16 << 20,
    "max_open_files": 128,
}
"""RocksDB's memory for each partition of a table."""


STARTING = 10.0
"""Seconds that a worker which is to stop waits at most until it has started; without a broker it never would."""
STEP = 0.05
"""Seconds between two looks whether it has."""


class Application(faust.App):
    """Application that tells when all its services have been started."""

    up = False

    async def on_started(self) -> None:
        """Note it; then wait until the tables are recovered, as Faust does."""
        self.up = True
        await super().on_started()


class Worker(faust.Worker):
    """Worker that can be stopped at any time, and says why if it does not stop in order.

    Cause: services that Faust stops while they start fail in their start (InvalidStateError), or wait for each other without end.
    And an error of the end is not logged: the process ends with 1 without a word (mode/worker.py, `execute_from_commandline`).
    """

    app: Application

    async def _stop_on_signal(self, signal: signal.Signals) -> None:
        """Stop once everything has started; a worker that cannot start ends at once, since nothing is under way."""
        limit_stop()
        until = time.monotonic() + STARTING
        while not (self.app.up or self.crashed or self._starting_fut is None or self._starting_fut.done()):
            if time.monotonic() > until:
                os._exit(0)
            await asyncio.sleep(STEP)
        await super()._stop_on_signal(signal)

    def stop_and_shutdown(self) -> None:
        """Stop, and close the loop. Raises what makes that fail, which is logged here."""
        try:
            super().stop_and_shutdown()
        except Exception:
            self.log.exception("Error while stopping")
            raise


def application(group: str, cluster: Cluster, folder: str | os.PathLike[str], partitions: int, **settings: Any) -> faust.App:
    """Return an application with consumer group `group` on a cluster, and its tables in `folder`."""
    usual: dict[str, Any] = {
        "store": "rocksdb://",
        "topic_partitions": partitions,
        "topic_disable_leader": True,
        "topic_allow_declare": True,
        "table_standby_replicas": 0,
        "processing_guarantee": "at_least_once",
        "stream_wait_empty": False,
        "broker_max_poll_records": 500,
        "broker_session_timeout": 10.0,
        "broker_heartbeat_interval": 2.0,
        "producer_acks": -1,
        "web_enabled": False,
    }
    usual |= equal_settings(dict(cluster.further))[0]
    usual["broker_credentials"] = credentials(cluster.security)
    usual["TableManager"] = manager(cluster.client(group__id=cluster.group(RECOVERY)))
    app = Application(group, broker=f"kafka://{cluster.brokers}", datadir=os.fspath(folder), **(usual | settings))
    app.transport = Transport(app.conf.broker, app)
    return app


def runner(app: faust.App, level: int = logging.WARNING, **settings: Any) -> faust.Worker:
    """Return a worker whose `execute_from_commandline` runs `app` until SIGTERM or SIGINT; it logs to stderr from that level on."""
    # Faust works on event loops throughout, also in the consumer's thread: uvloop saves an eighth of a stage's time.
    mode.loop.use("uvloop")
    worker = Worker(app, loglevel=level, redirect_stdouts=False, quiet=True, stdout=sys.stderr, **settings)
    # The spinner would have every log message formatted.
    worker.spinner = None
    return worker
