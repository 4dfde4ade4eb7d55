"""Holding of a worker while the cluster refuses it: a login, a certificate or a right went bad under it.

Strategy: the clients report such a failure in many ways, and only some of them recover. So the cluster is asked itself, by a new
connection, whether it accepts the login and grants the rights of the stage: by the watchdog regularly, and when the worker is about
to end for whatever reason. While it does not, the worker is not ready, with the reason, and does not end; once it does, a worker
that had failed starts itself again.

Laws:
- Nothing is acknowledged, committed or rejected while a failed worker holds: it only waits.
- A held worker is alive: restarting it would not mend the cluster.
- At the start nothing is held: a command that was never able to work ends with its line.
- An open cluster (PLAINTEXT) is not asked: a broker that does not answer is waited for by the clients, and by the supervisor.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaException

from streams.kafka.client.acls import rights_of_stage
from streams.kafka.client.admin import Admin
from streams.kafka.client.cluster import Cluster, ClusterError
from streams.kafka.client.reach import Contact
from streams.topology.flow import Edge, Stage

REACH = 5.0
"""Seconds that a broker has to answer."""
PAUSE = 2.0
"""Seconds between two questions of a worker that holds."""
LATELY = 30.0
"""Seconds after a refusal, in which it is the likely cause of a failure."""


def refusal(cluster: Cluster, stage: Stage[Any, Any] | Edge[Any, Any]) -> str:
    """Return why the cluster refuses the worker of a stage, in one line; "": it does not, or does not answer at all."""
    if cluster.security.protocol == "PLAINTEXT":
        return ""
    try:
        Contact(cluster).metadata(REACH)
        missing = Admin(cluster).missing_rights(rights_of_stage(stage))
    except ClusterError as error:
        return str(error)
    except (KafkaException, TimeoutError):
        return ""
    if not missing:
        return ""
    named = "; ".join(f"{' '.join(one.operations)} on {one.kind} {cluster.prefix}{one.name}" for one in missing)
    return f"{cluster.brokers}: the ACLs refuse {cluster.security.name or 'this client'}: {named}"


def hold_refused(ask: Callable[[], str], show: Callable[[str], None], say: Callable[[str], object], *, lately: bool) -> None:
    """Hold a failed worker as long as `ask` returns a reason, then start its program again.

    Return at once if there is no reason, nor was one `lately`: the failure may be reported after it was mended. `show` makes the
    reason known to health checks, `say` logs it. For the main thread, which alone can handle signals; in others it returns.
    """
    if threading.current_thread() is not threading.main_thread() or not ((reason := ask()) or lately):
        return
    for number in (signal.SIGTERM, signal.SIGINT):
        # Nothing is under way that would have to be finished.
        signal.signal(number, lambda *_: os._exit(0))
    if reason:
        say(f"{reason}; waiting until it is mended")
    while reason:
        show(reason)
        time.sleep(PAUSE)
        reason = ask()
    say("the cluster accepts this worker again: starting again")
    # The same program with the same arguments, as it was started.
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606
