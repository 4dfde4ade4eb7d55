"""A Faust application, set up the one way that was shown to hold.

Each setting that is not Faust's own answers a pitfall: batches small enough for a poll, no hang at the end, stores that do not take
2 GB a partition, no web server, at least once (exactly once is broken). Faust's own producer sends ticks alone (`sending.py`).
"""

from __future__ import annotations

import os
import sys
from typing import Any

import faust
import mode.loop

from streams.kafka.decide.client_workarounds import Transport
from streams.kafka.decide.recovering import manager

STORE = {
    "driver": "rocksdict",
    "write_buffer_size": 8 << 20,
    "max_write_buffer_number": 2,
    "block_cache_size": 16 << 20,
    "max_open_files": 128,
}
"""RocksDB's memory, for each partition of a table."""


def application(group: str, kafka: str, folder: str | os.PathLike[str], partitions: int, **settings: Any) -> faust.App:
    """An application whose consumer group is `group`, at the broker `kafka` (host:port), with its tables in `folder`."""
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
    usual["TableManager"] = manager({"bootstrap.servers": kafka, "client.id": "harvest", "log_level": 0})
    app = faust.App(group, broker=f"kafka://{kafka}", datadir=os.fspath(folder), **(usual | settings))
    app.transport = Transport(app.conf.broker, app)
    return app


def runner(app: faust.App, **settings: Any) -> faust.Worker:
    """Runs an application in this process, by `execute_from_commandline`, until SIGTERM or SIGINT; says warnings, to stderr."""
    # All that Faust does goes through its loops, that of the consumer's thread too: in C they take an eighth less time of a stage.
    mode.loop.use("uvloop")
    worker = faust.Worker(app, loglevel="WARN", redirect_stdouts=False, quiet=True, stdout=sys.stderr, **settings)
    # It would have every message of the logs formatted.
    worker.spinner = None
    return worker
