"""What the pipeline of a cluster is doing, as far as its topics tell: roots, stages, rejections.

A cluster has no runs. Sites and their queues are rows of the workers, which no topic has.
"""

from __future__ import annotations

from sinks.gateway.ports import Root, Status
from streams.kafka.client import roots
from streams.logs import LogAccess
from streams.operations.status import joined, rejections, shown_roots, stages
from streams.topology.flow import Topology

UNKNOWN = (
    "sites with their queues, and failures of roots, are not known here: the workers hold them (harvest why ROOT tells of a root)"
)


def cluster_status(log: LogAccess, drawn: Topology, gatherer: str) -> Status:
    """Return the status of a cluster. Raises ClusterError."""
    there = roots.roots(log, drawn) if "crawl" in log.topics() else []
    paused = roots.paused(log, drawn) if there else frozenset()
    shown, notes_of_roots = shown_roots(Root(one.url, "paused" if one.url in paused else "active", "") for one in there)
    behind, notes_of_stages = stages(log, drawn)
    rejected, notes_of_rejections = rejections(log)
    more = joined([UNKNOWN], notes_of_roots, notes_of_stages, notes_of_rejections)
    return Status(gatherer, "", shown, (), behind, rejected, more)
